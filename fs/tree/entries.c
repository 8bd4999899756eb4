/* Directory entries: attributes, names, lists and files, by the functions of each node's kind. */
#include "fs/tree/content_options.h"
#include "fs/tree/node_ops.h"

const struct node_ops *place_of(struct tree *tree, node_id id, struct place *ret_place)
{
    *ret_place = (struct place){.tree = tree, .id = id, .node = node_of(tree, id)};
    const struct node *node = ret_place->node;
    if (node != NULL && node->branch != 0)
        return &branch_top_ops;
    if (node != NULL)
        return node->collection != 0 ? &collection_ops : &stored_ops;
    if (branch_has(tree, id))
        return &branch_ops;
    return computed_of(tree, id, &ret_place->computed) ? &computed_ops : NULL;
}

bool tree_attributes(struct tree *tree, node_id id, struct node_attributes *ret_attributes)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, id, &place);
    return ops != NULL && ops->attributes(&place, WAIT_FOR_ALL, ret_attributes);
}

bool tree_attributes_prepared(struct tree *tree, node_id id, struct node_attributes *ret_attributes)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, id, &place);
    return ops != NULL && ops->attributes(&place, WAIT_FOR_NONE, ret_attributes);
}

bool tree_lookup(struct tree *tree, node_id directory, const char *name, struct node_attributes *ret_attributes)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, directory, &place);
    *ret_attributes = (struct node_attributes){.unreached = false};
    return ops != NULL && ops->lookup(&place, name, ret_attributes);
}

bool tree_is_unreached(struct tree *tree, node_id directory)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, directory, &place);
    return ops != NULL && ops->is_unreached(&place);
}

bool tree_prepare(struct tree *tree, node_id directory, const char *name)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, directory, &place);
    return ops == NULL || ops->prepare(&place, name);
}

node_id tree_parent(struct tree *tree, node_id id)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, id, &place);
    return ops != NULL ? ops->parent(&place) : TREE_ROOT;
}

void node_list(struct tree *tree, node_id directory, uint64_t first, enum waiting waiting, tree_emit *emit,
               void *context)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, directory, &place);
    if (ops != NULL)
        ops->list(&place, first, waiting, emit, context);
}

void tree_list(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    node_list(tree, directory, first, WAIT_FOR_ALL, emit, context);
}

void tree_list_names(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    node_list(tree, directory, first, WAIT_FOR_UNCERTAIN, emit, context);
}

void tree_list_prepared(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    node_list(tree, directory, first, WAIT_FOR_NONE, emit, context);
}

struct branch_numbering {
    node_id prefix;
    tree_emit_number *emit;
    void *context;
};

static void emit_number_of_branch(void *context, node_id id)
{
    const struct branch_numbering *numbering = context;
    numbering->emit(numbering->context, id | numbering->prefix);
}

void tree_number_files(const struct tree *tree, tree_emit_number *emit, void *context)
{
    for (size_t i = 0; i < tree->n_branches; i++)
        if (node_plan_state(tree->nodes[tree->branches[i]->node]) == PLANNED)
            tree_number_files(tree->branches[i]->tree, emit_number_of_branch,
                              &(struct branch_numbering){(node_id)(i + 1) << BRANCH_SHIFT, emit, context});
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        if (!tree->nodes[i]->directory)
            emit(context, tree->nodes[i]->number);
    for (size_t i = 0; i < tree->n_collections; i++) {
        const struct tree_collection *owner = &tree->collections[i];
        uint64_t n_items = owner->collection->n_items(owner->context);
        unsigned n_slots = owner->collection->n_slots();
        for (uint64_t item = 0; item < n_items; item++)
            for (unsigned slot = 0; slot < n_slots; slot++)
                emit(context, computed_id(owner, item, slot + 1));
    }
}

bool tree_file(struct tree *tree, node_id id, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, id, &place);
    return ops != NULL ? ops->file(&place, arena, ret_file, error) : error_set(error, "no such file");
}

bool tree_whole_file(struct tree *tree, node_id id, struct whole_file *ret_whole)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, id, &place);
    return ops != NULL && ops->whole_file(&place, ret_whole);
}

void tree_xattrs(struct tree *tree, node_id id, tree_emit_xattr *emit, void *context)
{
    struct place place;
    const struct node_ops *ops = place_of(tree, id, &place);
    if (ops != NULL)
        ops->xattrs(&place, emit, context);
}
