/* Files and directories of the tree, as arguments name them.
 *
 * A PATH starts at the root of the tree: "/", "." and "" are the root, "./x" and "/x" are "x". If no such name exists,
 * *, ? and [...] match as in glob(7), name by name, but also a leading dot. */
#pragma once

#include "fs/tree/tree.h"

struct found {
    const char *path; /* without slashes at either end; "" for the root */
    struct node_attributes attributes;
};

/* In the order of the arguments, and for each in that of the tree. Zeroed, it is empty. */
struct found_list {
    struct arena *arena; /* holds the paths */
    struct found *items;
    size_t n_items;
};

/* Adds an entry; copies the path. */
void found_add(struct found_list *list, const char *path, const struct node_attributes *attributes);
void found_free(struct found_list *list);

/* Adds all entries that PATH names; if it names none, fails with an error that names the missing part. */
bool paths_find(struct tree *tree, const char *path, struct found_list *list, struct error *error);

/* paths_find() for n_paths paths; reports each failure, and returns true if there was none. */
bool paths_find_all(struct tree *tree, char *const *paths, size_t n_paths, struct found_list *list);

/* Adds every file below the directory `path`, and below the directories in it; no symbolic links. */
void paths_find_below(struct tree *tree, const char *path, node_id directory, struct found_list *list);

/* Adds the files among the entries of another list, and all files below its directories. */
void paths_add_files(struct tree *tree, const struct found_list *named, struct found_list *files);

/* Adds the files that n_paths paths name, and all files below named directories; without a path, all files. Reports
 * each failure, and returns true if there was none. */
bool paths_find_files(struct tree *tree, char *const *paths, size_t n_paths, struct found_list *files);
