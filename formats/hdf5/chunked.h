/* The chunks of a file's datasets, decoded, as one source.
 *
 * The source has the chunks of each dataset one after the other, in the order of their grid, each as large as a whole
 * chunk; chunks that are not stored have the fill value. Views put the chunks at their places. The index of a dataset
 * is read when the first of its bytes is, and decoded chunks are kept in the cache of chunk_cache.h. */
#pragma once

#include "formats/hdf5/dataset.h"

struct hdf5_chunked;

/* Makes an empty collection for a file, which it does not keep. hdf5_chunked_free() or hdf5_chunked_source() takes it.
 */
struct hdf5_chunked *hdf5_chunked_new(const struct hdf5 *file);
void hdf5_chunked_free(void *chunked);

/* Adds a copy of a chunked dataset that has elements and no refusal; returns false if places overflow. */
bool hdf5_chunked_add(struct hdf5_chunked *chunked, const struct hdf5_dataset *dataset);

/* Return the datasets in the order added, and the place of a dataset's first chunk in the source. */
size_t hdf5_chunked_count(const struct hdf5_chunked *chunked);
const struct hdf5_dataset *hdf5_chunked_dataset(const struct hdf5_chunked *chunked, size_t index, uint64_t *ret_start);

/* Makes the source of all datasets; NULL: there are none. The file's source must outlive it. */
struct source *hdf5_chunked_source(struct hdf5_chunked *chunked);
