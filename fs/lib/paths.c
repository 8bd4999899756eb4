#include "fs/lib/paths.h"

#include "base/arena.h"
#include "base/report.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

void found_free(struct found_list *list)
{
    free(list->items);
    arena_free(list->arena);
    *list = (struct found_list){0};
}

void found_add(struct found_list *list, const char *path, const struct node_attributes *attributes)
{
    if (list->arena == NULL)
        list->arena = arena_new();
    list->items = memory_grow(list->items, list->n_items, sizeof *list->items);
    list->items[list->n_items++] = (struct found){arena_strdup(list->arena, path), *attributes};
}

/* The state of a search in the directory `path`. */
struct search {
    struct tree *tree;
    struct found_list *list;
    struct arena *arena; /* for the search only */
    bool patterns;
    const char *path, *part, *rest; /* of the argument: the name to find here, and the rest */
};

static const char *join(struct arena *arena, const char *directory, const char *name)
{
    return arena_printf(arena, "%s%s%s", directory, *directory != '\0' ? "/" : "", name);
}

static void go_on(const struct search *at, const char *path, const struct node_attributes *attributes);

static bool try_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct search *search = context;
    if (fnmatch(search->part, name, 0) == 0)
        go_on(search, join(search->arena, search->path, name), attributes);
    return true;
}

/* Continues a search at `path`. Recurses once for each name of the argument. */
static void go_on(const struct search *at, const char *path, const struct node_attributes *attributes)
{
    const char *rest = at->rest + strspn(at->rest, "/");
    size_t length = strcspn(rest, "/");
    struct search next = *at;
    struct node_attributes found, target = *attributes;
    if (tree_follow(at->tree, &target))
        attributes = &target;
    next.path = path;
    next.rest = rest + length;
    next.part = arena_strndup(at->arena, rest, length);
    if (length == 0)
        found_add(at->list, path, attributes);
    else if (strcmp(next.part, ".") == 0)
        go_on(&next, path, attributes);
    else if (!attributes->directory)
        return;
    else if (at->patterns && strpbrk(next.part, "*?[") != NULL)
        tree_list(at->tree, attributes->id, 0, try_entry, &next);
    else if (tree_lookup(at->tree, attributes->id, next.part, &found))
        go_on(&next, join(at->arena, path, next.part), &found);
}

bool paths_find(struct tree *tree, const char *path, struct found_list *list, struct error *error)
{
    struct node_attributes root, unused;
    size_t n_before = list->n_items;
    struct arena *arena = arena_new();
    tree_attributes(tree, TREE_ROOT, &root);
    bool is_name = tree_walk(tree, path, &unused, error);
    go_on(&(struct search){.tree = tree, .list = list, .arena = arena, .patterns = !is_name, .path = "", .rest = path},
          "", &root);
    arena_free(arena);
    return list->n_items != n_before;
}

bool paths_find_all(struct tree *tree, char *const *paths, size_t n_paths, struct found_list *list)
{
    struct error error;
    bool all_found = true;
    for (size_t i = 0; i < n_paths; i++)
        if (!paths_find(tree, paths[i], list, &error)) {
            report("%s", error.message);
            all_found = false;
        }
    return all_found;
}

struct descent {
    struct tree *tree;
    struct found_list *list;
    const char *path;
};

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct descent *descent = context;
    struct arena *arena = arena_new();
    const char *path = join(arena, descent->path, name);
    if (attributes->directory)
        paths_find_below(descent->tree, path, attributes->id, descent->list);
    else if (attributes->link == NULL)
        found_add(descent->list, path, attributes);
    arena_free(arena);
    return true;
}

/* Recurses as deep as side files are nested, which is not deep. */
void paths_find_below(struct tree *tree, const char *path, node_id directory, struct found_list *list)
{
    tree_list(tree, directory, 0, add_entry, &(struct descent){tree, list, path});
}

void paths_add_files(struct tree *tree, const struct found_list *named, struct found_list *files)
{
    for (size_t i = 0; i < named->n_items; i++)
        if (named->items[i].attributes.directory)
            paths_find_below(tree, named->items[i].path, named->items[i].attributes.id, files);
        else
            found_add(files, named->items[i].path, &named->items[i].attributes);
}

bool paths_find_files(struct tree *tree, char *const *paths, size_t n_paths, struct found_list *files)
{
    struct found_list named = {0};
    struct error unused;
    bool all_found = paths_find_all(tree, paths, n_paths, &named);
    if (n_paths == 0)
        paths_find(tree, "", &named, &unused);
    paths_add_files(tree, &named, files);
    found_free(&named);
    return all_found;
}
