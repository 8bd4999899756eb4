#include "models/layouts/key_names.h"

#include <string.h>

enum { MAX_LENGTH = 1024 };

struct translation {
    struct arena *arena;
    struct error *error;
    const char **names;
    unsigned n_names;
};

static bool fail(struct error *error, const struct key_entry *entry, const char *reason)
{
    return error_set(error, "%s:%u: '%.100s' %s", entry->file, json_line(entry->value), entry->key, reason);
}

static struct key_entry *find_entry(const struct key_names *keys, const char *key, size_t length)
{
    for (size_t i = 0; i < keys->n_entries; i++)
        if (strncmp(keys->entries[i].key, key, length) == 0 && keys->entries[i].key[length] == '\0')
            return &keys->entries[i];
    return NULL;
}

static bool is_of_texts(const struct json *value)
{
    bool is_list = json_is(value, JSON_ARRAY);
    const struct json *text = is_list ? json_first(value) : value;
    size_t length;
    if (text == NULL)
        return false;
    for (; text != NULL; text = is_list ? json_next(text) : NULL)
        if (json_string(text, &length) == NULL || strlen(json_string(text, NULL)) != length)
            return false;
    return true;
}

bool key_names_add(struct key_names *keys, const struct json *dictionary, const char *file, struct arena *arena,
                   struct error *error)
{
    struct key_names merged = *keys;
    size_t most = keys->n_entries + json_count_members(dictionary);
    if (!json_is(dictionary, JSON_OBJECT))
        return error_set(error, "%s:%u: not an object", file, json_line(dictionary));
    if (most > KEY_ENTRIES_MAX)
        return error_set(error, "%s:%u: more than %d names", file, json_line(dictionary), KEY_ENTRIES_MAX);
    merged.entries = arena_array(arena, most + 1, sizeof *merged.entries);
    if (keys->n_entries > 0)
        memcpy(merged.entries, keys->entries, keys->n_entries * sizeof *keys->entries);
    for (struct json_member member = {0}; json_next_member(dictionary, &member);) {
        const struct key_entry entry = {member.key, member.value, file};
        struct key_entry *earlier = find_entry(keys, entry.key, strlen(entry.key));
        if (strlen(entry.key) != member.key_length || !is_of_texts(member.value))
            return fail(error, &entry, "is neither a text nor a list of texts");
        merged.entries[earlier != NULL ? (size_t)(earlier - keys->entries) : merged.n_entries++] = entry;
    }
    *keys = merged;
    return true;
}

/* Reports whether `name` contains `key` as whole sections. */
static bool has_sections(const char *name, const char *key)
{
    size_t length = strlen(key);
    for (const char *found = strstr(name, key); found != NULL; found = strstr(found + 1, key))
        if ((found == name || found[-1] == '.') && (found[length] == '.' || found[length] == '\0'))
            return true;
    return false;
}

static const char *replace_all(struct arena *arena, const char *text, const char *from, const char *to)
{
    const char *result = "", *found;
    for (; (found = strstr(text, from)) != NULL; text = found + strlen(from))
        result = arena_printf(arena, "%s%.*s%s", result, (int)(found - text), text, to);
    return arena_printf(arena, "%s%s", result, text);
}

/* Multiplies the names by the number of the value's texts; name k is for text k modulo that number. */
static bool multiply(struct translation *translation, const struct key_entry *entry)
{
    size_t count = json_is(entry->value, JSON_ARRAY) ? json_count(entry->value) : 1;
    if (translation->n_names * count > KEY_NAMES_MAX)
        return fail(translation->error, entry, "makes more than 16 names of one");
    for (size_t i = translation->n_names * count; i-- > 0;)
        translation->names[i] = translation->names[i / count];
    translation->n_names *= (unsigned)count;
    return true;
}

static const char *text_for(const struct json *value, unsigned k)
{
    return json_string(json_is(value, JSON_ARRAY) ? json_at(value, k % json_count(value)) : value, NULL);
}

static bool translate_substrings(const struct key_names *keys, const char *name, struct translation *translation)
{
    translation->names[0] = name;
    translation->n_names = 1;
    for (size_t i = 0; i < keys->n_entries; i++) {
        const struct key_entry *entry = &keys->entries[i];
        if (*entry->key == '\0' || !has_sections(name, entry->key))
            continue;
        if (!multiply(translation, entry))
            return false;
        for (unsigned k = 0; k < translation->n_names; k++) {
            translation->names[k] =
                replace_all(translation->arena, translation->names[k], entry->key, text_for(entry->value, k));
            if (strlen(translation->names[k]) > MAX_LENGTH)
                return fail(translation->error, entry, "makes a name longer than 1024 bytes");
        }
    }
    return true;
}

static bool translate_sections(const struct key_names *keys, const char *name, struct translation *translation)
{
    const struct key_entry *last = NULL;
    translation->names[0] = "";
    translation->n_names = 1;
    for (size_t length; *name != '\0'; name += length + (name[length] == '.')) {
        length = strcspn(name, ".");
        const struct key_entry *entry = find_entry(keys, name, length);
        const char *section = arena_strndup(translation->arena, name, length);
        last = entry != NULL ? entry : last;
        if (entry != NULL && !multiply(translation, entry))
            return false;
        for (unsigned k = 0; k < translation->n_names; k++) {
            const char *text = entry != NULL ? text_for(entry->value, k) : section;
            translation->names[k] = arena_printf(translation->arena, "%s.%s", translation->names[k], text);
            if (strlen(translation->names[k]) > MAX_LENGTH && last != NULL)
                return fail(translation->error, last, "makes a name longer than 1024 bytes");
            if (strlen(translation->names[k]) > MAX_LENGTH)
                return error_set(translation->error, "the name is longer than %d bytes", MAX_LENGTH);
        }
    }
    return true;
}

/* Returns a name without empty sections. */
static const char *tidy(struct arena *arena, const char *name)
{
    char *tidied = arena_strdup(arena, name), *end = tidied;
    for (const char *at = name; *at != '\0'; at++)
        if (*at != '.' || (end > tidied && end[-1] != '.'))
            *end++ = *at;
    while (end > tidied && end[-1] == '.')
        end--;
    *end = '\0';
    return tidied;
}

bool key_names_translate(const struct key_names *keys, const char *name, struct arena *arena,
                         const char *ret_names[KEY_NAMES_MAX], unsigned *ret_count, struct error *error)
{
    struct translation translation = {.arena = arena, .error = error, .names = ret_names};
    bool translated = keys->by_sections ? translate_sections(keys, name, &translation)
                                        : translate_substrings(keys, name, &translation);
    if (!translated)
        return false;
    for (unsigned k = 0; k < translation.n_names; k++)
        ret_names[k] = tidy(arena, ret_names[k]);
    *ret_count = translation.n_names;
    return true;
}
