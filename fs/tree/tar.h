/* Files of a tree as one tar, computed on read like any other file.
 *
 * The bytes follow from names, sizes and contents alone: members are in the order they are given, with the directories
 * above them before them, owned by root, of the time 0. Names and sizes that ustar cannot hold are in a pax header. The
 * size is exact once the members' sizes are known; a range is computed from just the members that it touches. Members
 * are not read from the store of computed bytes (fs/kept/kept.h).
 *
 * Source: POSIX.1-2017, pax: "ustar Interchange Format" and "pax Extended Header". */
#pragma once

#include "fs/tree/tree.h"

struct tar_member {
    const char *name; /* "models/config.json": no slash at its beginning */
    node_id node;
};

/* Makes the tar of files, in `arena`, which also holds what it is made from. Plans the files. */
bool tar_make(struct tree *tree, const struct tar_member *members, size_t n_members, struct arena *arena,
              struct vfile *ret_file, struct error *error);

/* Makes the tar of all files below a directory, sorted by their paths as bytes, each below `name`. Fails if one of the
 * directories, apart from the root, lacks its weights (tree_lacks_weights()). */
bool tar_of_directory(struct tree *tree, node_id directory, const char *name, struct arena *arena,
                      struct vfile *ret_file, struct error *error);
