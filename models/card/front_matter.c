#include "models/card/general.h"

#include "base/buffer.h"

#include <string.h>

/* Returns the length of the line end at `text`, by the rules of Python's str.splitlines(); 0: there is none. */
static size_t end_of_line(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;
    if (length > 1 && ((c[0] == '\r' && c[1] == '\n') || (c[0] == 0xc2 && c[1] == 0x85)))
        return 2;
    if (length > 2 && c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
        return 3;
    return (c[0] >= '\n' && c[0] <= '\r') || (c[0] >= 0x1c && c[0] <= 0x1e);
}

static size_t line_length(const char *text, size_t length, size_t *ret_end)
{
    size_t i = 0;
    *ret_end = 0;
    while (i < length && (*ret_end = end_of_line(text + i, length - i)) == 0)
        i++;
    return i;
}

static bool line_is(const char *line, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(line, text, length) == 0;
}

/* Appends a line as gguf-py hands it to its parser: "- no" is the language, not false; a tab is two spaces. */
static void append_line(struct buffer *out, const char *line, size_t length)
{
    static const char no[] = "- no";
    size_t suffix = sizeof no - 1;
    bool norway = length >= suffix && memcmp(line + length - suffix, no, suffix) == 0;
    if (norway)
        length -= suffix;
    for (size_t i = 0; i < length; i++)
        buffer_append(out, line[i] == '\t' ? "  " : &line[i], line[i] == '\t' ? 2 : 1);
    buffer_append_text(out, norway ? "- \"no\"\n" : "\n");
}

/* Appends the lines between the fences; false: there are none. Without a second fence, the end of the text counts. */
static bool cut_front_matter(const char *readme, size_t length, struct buffer *out)
{
    size_t end, n = line_length(readme, length, &end);
    if (!line_is(readme, n, "---"))
        return false;
    while (readme += n + end, length -= n + end, length > 0) {
        n = line_length(readme, length, &end);
        if (line_is(readme, n, "---"))
            break;
        append_line(out, readme, n);
    }
    return out->length != 0;
}

bool front_matter_read(struct arena *arena, const char *readme, size_t length, const struct yaml_value **ret_card,
                       struct error *error)
{
    enum { LINE_AFTER_FENCE = 2 };
    struct buffer text = {0};
    const struct yaml_value *root;
    bool unused;
    *ret_card = NULL;
    if (!cut_front_matter(readme, length, &text))
        return true;
    const struct yaml_text yaml = {(const char *)text.bytes, text.length, LINE_AFTER_FENCE};
    bool is_read = yaml_read(arena, &yaml, &root, &unused, error);
    buffer_free(&text);
    if (is_read && root != NULL && root->type == YAML_MAPPING)
        *ret_card = root;
    return is_read;
}
