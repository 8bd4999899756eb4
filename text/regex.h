/* Regular expressions of PCRE2 whose memory comes from base/arena.h: running out of it ends the work, once PCRE2
 * has returned, instead of looking like an invalid pattern or like no match. The results are freed by PCRE2's own
 * functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Compiles a pattern of `length` bytes, or PCRE2_ZERO_TERMINATED; NULL for an invalid one: *ret_code is the error,
 * *ret_place where it is. Both may be NULL. */
pcre2_code *regex_compile(const char *pattern, size_t length, uint32_t options, int *ret_code, size_t *ret_place);

/* Makes room for the places of so many groups, that of the whole match included. */
pcre2_match_data *regex_match_data(uint32_t n_groups);

pcre2_match_context *regex_match_context(void);

/* Calls pcre2_match(). */
int regex_match(const pcre2_code *code, const char *text, size_t length, size_t from, uint32_t options,
                pcre2_match_data *match, pcre2_match_context *limits);
