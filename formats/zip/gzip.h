/* The contents of a file that is compressed by gzip, as a source with random access (deflate_index.h).
 *
 * The file has one member, as tar and Python write it; the bytes after it must be none. gzip keeps the size modulo
 * 2^32: of the sizes that fit, the smallest that is not below the compressed one is taken, and a file whose data have
 * another size is refused when they are read first. As for members of zip archives, the data may not be more than 64
 * times larger than the file, and 256 MiB. Source: RFC 1952. */
#pragma once

#include "sources/source.h"

/* Reports whether a file begins as gzip's do. */
bool gzip_begins(const unsigned char *head, size_t length);

/* Makes the source; `file` must outlive it. NULL, with an error. */
struct source *gzip_source_new(const struct source *file, struct error *error);
