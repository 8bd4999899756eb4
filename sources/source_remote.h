/* Sources that are objects on servers (remote/object.h). */
#pragma once

#include "remote/object.h"
#include "sources/source.h"

struct source_identity source_remote_identity(const struct object_origin *origin, struct timespec modified);

/* Takes the object, and copies the texts. Messages call the source `name`. */
struct source *source_remote_new(struct object *object, const struct source_identity *identity,
                                 const struct source_server *server, const char *name);
