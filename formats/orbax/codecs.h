/* Decompressors of Orbax's files: zstd and gzip.
 *
 * Sizes are known or bounded before anything is allocated. */
#pragma once

#include <stddef.h>

enum codec { CODEC_ZSTD, CODEC_GZIP /* or zlib */, CODEC_CRC32C /* four bytes at the end */ };

/* Decodes a chunk into exactly `length` bytes. Returns NULL, or what is wrong. */
const char *codec_decode(enum codec codec, const unsigned char *bytes, size_t n_bytes, unsigned char *out,
                         size_t length);

/* Decodes zstd's data of an unknown size, at most `limit` bytes, into memory that the caller frees; NULL if they are
 * damaged or larger. */
unsigned char *codec_decode_zstd(const unsigned char *bytes, size_t n_bytes, size_t limit, size_t *ret_length);
