/* Characters that stand for bytes in tokenizers of the GPT-2 kind: a printable Latin-1 byte is its own character; the
 * other bytes, in order, are U+0100 and on.
 *
 * Source: bytes_to_unicode() of GPT-2's encoder.py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { BYTE_CHARACTER_BYTES = 2 };

/* Writes a byte's character in UTF-8, without a NUL; returns the length of the character in bytes. */
size_t byte_character(unsigned char byte, char out[BYTE_CHARACTER_BYTES]);

/* Writes the bytes that the characters of `text` stand for; `bytes` has room for `length`. Returns false if a character
 * stands for no byte. */
bool byte_characters_decode(const char *text, size_t length, unsigned char *bytes, size_t *ret_n_bytes);
