/* The contents of the deflated members of a zip archive, as one source.
 *
 * libzip inflates and checks each CRC; it is asked nothing else, and what its directory says of every member has to be
 * what ours says (zip.h). Deflated data cannot be read from the middle, so contents are kept in chunks of
 * INFLATE_CHUNK bytes in a cache that all archives share and that never holds more than INFLATE_CACHE bytes; the least
 * recently used go first. A member is inflated once as a whole before its first byte is served, so that a damaged one is
 * an error rather than wrong values; chunks that have left the cache since are inflated again from the start of
 * their member. Members that fit the cache are thus inflated once; the reading of larger ones is slow, and correct. */
#pragma once

#include "formats/torch/zip.h"

enum { INFLATE_CHUNK = 32 * 1024 * 1024, INFLATE_CACHE = 256 * 1024 * 1024 };

/* A source that holds the contents of the deflated members, each at its `inflated`. It needs the source of the directory for as
 * long as it lives, not the directory. The error names the member where libzip and we disagree. */
struct source *inflated_source_new(const struct zip_directory *directory, struct error *error);
