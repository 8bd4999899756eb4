/* Sources that are objects on servers (remote/object.h). */
#pragma once

#include "formats/source.h"
#include "remote/object.h"

/* Objects whose bytes have a known SHA-256 have keys that begin so. */
#define SOURCE_SHA256_KEY "sha256-"

struct source_identity source_remote_identity(const struct object_origin *origin, struct timespec modified);

/* Takes the object, and copies the texts. Messages call the source `name`. */
struct source *source_remote_new(struct object *object, const struct source_identity *identity,
                                 const struct source_server *server, const char *name);
