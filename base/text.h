/* Text that came from a file: well-formed UTF-8 or not, with control bytes or not.
 *
 * Before text from a file, a directory or a caller reaches a terminal or a log, it must pass text_printable() or
 * text_put(); error_set() and report() do this themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct arena;
struct buffer;

/* Returns the length in bytes (1 to 4) of the well-formed UTF-8 character at `text`, or 0 if there is none.
 * Well-formed as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t text_character(const char *text, size_t length);

/* Returns the offset of the first byte that is not part of well-formed UTF-8, or `length`. */
size_t text_valid_prefix(const char *text, size_t length);

/* Appends the text with U+FFFD for each ill-formed sequence: the longest beginning of a character, or one byte. */
void text_append_valid(const char *text, size_t length, struct buffer *out);

/* Copies `text` to `out` (NUL-terminated, at most `capacity` bytes with the NUL; cut between characters or escapes).
 * Characters that a terminal would obey become \xNN, byte by byte: controls (U+0000-U+001F, U+007F-U+009F), line and
 * paragraph separators, marks that set the direction of writing, and bytes that are not UTF-8. The result is at most
 * four times as long. */
void text_printable(const char *text, size_t length, char *out, size_t capacity);

/* Writes a text to a stream, escaped like text_printable(); text_put_n() accepts texts with NUL bytes. */
void text_put(const char *text, FILE *out);
void text_put_n(const char *text, size_t length, FILE *out);

/* Returns the columns of a NUL-terminated text on a terminal: 2 for wide characters, 0 for marks. */
size_t text_columns(const char *text);

/* Reports whether a NUL-terminated text begins or ends with another. */
bool text_starts_with(const char *text, const char *beginning);
bool text_ends_with(const char *text, const char *ending);

/* Reports whether a text is among the texts of an array. */
bool text_is_one_of(const char *text, const char *const *texts, size_t n_texts);

/* Reports whether a word is among those of a list, separated by blanks. */
bool text_has_word(const char *list, const char *word, size_t length);

/* Returns the value of a hexadecimal digit of either case; -1 for any other character. */
int text_hex_digit(char c);

/* Finds the word nearest to a typed word, each of at most 40 bytes. `best` stays NULL while more than a third of the
 * letters differ. Added letters cost less than changed ones: Q4_K_M for Q4K, not Q4_0. */
struct text_guess {
    const char *typed, *best;
    size_t distance; /* of the best */
};
void text_guess_try(struct text_guess *guess, const char *word);

/* Writes "; did you mean 'mount'?" for the end of a message, or "" if no word is near. Returns `out`. */
enum { TEXT_QUESTION = 300 };
const char *text_guess_question(const struct text_guess *guess, char out[TEXT_QUESTION]);

/* Returns the last name of a path: what comes after its last slash. For the other one, slashes at the end do not count:
 * its name, in the arena, is "" only if there is none. */
const char *text_last_name(const char *path);
const char *text_trimmed_name(struct arena *arena, const char *path);

/* Returns the length of a path without slashes at its end, but for one that is the whole path. */
size_t text_trimmed_length(const char *path);

/* Returns the last place of a byte, or NULL: memrchr(), which not every C library has. */
const char *text_last(const char *text, size_t length, char byte);

/* Compares two texts as bytes, a prefix before its extension: returns less than, equal to or greater than 0. */
int text_compare(const char *a, size_t a_length, const char *b, size_t b_length);

/* Writes a shape, "[2, 3]", for messages, cut to `capacity` bytes with the NUL. Returns `out`. */
const char *shape_text(const uint64_t *shape, unsigned rank, char *out, size_t capacity);
