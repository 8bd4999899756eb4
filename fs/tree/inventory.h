/* Lists that metadata.json and `wfs info --json` share: the files read and the files shown. */
#pragma once

#include "formats/json_write.h"
#include "fs/tree/tree.h"

/* Writes "sources": the name and size of each weights file. */
void put_sources(struct json_writer *writer, const struct checkpoint *checkpoint);

/* Writes "files": the path and size of each file outside tensors/ and branches, and inside deferred directories if
 * `fills`. Plans the files that are not planned yet. */
void put_files(struct json_writer *writer, struct tree *tree, bool fills);
