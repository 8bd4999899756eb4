/* Paths: the node of a path, the path of a node, and the reason why a path leads nowhere. */
#include "base/text.h"
#include "fs/tree/name.h"
#include "fs/tree/node_ops.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static bool walk(struct tree *tree, node_id from, const char *path, struct node_attributes *ret_attributes,
                 struct error *error);

static const char *text_of_hint(struct tree *tree, const struct hint *hint, struct arena *arena)
{
    struct node_attributes unused;
    struct error error;
    if (hint->place == NULL || walk(tree, TREE_ROOT, hint->place, &unused, &error))
        return hint->text;
    return arena_strdup(arena, error.message);
}

/* Returns the reason why this entry is absent, or NULL: from its plan, from the collection of the directory, from the
 * list of hidden files, or from a hint. */
static const char *reason_of_absence(struct tree *tree, node_id directory, const char *name, const char *path,
                                     struct arena *arena)
{
    const struct checkpoint *checkpoint = tree->checkpoint;
    struct computed computed;
    struct node *node = node_of(tree, directory);
    bool is_full = node != NULL && node_fill(tree, node);
    uint32_t child = is_full ? node_child(tree, node, name) : 0;
    if (child != 0)
        path = tree_path(tree, tree->nodes[child]->number, arena);
    const char *reason = node != NULL && !is_full ? node->reason : NULL;
    if (child != 0 && tree->nodes[child]->reason != NULL)
        reason = arena_printf(arena, "%s is left out: %s", path, tree->nodes[child]->reason);
    if (reason == NULL && child != 0 && tree->nodes[child]->outage != NULL)
        reason = arena_printf(arena, "%s cannot be made now: %s", path, tree->nodes[child]->outage);
    if (reason == NULL && computed_of(tree, directory, &computed) && computed.slot < 0)
        reason = computed.owner->collection->refusal(computed.owner->context, computed.item, name);
    for (size_t i = 0; i < checkpoint->n_hidden && reason == NULL; i++)
        if (strcmp(checkpoint->hidden[i].name, path) == 0)
            reason = checkpoint->incomplete != NULL ? checkpoint->incomplete : checkpoint->hidden[i].reason;
    for (const struct hint *hint = tree->hints; hint != NULL && reason == NULL; hint = hint->next)
        if (fnmatch(hint->path, path, FNM_PATHNAME) == 0)
            reason = text_of_hint(tree, hint, arena);
    return reason;
}

struct nearest {
    struct text_guess guess;
    char best[TREE_MAX_NAME + 1];
};

static bool guess_name(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct nearest *nearest = context;
    text_guess_try(&nearest->guess, name);
    if (nearest->guess.best == name) {
        snprintf(nearest->best, sizeof nearest->best, "%s", name);
        nearest->guess.best = nearest->best;
    }
    return true;
}

/* Returns the path of a file with the bytes or values of a tensor whose name was typed as a path; NULL: none exists. */
static const char *file_of_tensor(struct tree *tree, const char *name, struct arena *arena)
{
    static const char *const files[] = {"raw", "f32"};
    char directory[NAME_MAX_BYTES + 1];
    struct node_attributes tensors, tensor, unused;
    name_escape(name, strlen(name), directory);
    if (!tree_lookup(tree, TREE_ROOT, "tensors", &tensors) || !tree_lookup(tree, tensors.id, directory, &tensor))
        return NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (tree_lookup(tree, tensor.id, files[i], &unused))
            return arena_printf(arena, "tensors/%s/%s", directory, files[i]);
    return NULL;
}

/* A type that a user typed without the file's name around it: "Q4_K_M", "q4k". */
struct type_search {
    struct text_guess guess;
    char best[TREE_MAX_NAME + 1], file[TREE_MAX_NAME + 1];
};

static void try_type(struct type_search *search, const char *type, const char *file)
{
    text_guess_try(&search->guess, type);
    if (search->guess.best != type)
        return;
    snprintf(search->best, sizeof search->best, "%s", type);
    search->guess.best = search->best;
    snprintf(search->file, sizeof search->file, "%s", file);
}

