/* Snappy's block format. Source: its format_description.txt. */
#pragma once

#include <stddef.h>

/* Returns the decompressed bytes with a NUL after them, in memory that the caller frees; NULL if the data are damaged,
 * hold more than `most` bytes, or claim more than the input can give. */
unsigned char *snappy_decompress(const unsigned char *input, size_t length, size_t most, size_t *ret_length);
