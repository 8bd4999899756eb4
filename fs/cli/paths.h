/* Files and directories of the tree, as arguments name them.
 *
 * A PATH is read from the root of the tree: "/", "." and "" are the root, "./x" and "/x" are "x". Where there is no
 * such name, *, ? and [...] match as in glob(7), part by part. */
#pragma once

#include "fs/tree/tree.h"

struct found {
    const char *path; /* without slashes at either end; "" for the root */
    struct node_attributes attributes;
};

/* In the order of the arguments, and of the tree for each; zeroed it is empty. */
struct found_list {
    struct arena *arena; /* holds the paths */
    struct found *items;
    size_t n_items, capacity;
};

/* copies the path */
void found_add(struct found_list *list, const char *path, const struct node_attributes *attributes);
void found_free(struct found_list *list);

/* Adds all that PATH names; fails where that is nothing, and says which part is missing. */
bool paths_find(struct tree *tree, const char *path, struct found_list *list, struct error *error);

/* paths_find() for n_paths paths; reports each failure, and returns true if there was none. */
bool paths_find_all(struct tree *tree, char *const *paths, size_t n_paths, struct found_list *list);

/* Adds every file below the directory `path`, and below the directories in it. */
void paths_find_below(struct tree *tree, const char *path, node_id directory, struct found_list *list);
