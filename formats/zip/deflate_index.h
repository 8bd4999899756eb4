/* The contents of a zip archive's deflated members, as one source with random access.
 *
 * Deflated data cannot be read from the middle, so an index keeps the inflater's state before each INFLATE_CHUNK bytes
 * of output: some 42 kB, a hundredth of the chunk. Any chunk is inflated from the state before it, and kept in the
 * cache of chunk_cache.h. The first read of a member makes its index: it inflates the whole member once, and fails if
 * the data is damaged, contradicts the directory's size or CRC, or is followed by other bytes: damage gives an error,
 * never wrong values. */
#pragma once

#include "formats/zip/zip.h"

enum { INFLATE_CHUNK = 4 * 1024 * 1024 };

/* Makes a source of the contents of the deflated members, each at its `inflated`. The source of the directory must
 * outlive it; the directory need not. A member without a name is a file of gzip (gzip.h). */
struct source *inflated_source_new(const struct zip_directory *directory);
