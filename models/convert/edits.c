#include "models/convert/edits.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 127, MAX_TEXT = 127 }; /* the tool's limits */

static void set_int(struct gguf_kvs *kvs, const char *key, const char *value)
{
    long long number = atoll(value);
    gguf_set_u32(kvs, key, (uint32_t)(number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number));
}

static void set_float(struct gguf_kvs *kvs, const char *key, const char *value)
{
    gguf_set_f32(kvs, key, atof(value));
}

static void set_bool(struct gguf_kvs *kvs, const char *key, const char *value)
{
    gguf_set_bool(kvs, key, strcmp(value, "true") == 0);
}

static void set_str(struct gguf_kvs *kvs, const char *key, const char *value)
{
    struct gguf_kv kv = {.key = memory_strdup(key), .type = GGUF_STRING}; /* writes an empty text, too */
    gguf_append_string(&kv.value, value, strlen(value));
    gguf_kvs_add(kvs, &kv);
}

static const struct kind {
    const char *name;
    void (*set)(struct gguf_kvs *kvs, const char *key, const char *value);
} kinds[] = {{"int:", set_int}, {"float:", set_float}, {"bool:", set_bool}, {"str:", set_str}};

/* Returns the kind of an override, or NULL; *ret_value is the text after it. */
static const struct kind *find_kind(const char *override_kv, const char **ret_value)
{
    const char *equals = strchr(override_kv, '=');
    for (size_t i = 0; equals != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].name);
        if (strncmp(equals + 1, kinds[i].name, length) != 0)
            continue;
        *ret_value = equals + 1 + length;
        return &kinds[i];
    }
    return NULL;
}

/* Reports whether an override makes readers take the file for one of several splits; llama-quantize refuses it. */
static bool makes_a_part(const char *override_kv, const struct kind *kind, const char *value)
{
    static const char key[] = "split.count=";
    long long count = atoll(value);
    return kind->set == set_int && strncmp(override_kv, key, strlen(key)) == 0 && (count < -1 || count > 1);
}

bool gguf_override_check(const char *override_kv, struct error *error)
{
    const char *value, *equals = strchr(override_kv, '=');
    const struct kind *kind = find_kind(override_kv, &value);
    if (kind == NULL || equals == override_kv)
        return error_set(error, "'%s' is not KEY=TYPE:VALUE with a TYPE of int, float, bool or str", override_kv);
    if (equals - override_kv > MAX_KEY)
        return error_set(error, "'%s': the key is longer than %d bytes", override_kv, MAX_KEY);
    if (kind->set == set_bool && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return error_set(error, "'%s': '%s' is neither true nor false", override_kv, value);
    if (makes_a_part(override_kv, kind, value))
        return error_set(error, "'%s': keys alone cannot split a file; use -o split=N", override_kv);
    if (kind->set == set_str && strlen(value) > MAX_TEXT)
        return error_set(error, "'%s': the text is longer than %d bytes", override_kv, MAX_TEXT);
    return true;
}

bool gguf_edits_are_none(const struct gguf_edits *edits)
{
    return edits == NULL || (edits->chat_template == NULL && edits->override_kvs == NULL);
}

static void set_chat_template(struct gguf_kvs *kvs, const struct gguf_edits *edits, size_t place)
{
    static const char key[] = "tokenizer.chat_template";
    bool is_new = gguf_kvs_find(kvs, key) == NULL;
    gguf_set_string(kvs, key, edits->chat_template, edits->chat_template_length);
    if (is_new && place > 0)
        gguf_kvs_move_last(kvs, place);
}

void gguf_edit(struct gguf_kvs *kvs, const struct gguf_edits *edits, size_t template_place)
{
    if (edits == NULL)
        return;
    if (edits->chat_template != NULL)
        set_chat_template(kvs, edits, template_place);
    for (const char *const *override_kv = edits->override_kvs; override_kv != NULL && *override_kv != NULL;
         override_kv++) {
        const char *value;
        const struct kind *kind = find_kind(*override_kv, &value);
        char *key = memory_strndup(*override_kv, strcspn(*override_kv, "="));
        gguf_kvs_remove(kvs, key);
        kind->set(kvs, key, value);
        free(key);
    }
}
