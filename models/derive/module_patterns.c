#include "models/derive/adapter.h"

#include "base/arena.h"
#include "text/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Limits for regular expressions: searches in total, steps of a search, and bytes of a pattern. */
enum { MOST_SEARCHES = 1 << 18, MOST_STEPS = 4096, MOST_LENGTH = 1024 };

struct module_pattern {
    const char *text;
    size_t length;
    pcre2_code *code; /* NULL: a plain name */
    const struct json *value;
};

struct module_patterns {
    const char *key;
    struct module_pattern *items;
    size_t count;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

void module_patterns_free(struct module_patterns *patterns)
{
    if (patterns == NULL)
        return;
    for (size_t i = 0; i < patterns->count; i++)
        pcre2_code_free(patterns->items[i].code);
    pcre2_match_data_free(patterns->match);
    pcre2_match_context_free(patterns->limits);
    free(patterns->items);
    free(patterns);
}

/* Reports whether a pattern has no special characters except dots, which match any character. */
static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("._-", text[i]) == NULL)
            return false;
    return length > 0;
}

/* Returns NULL if the pattern is no regular expression, or too long. */
static pcre2_code *compile(const char *pattern, size_t length)
{
    static const char before[] = "(?:.*\\.)?(?:", after[] = ")$";
    char text[MOST_LENGTH + sizeof before + sizeof after];
    if (length > MOST_LENGTH)
        return NULL;
    size_t used = strlen(before);
    memcpy(text, before, used);
    memcpy(text + used, pattern, length);
    memcpy(text + used + length, after, strlen(after));
    return regex_compile(text, used + length + strlen(after), PCRE2_ANCHORED, NULL, NULL);
}

static bool read_all(struct module_patterns *patterns, const struct json *object, size_t n_modules, struct error *error)
{
    size_t n_expressions = 0;
    for (struct json_member member = {0}; json_next_member(object, &member);) {
        struct module_pattern *item = &patterns->items[patterns->count++];
        *item = (struct module_pattern){.text = member.key, .length = member.key_length, .value = member.value};
        if (is_plain(item->text, item->length))
            continue;
        if (++n_expressions > MOST_SEARCHES / (n_modules + 1))
            return error_set(error, "adapter_config.json: %s has more than %zu patterns, too many for %zu weights",
                             patterns->key, MOST_SEARCHES / (n_modules + 1), n_modules);
        item->code = compile(item->text, item->length);
        if (item->code == NULL)
            return error_set(error, "adapter_config.json: %s: '%.200s' is not a pattern", patterns->key, item->text);
    }
    return true;
}

struct module_patterns *module_patterns_read(const struct json *config, const char *key, size_t n_modules,
                                             struct error *error)
{
    const struct json *object = json_get(config, key);
    size_t n = json_count_members(object);
    struct module_patterns *patterns = memory_alloc(sizeof *patterns);
    *patterns = (struct module_patterns){
        .key = key,
        .items = memory_alloc((n + 1) * sizeof *patterns->items),
        .match = regex_match_data(1),
        .limits = regex_match_context(),
    };
    pcre2_set_match_limit(patterns->limits, MOST_STEPS);
    if (n == 0 || read_all(patterns, object, n_modules, error))
        return patterns;
    module_patterns_free(patterns);
    return NULL;
}

static bool matches_plainly(const struct module_pattern *item, const char *module, size_t length)
{
    if (item->length > length || (item->length < length && module[length - item->length - 1] != '.'))
        return false;
    const char *end = module + length - item->length;
    for (size_t i = item->length; i-- > 0;)
        if (item->text[i] != end[i] && item->text[i] != '.')
            return false;
    return true;
}

bool module_patterns_find(const struct module_patterns *patterns, const char *module, size_t length,
                          const struct json **ret_value, struct error *error)
{
    *ret_value = NULL;
    for (size_t i = 0; i < patterns->count && *ret_value == NULL; i++) {
        const struct module_pattern *item = &patterns->items[i];
        int result = PCRE2_ERROR_NOMATCH;
        if (item->code != NULL)
            result = regex_match(item->code, module, length, 0, 0, patterns->match, patterns->limits);
        if (result >= 0 || (item->code == NULL && matches_plainly(item, module, length)))
            *ret_value = item->value;
        else if (result != PCRE2_ERROR_NOMATCH)
            return error_set(error, "adapter_config.json: %s: '%.200s' takes too many steps to compare with '%.*s'",
                             patterns->key, item->text, length < MOST_LENGTH ? (int)length : MOST_LENGTH, module);
    }
    return true;
}
