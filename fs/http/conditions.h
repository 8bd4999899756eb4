/* Headers that make a request conditional, or ask for a part of a file.
 *
 * Source: RFC 9110, sections 8.8 (validators), 13 (conditional requests) and 14 (ranges). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum range { RANGE_WHOLE, RANGE_PART, RANGE_UNSATISFIABLE };

/* Parses a Range header; NULL: none was sent. Only one range of bytes is served: several, other units and invalid
 * headers stand for the whole file. A part is [*ret_first, *ret_first + *ret_length). */
enum range range_parse(const char *header, uint64_t size, uint64_t *ret_first, uint64_t *ret_length);

/* Reports whether a list of entity tags (If-Match, If-None-Match) has `etag`, which is strong and has its quotation
 * marks, or is "*". `weak`: W/"x" matches "x", too. */
bool etag_is_listed(const char *list, const char *etag, bool weak);

/* Reports whether an If-Modified-Since header names a date at or after `modified`. A header that is no date of the form
 * "Sun, 06 Nov 1994 08:49:37 GMT", the only one that is sent today, counts as none. */
bool unmodified_since(const char *header, time_t modified);
