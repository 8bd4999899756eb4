/* The part of `wfs info` about directories for engines: each scheme, type or variant with the size of its weights. */
#pragma once

#include "base/buffer.h"
#include "fs/tree/tree.h"

/* Appends a text about a top directory that holds a directory for each variant of the model: to `text` "mlx/:
 * plain 92.0 MB, 4bit 26.1 MB", or if `is_brief` "mlx/: 2 from 26.1 MB", one text for all directories; or to
 * `refusal` why no variant has weights. Each text ends with a NUL. Returns false for other directories. */
bool engine_text(struct tree *tree, const char *name, node_id directory, bool is_brief, struct buffer *text,
                 struct buffer *refusal);
