#include "models/layouts/key_names.h"

#include <string.h>

enum { MAX_LENGTH = 1024 };

struct translation {
    struct arena *arena;
    struct error *error;
    const char **names;
    unsigned n_names;
};

/* What the last dictionary that has it says of a key. */
static const struct json *value_of(const struct key_names *keys, const char *key)
{
    const struct json *value = NULL;
    for (unsigned i = 0; i < keys->n_dictionaries; i++)
        if (json_get(keys->dictionaries[i], key) != NULL)
            value = json_get(keys->dictionaries[i], key);
    return value;
}

static bool is_in_earlier(const struct key_names *keys, unsigned dictionary, const char *key)
{
    for (unsigned i = 0; i < dictionary; i++)
        if (json_get(keys->dictionaries[i], key) != NULL)
            return true;
    return false;
}

/* Whether `key` is whole sections of `name`. */
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

/* As many names as the value has texts; name k gets text k modulo their number. */
static bool multiply(struct translation *translation, const struct json *value, const char *key)
{
    size_t count = json_is(value, JSON_ARRAY) ? json_count(value) : 1;
    if (count == 0 || translation->n_names * count > KEY_NAMES_MAX)
        return error_set(translation->error, "'%.100s' makes no name, or more than %d", key, KEY_NAMES_MAX);
    for (size_t i = translation->n_names * count; i-- > 0;)
        translation->names[i] = translation->names[i / count];
    translation->n_names *= (unsigned)count;
    return true;
}

static const char *text_for(const struct json *value, unsigned k)
{
    return json_string(json_is(value, JSON_ARRAY) ? json_at(value, k % json_count(value)) : value, NULL);
}

static bool replace_key(struct translation *translation, const struct json *value, const char *key)
{
    if (!multiply(translation, value, key))
        return false;
    for (unsigned k = 0; k < translation->n_names; k++) {
        const char *text = text_for(value, k);
        if (text == NULL)
            return error_set(translation->error, "'%.100s' is neither a text nor a list of texts", key);
        translation->names[k] = replace_all(translation->arena, translation->names[k], key, text);
        if (strlen(translation->names[k]) > MAX_LENGTH)
            return error_set(translation->error, "'%.100s' makes a name longer than %d bytes", key, MAX_LENGTH);
    }
    return true;
}

static bool translate_substrings(const struct key_names *keys, const char *name, struct translation *translation)
{
    translation->names[0] = name;
    translation->n_names = 1;
    for (unsigned i = 0; i < keys->n_dictionaries; i++)
        for (const struct json *member = json_first(keys->dictionaries[i]); member != NULL;
             member = json_next(member)) {
            const char *key = json_key(member, NULL);
            if (*key == '\0' || is_in_earlier(keys, i, key) || !has_sections(name, key))
                continue;
            if (!replace_key(translation, value_of(keys, key), key))
                return false;
        }
    return true;
}

static bool translate_sections(const struct key_names *keys, const char *name, struct translation *translation)
{
    translation->names[0] = "";
    translation->n_names = 1;
    for (size_t length; *name != '\0'; name += length + (name[length] == '.')) {
        length = strcspn(name, ".");
        const char *section = arena_strndup(translation->arena, name, length);
        const struct json *value = value_of(keys, section);
        if (value != NULL && !multiply(translation, value, section))
            return false;
        for (unsigned k = 0; k < translation->n_names; k++) {
            const char *text = value != NULL ? text_for(value, k) : section;
            if (text == NULL)
                return error_set(translation->error, "'%.100s' is neither a text nor a list of texts", section);
            translation->names[k] = arena_printf(translation->arena, "%s.%s", translation->names[k], text);
        }
    }
    return true;
}

/* Without empty sections. */
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
