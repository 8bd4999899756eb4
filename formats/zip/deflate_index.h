/* The contents of a zip archive's deflated members, as one source with random access.
 *
 * Deflated data cannot be read from the middle, so an index keeps the inflater's state before each INFLATE_CHUNK bytes
 * of output: some 42 kB, a hundredth of the chunk. Any chunk is inflated from the state before it, and kept in the
 * cache of chunk_cache.h. The first read of a member makes its index: it inflates the whole member once, and fails if
 * the data is damaged, contradicts the directory's size or CRC, or is followed by other bytes: damage gives an error,
 * never wrong values. */
#pragma once

#include "formats/zip/zip.h"
#include "sources/source.h"

enum { INFLATE_CHUNK = 4 * 1024 * 1024 };

/* Makes a source of the contents of the deflated members, each at its `inflated`. The source of the directory must
 * outlive it; the directory need not. A member without a name is a file of gzip. */
struct source *inflated_source_new(const struct zip_directory *directory);

/* The contents of a file that is compressed by gzip, as a source with random access (deflate_index.h).
 *
 * The file has one member, as tar and Python write it; the bytes after it must be none. gzip keeps the size modulo
 * 2^32: of the sizes that fit, the smallest that is not below the compressed one is taken, and a file whose data have
 * another size is refused when they are read first. As for members of zip archives, the data may not be more than 64
 * times larger than the file, and 256 MiB. Source: RFC 1952. */

/* Reports whether a file begins as gzip's do. */
bool gzip_begins(const unsigned char *head, size_t length);

/* Makes the source; `file` must outlive it. NULL, with an error. */
struct source *gzip_source_new(const struct source *file, struct error *error);