static bool guess_type(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    static const char before[] = "model-", after[] = ".gguf", medium[] = "_M";
    char type[TREE_MAX_NAME + 1];
    if (!text_starts_with(name, before) || !text_ends_with(name, after))
        return true;
    snprintf(type, sizeof type, "%.*s", (int)(strlen(name) - strlen(before) - strlen(after)), name + strlen(before));
    try_type(context, type, name);
    if (text_ends_with(type, medium)) { /* llama-quantize takes Q4_K for Q4_K_M */
        type[strlen(type) - strlen(medium)] = '\0';
        try_type(context, type, name);
    }
    return true;
}

/* Returns the path of the file in gguf/ with the name or type that was typed without its directory, or with the nearest
 * type; NULL: none is listed. */
static const char *file_in_gguf(struct tree *tree, const char *typed, struct arena *arena)
{
    struct node_attributes gguf, file;
    struct type_search search = {.guess.typed = typed};
    if (!tree_lookup(tree, TREE_ROOT, "gguf", &gguf))
        return NULL;
    if (tree_lookup(tree, gguf.id, typed, &file))
        return arena_printf(arena, "gguf/%s", typed);
    tree_list_names(tree, gguf.id, 0, guess_type, &search);
    return *search.file != '\0' ? arena_printf(arena, "gguf/%s", search.file) : NULL;
}

/* Returns a hint for the message about a path whose last part is not in the directory. */
static const char *hint_at(struct tree *tree, node_id directory, const char *name, const char *path,
                           struct arena *arena)
{
    struct nearest nearest = {.guess.typed = name};
    const char *hint = "";
    tree_list_names(tree, directory, 0, guess_name, &nearest);
    if (*nearest.best != '\0')
        return arena_printf(arena, "; did you mean '%.*s%s'?", (int)(strlen(path) - strlen(name)), path, nearest.best);
    if (tree->checkpoint->failure != NULL)
        return arena_printf(arena, ": %s", tree->checkpoint->failure);
    if (tree->checkpoint->incomplete != NULL && directory == TREE_ROOT)
        return arena_printf(arena, ": %s", tree->checkpoint->incomplete);
    bool has_components = tree->checkpoint->n_sources == 0 && tree->checkpoint->components != NULL;
    for (size_t i = 0; has_components && i < tree->n_branches; i++)
        hint = arena_printf(arena, "%s%s%s", i == 0 ? "; the components are " : hint, i == 0 ? "" : ", ",
                            tree->nodes[tree->branches[i]->node]->name);
    return hint;
}

/* Sets the error for a name that is not in the directory: the reason, or the name that may be meant. `length` is that
 * of the path up to the end of the name. Returns false. */
static bool is_absent(struct tree *tree, node_id directory, const char *name, const char *whole, size_t length,
                      struct error *error)
{
    struct arena *arena = arena_new();
    const char *path = arena_strndup(arena, whole, length), *from = path, *meant;
    while (*from == '/' || (from[0] == '.' && from[1] == '/'))
        from++;
    const char *reason = reason_of_absence(tree, directory, name, from, arena);
    if (reason != NULL && text_starts_with(reason, from))
        error_set(error, "%s", reason);
    else if (reason != NULL)
        error_set(error, "there is no '%s': %s", path, reason);
    else if (directory == TREE_ROOT && (meant = file_of_tensor(tree, whole, arena)) != NULL)
        error_set(error, "there is no file '%s'; the tensor of that name is '%s'", whole, meant);
    else if (directory == TREE_ROOT && (meant = file_in_gguf(tree, whole, arena)) != NULL)
        error_set(error, "there is no '%s'; did you mean '%s'?", whole, meant);
    else
        error_set(error, "there is no '%s'%s", path, hint_at(tree, directory, name, path, arena));
    arena_free(arena);
    return false;
}

/* Walks the rest of a path in the tree of a branch. */
static bool walk_branch(struct tree *tree, node_id top, const char *path, const char *rest,
                        struct node_attributes *ret_attributes, struct error *error)
{
    struct branch_node found;
    const char *inner = rest + strspn(rest, "/");
    if (*inner == '\0')
        return tree_attributes(tree, top, ret_attributes);
    if (!branch_find(tree, top, &found) || found.tree == NULL)
        return error_set(error, "%s: '%.*s' cannot be opened", path, (int)(rest - path), path);
    if (!walk(found.tree, found.root, inner, ret_attributes, error))
        return error_prefix(error, "%.*s", (int)(rest - path), path);
    branch_take(&found, ret_attributes);
    return ret_attributes->id != top || tree_attributes(tree, top, ret_attributes);
}

