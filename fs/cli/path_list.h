/* A list of paths that grows in an arena, for the sandbox, whose lists end with NULL. */
#pragma once

#include "base/arena.h"

struct path_list {
    struct arena *arena;
    const char **items;
    size_t count;
};

/* Adds a path, which is not copied. */
void path_list_add(struct path_list *list, const char *path);

/* Adds the paths of another list, up to its NULL. */
void path_list_add_all(struct path_list *list, const char *const *paths);

/* Ends the list, and returns its paths. */
const char *const *path_list_end(struct path_list *list);
