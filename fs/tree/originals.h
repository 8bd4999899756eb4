/* The original files of an archive: files/NAME/... (sources/archive/archive.h). */
#pragma once

#include "fs/tree/tree.h"
#include "sources/archive/archive.h"

/* Adds the files of a member; of all for SIZE_MAX. The tree holds the archive. */
bool archive_files_add(struct tree *tree, struct archive *archive, size_t member, struct error *error);
