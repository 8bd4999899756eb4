/* The characters that stand for bytes in tokenizers of the GPT-2 kind: printable Latin-1 stands for itself, the other
 * bytes in their order for U+0100 and on.
 *
 * Source: bytes_to_unicode() of GPT-2's encoder.py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { BYTE_CHARACTER_BYTES = 2 };

/* Writes the character in UTF-8, without a NUL; returns how many bytes it has. */
size_t byte_character(unsigned char byte, char out[BYTE_CHARACTER_BYTES]);

/* The bytes that a text of such characters stands for, of which `bytes` has room for `length`; false where one of them
 * is no such character. */
bool byte_characters_decode(const char *text, size_t length, unsigned char *bytes, size_t *ret_n_bytes);
