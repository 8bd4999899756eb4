/* Lists that metadata.json, `wfs info --json` and statements share: files read, files shown, tools that files follow.
 */
#pragma once

#include "fs/tree/tree.h"
#include "models/references/references.h"
#include "text/json_write.h"

/* Writes "sources": the name and size of each weights file. */
void put_sources(struct json_writer *writer, const struct checkpoint *checkpoint);

/* Writes "references": the version of each tool that files follow. */
void put_references(struct json_writer *writer, const struct references *references);

/* Writes "files": the path and size of each file outside tensors/ and branches, and inside deferred directories if
 * `fills`. Plans the files that are not planned yet. */
void put_files(struct json_writer *writer, struct tree *tree, bool fills);
