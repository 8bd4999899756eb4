/* The characters that stand for bytes in tokenizers of the GPT-2 kind: printable Latin-1 stands for itself, the other
 * bytes in their order for U+0100 and on.
 *
 * Source: bytes_to_unicode() of GPT-2's encoder.py. */
#pragma once

#include <stddef.h>

enum { BYTE_CHARACTER_BYTES = 2 };

/* Writes the character in UTF-8, without a NUL; returns how many bytes it has. */
size_t byte_character(unsigned char byte, char out[BYTE_CHARACTER_BYTES]);
