/* The chunks of a store's arrays, decoded, as one source.
 *
 * The source has the decoded chunks of each array one after the other: in the order of the grid, and those of a shard
 * in the order of its own grid; chunks that are not stored are zeros. zarr_view() puts them at their places. Decoded
 * chunks are kept in the cache of chunk_cache.h; a shard's index is read with the first of its chunks. */
#pragma once

#include "formats/orbax/value_store.h"
#include "formats/orbax/zarr.h"
#include "quant/views/view.h"

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
