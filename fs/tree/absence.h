/* What the notes of a checkpoint say of a path that is not in its tree: notes are for people, and begin with the paths
 * that they are about, or name them. */
#pragma once

#include "formats/checkpoint.h"

/* The note that says why `path` is absent; NULL where none does. It is one that begins with the path
 * ("gguf/model-Q4_K.gguf: ..."), or names files that the path is one of ("gguf/mmproj-*"). */
const char *absence_in_notes(const struct checkpoint *checkpoint, const char *path);

/* The note on the directory that `path` begins with ("model.gguf and gguf/ are left out: ..."), which explains what the
 * tree could have there; NULL where there is none. */
const char *absence_of_directory(const struct checkpoint *checkpoint, const char *path);
