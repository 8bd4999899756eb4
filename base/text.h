/* Text that came from a file: well-formed UTF-8 or not, with control bytes or not.
 *
 * Whatever a file, a directory or a caller named, and that is to be seen on a terminal or in a log, passes
 * text_printable() or text_put(); error_set() and report() do it themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct buffer;

/* Length in bytes (1 to 4) of the well-formed UTF-8 character at `text`, or 0 where there is none.
 * Well-formed as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t text_character(const char *text, size_t length);

/* The offset of the first byte that is not part of well-formed UTF-8, or `length` where all of it is. */
size_t text_valid_prefix(const char *text, size_t length);

/* Appends the text with U+FFFD for what is not well-formed: one for each longest beginning of a character, or byte. */
void text_append_valid(const char *text, size_t length, struct buffer *out);

/* Copies `text` to `out` (NUL-terminated, at most `capacity` bytes with the NUL; cut between characters). What a
 * terminal would obey is written as \xNN, byte by byte: controls (U+0000-U+001F, U+007F-U+009F), line and paragraph
 * separators, marks and overrides of the direction of writing, and bytes that are not UTF-8. What is shown is at most
 * four times as long. */
void text_printable(const char *text, size_t length, char *out, size_t capacity);

/* Writes a text so to a stream; the other one takes texts that may hold NUL bytes. */
void text_put(const char *text, FILE *out);
void text_put_n(const char *text, size_t length, FILE *out);

/* The columns that a NUL-terminated text takes on a terminal: 2 for wide characters, none for marks. */
size_t text_columns(const char *text);

/* Whether a NUL-terminated text begins, or ends, so. */
bool text_starts_with(const char *text, const char *beginning);
bool text_ends_with(const char *text, const char *ending);

/* The value of a hexadecimal digit of either case; -1 for any other character. */
int text_hex_digit(char c);

/* The word that is nearest to what was typed: `best` stays NULL while none is near, so that a third of the letters is
 * wrong. Of those that are, one with the same letters and more comes before one with others: Q4_K_M for Q4K, not Q4_0.
 */
struct text_guess {
    const char *typed, *best;
    size_t distance; /* of the best */
};
void text_guess_try(struct text_guess *guess, const char *word);

/* "; did you mean 'mount'?" for the end of a message, or nothing where none is near. Returns `out`. */
enum { TEXT_QUESTION = 300 };
const char *text_guess_question(const struct text_guess *guess, char out[TEXT_QUESTION]);

/* Compares two texts as bytes, the shorter one first where it starts the other: less than, equal to or greater than 0.
 */
int text_compare(const char *a, size_t a_length, const char *b, size_t b_length);
