/* The lists shared by metadata.json and `wfs info --json`: files read and files shown. */
#pragma once

#include "formats/json_write.h"
#include "fs/tree/tree.h"

/* "sources": the name and size of each. */
void put_sources(struct json_writer *writer, const struct checkpoint *checkpoint);

/* "files": the path and size of each, but for those below tensors/ and in branches. Plans those that are not planned
 * yet. */
void put_files(struct json_writer *writer, struct tree *tree);
