#include "models/engines/ct_ignored.h"

#include "base/text.h"
#include "text/regex.h"

#include <string.h>

static const char regular[] = "re:";

struct pattern {
    const char *name; /* NULL: `code` counts */
    pcre2_code *code;
};

struct ct_ignored {
    struct pattern *patterns;
    size_t n_patterns;
    pcre2_match_data *match;
};

static void release(void *context)
{
    struct ct_ignored *ignored = context;
    for (size_t i = 0; i < ignored->n_patterns; i++)
        pcre2_code_free(ignored->patterns[i].code);
    pcre2_match_data_free(ignored->match);
}

static bool compile(const char *text, struct pattern *ret_pattern, struct error *error)
{
    int code;
    size_t place;
    PCRE2_UCHAR reason[256];
    *ret_pattern = (struct pattern){.name = text};
    if (!text_starts_with(text, regular))
        return true;
    text += strlen(regular);
    *ret_pattern = (struct pattern){.code = regex_compile(text, PCRE2_ZERO_TERMINATED, PCRE2_ANCHORED, &code, &place)};
    if (ret_pattern->code != NULL)
        return true;
    pcre2_get_error_message(code, reason, sizeof reason);
    return error_set(error, "'%s': at %zu: %s", text, place, (const char *)reason);
}

const struct ct_ignored *ct_ignored_new(struct arena *arena, const char *const *patterns, struct error *error)
{
    struct ct_ignored *ignored = arena_alloc(arena, sizeof *ignored);
    size_t n_patterns = 0;
    while (patterns[n_patterns] != NULL)
        n_patterns++;
    ignored->patterns = arena_array(arena, n_patterns, sizeof *ignored->patterns);
    ignored->match = regex_match_data(1);
    arena_on_free(arena, release, ignored);
    for (; ignored->n_patterns < n_patterns; ignored->n_patterns++)
        if (!compile(patterns[ignored->n_patterns], &ignored->patterns[ignored->n_patterns], error))
            return NULL;
    return ignored;
}

bool ct_is_ignored(const struct ct_ignored *ignored, const char *module, size_t length)
{
    for (size_t i = 0; i < ignored->n_patterns; i++) {
        const struct pattern *pattern = &ignored->patterns[i];
        if (pattern->name != NULL ? strlen(pattern->name) == length && memcmp(module, pattern->name, length) == 0
                                  : regex_match(pattern->code, module, length, 0, 0, ignored->match, NULL) >= 0)
            return true;
    }
    return false;
}

bool ct_ignored_check(const char *pattern, struct error *error)
{
    struct arena *arena = arena_new();
    const char *const only[] = {pattern, NULL};
    bool good = *pattern != '\0' || error_set(error, "the pattern is empty");
    for (const char *at = pattern; *at != '\0' && good; at++)
        if (*at <= ' ' || *at > '~' || strchr("'\",", *at) != NULL)
            good = error_set(error, "'%s': a pattern has no blanks, quotation marks, commas or letters beyond ASCII",
                             pattern);
    good = good && ct_ignored_new(arena, only, error) != NULL;
    arena_free(arena);
    return good;
}
