/* Regular expressions that memory does not suffice for: the work ends once PCRE2 has returned. */
#include "text/regex.h"

#include "base/attempt.h"
#include "tests/unit/check.h"
#include "tests/unit/lack.h"

static int n_entered, n_returned;

/* In place of PCRE2's function, which it calls. */
pcre2_code *pcre2_compile(PCRE2_SPTR pattern, size_t length, uint32_t options, int *code, size_t *place,
                          pcre2_compile_context *context)
{
    static pcre2_code *(*theirs)(PCRE2_SPTR, size_t, uint32_t, int *, size_t *, pcre2_compile_context *);
    lack_find("pcre2_compile_8", &theirs);
    n_entered++;
    pcre2_code *compiled = theirs(pattern, length, options, code, place, context);
    n_returned++;
    return compiled;
}

int pcre2_match(const pcre2_code *code, PCRE2_SPTR text, size_t length, size_t from, uint32_t options,
                pcre2_match_data *match, pcre2_match_context *context)
{
    static int (*theirs)(const pcre2_code *, PCRE2_SPTR, size_t, size_t, uint32_t, pcre2_match_data *,
                         pcre2_match_context *);
    lack_find("pcre2_match_8", &theirs);
    n_entered++;
    int result = theirs(code, text, length, from, options, match, context);
    n_returned++;
    return result;
}

static void look(void *context)
{
    /* A pattern whose many ways take more memory than a match has at hand. */
    static const char text[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    pcre2_code *code = regex_compile("(?:(a)|b)*c?$", PCRE2_ZERO_TERMINATED, 0, NULL, NULL);
    pcre2_match_data *match = regex_match_data(2);
    pcre2_match_context *limits = regex_match_context();
    *(int *)context = regex_match(code, text, strlen(text), 0, 0, match, limits);
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
}

int main(void)
{
    int result = 0, n_failed = 0;
    struct error error;
    if (!lack_is_possible()) {
        check_skip("lack of memory", "no allocation can be made to fail here");
        return check_done();
    }
    for (bool is_done = false; !is_done; n_failed += !is_done) {
        lack_of(n_failed);
        is_done = attempt(look, &result, &error);
        lack_of(-1);
        CHECK_NAMED(is_done || strstr(error.message, "out of memory") != NULL, error.message);
        CHECK(n_entered == n_returned);
    }
    CHECK(result == 2 && n_failed >= 7); /* the pattern, its match and context, and what is taken within a match */
    return check_done();
}
