/* Blobs of archives on this machine as sources. An archive can have more packs than a process may have descriptors, so
 * only the BLOBS_OPEN blobs of the process that were read last keep theirs; reading another one opens it again. */
#pragma once

#include "sources/archive/digest.h"
#include "sources/source.h"

enum { BLOBS_OPEN = 32 };

/* Opens the file of a blob. Called by readers, on any thread, one at a time. */
typedef struct source *blob_open(const void *context, const struct digest *digest, struct error *error);

/* Makes the source of a blob from its open file, which it takes. `context` outlives the source. */
struct source *source_blob_new(struct source *file, const struct digest *digest, blob_open *open, const void *context);
