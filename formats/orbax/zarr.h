/* Arrays of zarr, version 2 (.zarray) and 3 (zarr.json), as their metadata describe them.
 *
 * An array is a grid of chunks, each a value of a store; chunks at the ends are whole. In version 3 a chunk may be a
 * shard: a grid of smaller chunks with an index. Source: the zarr specifications; zarr 3 with the sharding codec. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "quant/blocks/dtype.h"

#include <stddef.h>

enum codec { CODEC_ZSTD, CODEC_GZIP /* or zlib */, CODEC_CRC32C /* four bytes at the end */ };

enum { ZARR_MAX_RANK = 16, ZARR_MAX_CODECS = 4 };

/* Larger chunks are refused. */
static const uint64_t zarr_max_chunk = UINT64_C(1) << 30;

struct zarr_array {
    const struct dtype *dtype;
    bool swap; /* elements are big-endian */
    unsigned rank;
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t chunk[ZARR_MAX_RANK];      /* of the grid: a shard, or a chunk */
    uint64_t inner[ZARR_MAX_RANK];      /* of what is decoded at once: the same, or a chunk in the shard */
    unsigned order[ZARR_MAX_RANK];      /* dimension i of the elements in a chunk is dimension order[i] of the array */
    enum codec codecs[ZARR_MAX_CODECS]; /* in the order of decoding; at most one of them compresses */
    unsigned n_codecs;
    bool sharded, index_first, index_has_checksum;
    bool zero_fill;      /* elements of chunks that are not stored are 0; else such chunks have no values */
    bool version_3;      /* keys begin with "c" */
    char separator;      /* between the numbers of a key */
    const char *refusal; /* why the array has no values; NULL: it has */

    /* computed from the others */
    uint64_t n_elements, inner_bytes, n_inner; /* n_inner: of a shard; 1 without shards */
    uint64_t n_chunks;
};

/* Reads the metadata of an array. What is not supported becomes a refusal, in the arena; damage fails, with the name
 * before the error. */
bool zarr_read(const char *text, size_t length, const char *name, struct arena *arena, struct zarr_array *ret_array,
               struct error *error);

/* Returns the length of the grid in one dimension. */
uint64_t zarr_grid(const struct zarr_array *array, unsigned dimension);

/* Writes the key of a chunk of the grid, without the array's name. */
enum { ZARR_KEY = 8 + 21 * ZARR_MAX_RANK };
void zarr_key(const struct zarr_array *array, uint64_t number, char out[ZARR_KEY]);

/* Decompressors of Orbax's files: zstd and gzip.
 *
 * Sizes are known or bounded before anything is allocated. */

/* Decodes a chunk into exactly `length` bytes. Returns NULL, or what is wrong. */
const char *codec_decode(enum codec codec, const unsigned char *bytes, size_t n_bytes, unsigned char *out,
                         size_t length);

/* Decodes zstd's data of an unknown size, at most `limit` bytes, into memory that the caller frees; NULL if they are
 * damaged or larger. */
unsigned char *codec_decode_zstd(const unsigned char *bytes, size_t n_bytes, size_t limit, size_t *ret_length);
