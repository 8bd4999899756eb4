/* Tables of keys and values, as LevelDB has them: the index of a TensorFlow checkpoint.
 *
 * Blocks hold entries in ascending order of their keys; a key shares its beginning with the one before. Blocks may be
 * compressed by Snappy; each has a checksum. Every contradiction is an error. Source: LevelDB's table_format.md, and
 * the format description of Snappy. */
#pragma once

#include "sources/source.h"

#include <stddef.h>
#include <stdint.h>

enum { TABLE_MAX_BLOCK = 64 * 1024 * 1024, TABLE_MAX_KEY = 64 * 1024 };

struct table_entry {
    const char *key; /* without a NUL at its end */
    size_t key_length;
    const struct source *value; /* until the callback returns */
};

typedef bool table_take(void *context, const struct table_entry *entry, struct error *error);

/* Reports whether the source ends as a table does. */
bool table_probe(const struct source *source);

/* Calls take(context) for each entry, until it fails. The error names the file. */
bool table_read(const struct source *source, table_take *take, void *context, struct error *error);

/* Snappy's block format. Source: its format_description.txt. */

/* Returns the decompressed bytes with a NUL after them, in memory that the caller frees; NULL if the data are damaged,
 * hold more than `most` bytes, or claim more than the input can give. */
unsigned char *snappy_decompress(const unsigned char *input, size_t length, size_t most, size_t *ret_length);

/* CRC-32C (Castagnoli), as it is, and in the masked form in which LevelDB and TensorFlow store it. Source: RFC 3720,
 * appendix B.4; LevelDB's table_format.md. */

uint32_t crc32c(const void *bytes, size_t length);
uint32_t crc32c_masked(const void *bytes, size_t length);
