#include "models/plain_config.h"

#include <string.h>

enum { DEEPEST = 2 };

static const char *const names[] = {"quantization_config", "quantization", "compression_config"};

bool plain_config_lacks(const char *name)
{
    static const char *const files[] = {"hf_quant_config.json", "quantize_config.json", "quantization_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i], name) == 0)
            return true;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* After the string that begins at `at`. */
static const char *after_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* At the comma or bracket that ends the value which begins at `at`. */
static const char *end_of_value(const char *at, const char *end)
{
    for (unsigned depth = 0; at < end;) {
        if (*at == '"') {
            at = after_string(at, end);
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
            return at;
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    }
    return end;
}

static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/* Whether the string [at, after) is one of the names; none of them is spelled with escapes. */
static bool is_named(const char *at, const char *after)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((size_t)(after - at) == strlen(names[i]) + 2 && memcmp(at + 1, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Takes back the comma before a member that was the last one. */
static void take_back_comma(struct buffer *out)
{
    size_t length = out->length;
    while (length > 0 && is_space((char)out->bytes[length - 1]))
        length--;
    if (length > 0 && out->bytes[length - 1] == ',')
        out->length = length - 1;
}

void plain_config(const char *text, size_t length, struct buffer *out)
{
    unsigned depth = 0, n_arrays = 0;
    const char *end = text + length;
    for (const char *at = text; at < end;) {
        const char *after = *at == '"' ? after_string(at, end) : at + 1, *colon = skip_spaces(after, end);
        bool is_key = *at == '"' && colon < end && *colon == ':' && depth <= DEEPEST && n_arrays == 0;
        if (is_key && is_named(at, after)) {
            at = end_of_value(colon + 1, end);
            if (at < end && *at == ',')
                at = skip_spaces(at + 1, end);
            else
                take_back_comma(out);
            continue;
        }
        depth += *at == '{';
        depth -= *at == '}';
        n_arrays += *at == '[';
        n_arrays -= *at == ']';
        buffer_append(out, at, (size_t)(after - at));
        at = after;
    }
}
