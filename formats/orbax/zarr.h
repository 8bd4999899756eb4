/* Arrays of zarr, version 2 (.zarray) and 3 (zarr.json), as their metadata describe them.
 *
 * An array is a grid of chunks, each a value of a store; chunks at the ends are whole. In version 3 a chunk may be a
 * shard: a grid of smaller chunks with an index. Source: the zarr specifications; zarr 3 with the sharding codec. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text_index.h"
#include "formats/checkpoint_builder.h"
#include "quant/blocks/dtype.h"
#include "quant/views/view.h"
#include "sources/location.h"

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

/* Values by key, as the arrays of zarr are kept: in an OCDBT database, or in a file each.
 *
 * OCDBT is TensorStore's database of immutable files: manifest.ocdbt names the root of a B+tree, whose leaves name the
 * files that hold the values. The whole tree is read, every node with its checksum; values are not. Versions before the
 * newest are ignored. A store is complete before anything is read from it, and does not change after that. */

/* Where a value lies: in a source of the checkpoint. */
struct stored_value {
    struct source *source;
    uint64_t offset, length;
};

struct value_store {
    struct text_index keys; /* of values, by their number */
    const char **names;     /* the keys, in the order added; in the checkpoint's arena, like the values */
    struct stored_value *values;
    size_t n_values, n_sources;
};

/* Adds a value; false if the key is present. The key is not copied. */
bool value_store_add(struct value_store *store, struct checkpoint *checkpoint, const char *key, size_t length,
                     const struct stored_value *value);

/* Returns the value of a key, or NULL. */
const struct stored_value *value_store_find(const struct value_store *store, const char *key);

/* Opens a file of the location as a source of the checkpoint, and counts it; NULL, with an error. */
struct source *value_store_open(struct value_store *store, struct checkpoint *checkpoint,
                                const struct location *location, const char *path, struct error *error);

void value_store_free(struct value_store *store);

extern const char ocdbt_manifest[]; /* "manifest.ocdbt" */

/* Adds all values of the database in a folder: "", or its path with a '/' at its end. */
bool ocdbt_read(struct value_store *store, struct checkpoint *checkpoint, const struct location *location,
                const char *folder, struct error *error);

/* The chunks of a store's arrays, decoded, as one source.
 *
 * The source has the decoded chunks of each array one after the other: in the order of the grid, and those of a shard
 * in the order of its own grid; chunks that are not stored are zeros. zarr_view() puts them at their places. Decoded
 * chunks are kept in the cache of chunk_cache.h; a shard's index is read with the first of its chunks. */

struct zarr_chunks;

/* Makes an empty collection for a store, whose contents it takes; the store is then empty. */
struct zarr_chunks *zarr_chunks_new(struct value_store *store);
void zarr_chunks_free(void *chunks);

/* Adds an array that has elements and no refusal. Its chunks are the values NAME/KEY of the store; the name must
 * outlive the collection. Returns false if places overflow. */
bool zarr_chunks_add(struct zarr_chunks *chunks, const char *name, const struct zarr_array *array);

/* Makes the source, which takes the collection; it belongs to `base`, which must outlive it, as must the sources of
 * values. */
struct source *zarr_chunks_source(struct zarr_chunks *chunks, const struct source *base);

/* Returns the elements of array `index`, in the order added, from the source of the chunks. */
const struct view *zarr_view(struct arena *arena, const struct zarr_chunks *chunks, size_t index,
                             struct source *source);
