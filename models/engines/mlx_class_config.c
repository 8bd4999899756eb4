#include "models/engines/mlx_families.h"

#include "text/json_write.h"

#include <string.h>

static void put(struct json_writer *writer, const char *key, const struct json *value)
{
    json_put_key(writer, key, strlen(key));
    json_put_edited(writer, value, NULL, NULL);
}

/* "rope_type" becomes "type", at the end. */
static void put_rope(struct json_writer *writer, const struct json *rope)
{
    const struct json *type = json_get(rope, "type") == NULL ? json_get(rope, "rope_type") : NULL;
    json_begin_object(writer, NULL);
    for (struct json_member member = {0}; json_next_member(rope, &member);)
        if (member.value != type)
            put(writer, member.key, member.value);
    if (type != NULL)
        put(writer, "type", type);
    json_end(writer);
}

struct reading {
    const struct mlx_family *family;
    const struct json *config;
};

static void put_vocabulary(struct json_writer *writer, const struct reading *reading)
{
    uint64_t n = reading->family->n_vocabulary;
    json_u64(json_get(reading->config, "vocab_size"), &n);
    json_put_number(writer, "vocab_size", n);
}

/* Members that are missing follow the others. */
static void put_text_config(struct json_writer *writer, const struct reading *reading, const struct json *text)
{
    static const char vocabulary[] = "vocab_size";
    const struct mlx_family *family = reading->family;
    json_begin_object(writer, NULL);
    for (struct json_member member = {0}; json_next_member(text, &member);) {
        if (family->n_vocabulary != 0 && strcmp(member.key, vocabulary) == 0)
            put_vocabulary(writer, reading);
        else if (family->renames_rope_type && strcmp(member.key, "rope_parameters") == 0) {
            json_put_key(writer, member.key, member.key_length);
            put_rope(writer, member.value);
        } else
            put(writer, member.key, member.value);
    }
    if (family->n_vocabulary != 0 && json_get(text, vocabulary) == NULL)
        put_vocabulary(writer, reading);
    for (const struct mlx_default *entry = family->text_defaults; entry != NULL && entry->key != NULL; entry++)
        if (json_get(text, entry->key) == NULL)
            json_put_raw(writer, entry->key, entry->value);
    json_end(writer);
}

static bool edit(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    if (depth != 1 || strcmp(member->key, "text_config") != 0 || !json_is(member->value, JSON_OBJECT))
        return false;
    json_put_key(writer, member->key, member->key_length);
    put_text_config(writer, context, member->value);
    return true;
}

void mlx_class_config(const struct mlx_family *family, const struct json *config, struct buffer *out)
{
    struct reading reading = {family, config};
    json_put_edited(&(struct json_writer){.out = out, .letters = JSON_ASCII}, config, edit, &reading);
}
