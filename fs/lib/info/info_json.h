/* The facts about a source that `wfs info --json` prints: docs/metadata.md. */
#pragma once

#include "fs/tree/tree.h"
#include "text/json_write.h"

/* Writes the members of the object. Opens the source's components and plans all files, which adds notes to the
 * checkpoint. */
void info_put(struct json_writer *writer, struct tree *tree);
