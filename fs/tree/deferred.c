/* Deferred directories: filled by the first look into them, as the plan of their node. */
#include "base/attempt.h"
#include "fs/tree/nodes.h"
#include "sources/source.h"

#include <assert.h>

struct deferred {
    struct tree *tree;
    node_id directory;
    prepare_function *prepare;
    fill_function *fill;
    void *context;
};

/* Fills the directory, unless a source was not reached: then the number of its files may be another one. */
static enum outcome plan_deferred(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct deferred *deferred = context;
    uint64_t n_unreached = source_unreached();
    if (deferred->prepare != NULL)
        deferred->prepare(deferred->context);
    if (source_unreached() != n_unreached) {
        error_set(error, "a source could not be read");
        return REPORTED;
    }
    struct tree *tree = deferred->tree;
    attempt_lock(&tree->filling);
    tree->filled = node_of(tree, deferred->directory);
    tree->filled->first_filled = tree->n_nodes;
    deferred->fill(deferred->context, deferred->directory);
    tree->filled = NULL;
    attempt_unlock(&tree->filling);
    return OK;
}

/* A deferred directory inside another one has that one's ordinal. */
static void give_ordinal(struct tree *tree, struct node *node)
{
    if (tree->filled != NULL) {
        node->ordinal = tree->filled->ordinal;
        return;
    }
    assert(tree->n_first_level < MAX_DEFERRED);
    node->ordinal = (uint8_t)tree->n_first_level;
    tree->first_level[tree->n_first_level++] = node->index;
}

node_id tree_add_deferred(struct tree *tree, node_id parent, const char *name, prepare_function *prepare,
                          fill_function *fill, void *context)
{
    struct deferred *deferred = arena_alloc(tree->arena, sizeof *deferred);
    if (!tree_add_certain_file(tree, parent, name, plan_deferred, deferred))
        return 0;
    struct node *node = tree->nodes[tree->n_nodes - 1];
    *deferred = (struct deferred){tree, node->number, prepare, fill, context};
    node->directory = true;
    node->deferred = true;
    tree->nodes[node->parent]->n_directories++;
    give_ordinal(tree, node);
    return node->number;
}