/* Finds the target of a link from its directory; `n_links` were followed before. */
static bool follow(struct tree *tree, node_id directory, const char *target, unsigned n_links,
                   struct node_attributes *ret_attributes)
{
    enum { MOST_LINKS = 40 }; /* as Linux follows */
    struct node_attributes at, next;
    if (*target == '/' || n_links == MOST_LINKS || !tree_attributes(tree, directory, &at))
        return false;
    for (const char *part = target + strspn(target, "/"); *part != '\0'; part += strspn(part, "/")) {
        char name[TREE_MAX_NAME + 1] = "";
        size_t length = strcspn(part, "/");
        if (length <= TREE_MAX_NAME)
            memcpy(name, part, length);
        part += length;
        if (!at.directory)
            return false;
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0 ? !tree_attributes(tree, tree_parent(tree, at.id), &next)
                                    : !tree_lookup(tree, at.id, name, &next))
            return false;
        if (next.link != NULL && !follow(tree, at.id, next.link, n_links + 1, &next))
            return false;
        at = next;
    }
    *ret_attributes = at;
    return true;
}

bool tree_follow(struct tree *tree, struct node_attributes *attributes)
{
    return attributes->link == NULL || follow(tree, tree_parent(tree, attributes->id), attributes->link, 0, attributes);
}

static bool walk(struct tree *tree, node_id from, const char *path, struct node_attributes *ret_attributes,
                 struct error *error)
{
    struct node_attributes at, next;
    tree_attributes(tree, from, &at);
    const char *part = path;
    for (;;) {
        part += strspn(part, "/");
        size_t length = strcspn(part, "/");
        if (length == 0)
            break;
        if (length == 1 && *part == '.') {
            part++;
            continue;
        }
        char name[TREE_MAX_NAME + 1] = "";
        if (length <= TREE_MAX_NAME)
            memcpy(name, part, length);
        if (!at.directory)
            return error_set(error, "%s: '%.*s' is not a directory", path, (int)(part - path), path);
        if (!tree_lookup(tree, at.id, name, &next))
            return is_absent(tree, at.id, name, path, (size_t)(part - path) + length, error);
        if (!tree_follow(tree, &next))
            return error_set(error, "%s: '%.*s' is a symbolic link to %s, which leads nowhere here", path,
                             (int)(part + length - path), path, next.link);
        at = next;
        part += length;
        if (at.branch)
            return walk_branch(tree, at.id, path, part, ret_attributes, error);
    }
    *ret_attributes = at;
    return true;
}

bool tree_walk(struct tree *tree, const char *path, struct node_attributes *ret_attributes, struct error *error)
{
    return walk(tree, TREE_ROOT, path, ret_attributes, error);
}

const char *tree_path(struct tree *tree, node_id id, struct arena *arena)
{
    const char *path = NULL;
    bool is_whole = false;
    for (node_id at = id; at != TREE_ROOT && !is_whole;) {
        struct place place;
        const struct node_ops *ops = place_of(tree, at, &place);
        const char *part = ops != NULL ? ops->path(&place, arena, &is_whole) : NULL;
        if (part == NULL)
            break;
        path = path != NULL ? arena_printf(arena, "%s/%s", part, path) : arena_strdup(arena, part);
        at = ops->parent(&place);
    }
    return path != NULL ? path : "";
}

bool tree_names_weights(const char *name)
{
    return text_ends_with(name, ".safetensors") || text_ends_with(name, ".gguf") || strcmp(name, "model.bin") == 0;
}

static bool find_weights(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    bool *found = context;
    *found = *found || (!attributes->directory && tree_names_weights(name));
    return !*found;
}

bool tree_lacks_weights(struct tree *tree, node_id directory, struct error *error)
{
    const struct node *node = node_of(tree, directory), *child = NULL;
    bool found = false;
    tree_list(tree, directory, 0, find_weights, &found);
    if (found || node == NULL)
        return false;
    for (uint32_t i = node->first_child; i != 0; i = child->next_sibling) {
        child = tree->nodes[i];
        if (child->reason == NULL || !tree_names_weights(child->name))
            continue;
        struct arena *arena = arena_new();
        error_set(error, "%s is left out: %s", tree_path(tree, child->number, arena), child->reason);
        arena_free(arena);
        return true;
    }
    return false;
}
