/* Text that came from a file: well-formed UTF-8 or not, with control bytes or not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes (1 to 4) of the well-formed UTF-8 character at `text`, or 0 where there is none.
 * Well-formed as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t text_character(const char *text, size_t length);

/* The offset of the first byte that is not part of well-formed UTF-8, or `length` where all of it is. */
size_t text_valid_prefix(const char *text, size_t length);

/* Copies `text` to `out` (NUL-terminated, at most `capacity` bytes with the NUL; cut between characters),
 * with control and invalid bytes written as \xNN: what may be shown on a terminal. */
void text_printable(const char *text, size_t length, char *out, size_t capacity);

/* Compares two texts as bytes, the shorter one first where it starts the other: less than, equal to or greater than 0. */
int text_compare(const char *a, size_t a_length, const char *b, size_t b_length);
