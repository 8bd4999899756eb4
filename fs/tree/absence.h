/* What the notes of a checkpoint say of a path that is not in its tree: notes are for people, and begin with the paths
 * that they are about, or name them. */
#pragma once

#include "formats/checkpoint.h"

/* The note that says why `path` is absent; NULL where none does. It is one that begins with the path
 * ("gguf/model-Q4_K.gguf:
 * ..."), or names files that the path is one of ("gguf/mmproj-*"). With `known`, of what the tree could have there, a
 * note on the directory that the path begins with explains it, too ("model.gguf and gguf/ are left out: ..."). */
const char *absence_in_notes(const struct checkpoint *checkpoint, const char *path, bool known);
