/* The original files of an archive: files/NAME/... (formats/archive/archive.h). */
#pragma once

#include "formats/archive/archive.h"
#include "fs/tree/tree.h"

/* Adds the files of a member; of all for SIZE_MAX. The tree holds the archive. */
bool archive_files_add(struct tree *tree, struct archive *archive, size_t member, struct error *error);
