#include "text/regex.h"

#include "base/arena.h"

#include <stdlib.h>

static void *allocate(size_t size, void *context)
{
    (void)context;
    return memory_alloc(size);
}

static void release(void *memory, void *context)
{
    (void)context;
    free(memory);
}

/* Whatever is made with it copies the two functions. */
static pcre2_general_context *memory_new(void)
{
    return pcre2_general_context_create(allocate, release, NULL);
}

pcre2_code *regex_compile(const char *pattern, size_t length, uint32_t options, int *ret_code, size_t *ret_place)
{
    int code;
    size_t place;
    pcre2_general_context *memory = memory_new();
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, length, options, ret_code != NULL ? ret_code : &code,
                                         ret_place != NULL ? ret_place : &place, context);
    pcre2_compile_context_free(context);
    pcre2_general_context_free(memory);
    return compiled;
}

pcre2_match_data *regex_match_data(uint32_t n_groups)
{
    pcre2_general_context *memory = memory_new();
    pcre2_match_data *match = pcre2_match_data_create(n_groups, memory);
    pcre2_general_context_free(memory);
    return match;
}

pcre2_match_context *regex_match_context(void)
{
    pcre2_general_context *memory = memory_new();
    pcre2_match_context *context = pcre2_match_context_create(memory);
    pcre2_general_context_free(memory);
    return context;
}
