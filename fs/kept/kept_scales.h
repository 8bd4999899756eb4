/* What is kept of quantized bytes with keep=quantized: their scales, from which and the source's weights the codes are
 * computed again (quant/blocks/codes.h) in a tenth of the time that the search for scales took.
 *
 * A unit of a file is SCALES_UNIT bytes. If everything in it that takes long to make is of types whose codes follow
 * from scales, the unit has a record: for each tensor in it, the scales of the blocks that overlap the unit, and a bit
 * for each of these blocks that says whether its codes follow; those of others are searched for again. A record fits a
 * granule of the store, which writes no pages of zeros after it. It is in the store once all bytes of the unit have
 * been made, and was compared with these bytes. What is quick to make is never kept; units without records are kept as
 * bytes (kept.h). */
#pragma once

#include "fs/tree/vfile.h"
#include "remote/store.h"

#define SCALES_UNIT (4 * STORE_GRANULE)

/* The records of one file. Safe from any thread, but for kept_scales_add(). */
struct kept_scales;

/* Returns the records of a file whose bytes have that key, for lists of the store under `name`; NULL: it has none. */
struct kept_scales *kept_scales_new(const struct vfile *file, const char *key, const char *name);
void kept_scales_free(struct kept_scales *scales);

/* Reports whether the unit of a byte has a record, which need not be in the store. */
bool kept_scales_apply(const struct vfile *file, uint64_t offset);

/* Reads [offset, offset + length), inside one unit that has a record, from the store and the source. Returns false if
 * the record is not in the store or damaged, or the source cannot be read. */
bool kept_scales_read(struct kept_scales *scales, const struct vfile *file, uint64_t offset, size_t length, void *out);

/* Adds a granule of a unit that has a record: the bytes of the file there, computed. Writes the record once all
 * granules of the unit were added; of the units under way, the one that was begun first is dropped if there are too
 * many. One thread may call it. */
void kept_scales_add(struct kept_scales *scales, const struct vfile *file, uint64_t granule, const void *bytes);
