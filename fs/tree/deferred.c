/* Deferred directories: filled by the first look into them, as the plan of their node. */
#include "base/attempt.h"
#include "formats/source.h"
#include "fs/tree/nodes.h"

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
    attempt_lock(&deferred->tree->filling);
    deferred->fill(deferred->context, deferred->directory);
    attempt_unlock(&deferred->tree->filling);
    return OK;
}

node_id tree_add_deferred(struct tree *tree, node_id parent, const char *name, prepare_function *prepare,
                          fill_function *fill, void *context)
{
    struct deferred *deferred = arena_alloc(tree->arena, sizeof *deferred);
    if (!tree_add_certain_file(tree, parent, name, plan_deferred, deferred))
        return 0;
    node_id directory = (node_id)node_child(tree, node_of(tree, parent), name) + 1;
    struct node *node = node_of(tree, directory);
    *deferred = (struct deferred){tree, directory, prepare, fill, context};
    node->directory = true;
    node->deferred = true;
    tree->nodes[node->parent]->n_directories++;
    return directory;
}
