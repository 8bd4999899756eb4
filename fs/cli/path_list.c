#include "fs/cli/path_list.h"

void path_list_add(struct path_list *list, const char *path)
{
    list->items = arena_grow(list->arena, list->items, list->count, sizeof *list->items);
    list->items[list->count++] = path;
}

void path_list_add_all(struct path_list *list, const char *const *paths)
{
    for (; *paths != NULL; paths++)
        path_list_add(list, *paths);
}

const char *const *path_list_end(struct path_list *list)
{
    path_list_add(list, NULL);
    return list->items;
}
