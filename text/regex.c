#include "text/regex.h"

#include "base/arena.h"

#include <stdlib.h>

/* What PCRE2 could not have since its last function was called: the work ends once that has returned, since no jump may
 * leave out its frames. */
static _Thread_local size_t lacking;

static void *allocate(size_t size, void *context)
{
    (void)context;
    void *memory = memory_try(NULL, size);
    if (memory == NULL)
        lacking = size;
    return memory;
}

static void release(void *memory, void *context)
{
    (void)context;
    free(memory);
}

/* Ends the work if PCRE2 lacked memory for what it was to make. */
static void *made(void *object)
{
    size_t size = lacking;
    lacking = 0;
    if (object == NULL && size > 0)
        memory_exhausted(size);
    return object;
}

/* Whatever is made with it copies the two functions. */
static pcre2_general_context *memory_new(void)
{
    return made(pcre2_general_context_create(allocate, release, NULL));
}

pcre2_code *regex_compile(const char *pattern, size_t length, uint32_t options, int *ret_code, size_t *ret_place)
{
    int code;
    size_t place;
    pcre2_general_context *memory = memory_new();
    pcre2_compile_context *context = made(pcre2_compile_context_create(memory));
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, length, options, ret_code != NULL ? ret_code : &code,
                                         ret_place != NULL ? ret_place : &place, context);
    pcre2_compile_context_free(context);
    pcre2_general_context_free(memory);
    return made(compiled);
}

pcre2_match_data *regex_match_data(uint32_t n_groups)
{
    pcre2_general_context *memory = memory_new();
    pcre2_match_data *match = pcre2_match_data_create(n_groups, memory);
    pcre2_general_context_free(memory);
    return made(match);
}

pcre2_match_context *regex_match_context(void)
{
    pcre2_general_context *memory = memory_new();
    pcre2_match_context *context = pcre2_match_context_create(memory);
    pcre2_general_context_free(memory);
    return made(context);
}

int regex_match(const pcre2_code *code, const char *text, size_t length, size_t from, uint32_t options,
                pcre2_match_data *match, pcre2_match_context *limits)
{
    int result = pcre2_match(code, (PCRE2_SPTR)text, length, from, options, match, limits);
    made(result == PCRE2_ERROR_NOMEMORY ? NULL : match);
    return result;
}
