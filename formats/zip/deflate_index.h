/* The contents of the deflated members of a zip archive, as one source, with an index.
 *
 * Deflated data cannot be read from the middle, so the state of the inflater is kept after each INFLATE_CHUNK bytes of
 * output: some 42 kB each, one part in a hundred of what is inflated. Any chunk is inflated from the state before it,
 * and kept in the cache of chunk_cache.h. The index is made when the first byte of a member is asked for: the member is
 * inflated once as a whole then, and refused where it is damaged, its size or CRC is not what the directory says, or
 * anything follows its end: a damaged one is an error rather than wrong values. */
#pragma once

#include "formats/zip/zip.h"

enum { INFLATE_CHUNK = 4 * 1024 * 1024 };

/* A source that holds the contents of the deflated members, each at its `inflated`. It needs the source of the
 * directory for as long as it lives, not the directory. */
struct source *inflated_source_new(const struct zip_directory *directory);
