/* Sources that are regular files (source_file.c), and sources whose bytes are made (source_remade.c). */
#pragma once

#include "sources/source.h"

#include <sys/stat.h>

/* Sources that are regular files: for location_local.c, which finds them, alone. */

/* Calls opener_open_at(); raises the soft limit of descriptors when it is reached. */
int source_file_open_at(int directory, const char *path, int flags);

/* Opens the regular file that a descriptor has found (system_find_flags), which the caller closes. Messages call the
 * source `name`. Returns NULL on failure. */
struct source *source_file_open(int found, const char *name, struct error *error);

struct source_identity source_file_identity(const struct stat *status);

/* A source whose bytes are made, and made again when they are needed: long values that are read rarely, of which a
 * process may have hundreds.
 *
 * The bytes are kept while they are among those of all such sources that were read last, up to REMADE_KEPT bytes in the
 * process; those read last are kept whatever their size. Safe from any thread. */

enum { REMADE_KEPT = 16 << 20 }; /* the largest usual vocabulary, that of Gemma, has 15 MB */

/* Makes the same parts each time, in empty buffers that the caller frees. Called by readers, on any thread, one at a
 * time. */
typedef bool remade_function(void *context, struct buffer *parts, size_t n_parts, struct error *error);

/* Reads [offset, offset + length) of the parts, one after the other, from where a copy of them is kept; false: there is
 * none. Called by readers, on any thread. */
typedef bool remade_copy_function(void *context, uint64_t offset, size_t length, void *out);

/* Makes a source that belongs to a file, as source_new() does: its bytes are those of at least one part, none of them
 * empty, whose memory it takes, or whose lengths it knows: parts without bytes are read from their copy, or made if
 * there is none. `read_copy` may be NULL. `name` lives as long as the source. A read fails if make() does, or makes
 * parts of other lengths. */
struct source *source_remade_new(const struct source *base, const char *name, struct buffer *parts, size_t n_parts,
                                 remade_function *make, remade_copy_function *read_copy, void *context);
