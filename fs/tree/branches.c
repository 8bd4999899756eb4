/* Branches: directories of other trees. */
#include "base/attempt.h"
#include "base/lock.h"
#include "fs/tree/node_ops.h"

#include <string.h>

static void planned_in_branch(void *context)
{
    struct tree *owner = context;
    lock_take(&owner->lock);
    if (owner->planned != NULL)
        owner->planned(owner->planned_context);
    lock_drop(&owner->lock);
}

/* The plan of a branch's node: opens the branch, and makes no file. */
static enum outcome plan_branch(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct tree_branch *branch = context;
    struct tree *owner = branch->owner, *tree = branch->open(branch->context, error);
    if (tree == NULL)
        return FAILED;
    tree_on_planned(tree, planned_in_branch, owner);
    attempt_lock(&owner->lock);
    branch->tree = tree;
    branch->root = TREE_ROOT;
    if (owner->opened != NULL)
        owner->opened(owner->opened_context, tree->checkpoint);
    attempt_unlock(&owner->lock);
    return OK;
}

/* Like plan_branch(), for a branch that shares another one's tree. */
static enum outcome plan_part_of_branch(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct tree_branch *branch = context;
    struct node_attributes directory;
    const struct node *whole = branch->owner->nodes[branch->of->node];
    if (!node_plan(branch->owner, branch->owner->nodes[branch->of->node])) {
        if (whole->reason != NULL)
            error_set(error, "%s", whole->reason);
        else
            error_set(error, "%s cannot be opened", whole->name);
        return REPORTED;
    }
    bool found = tree_lookup(branch->of->tree, TREE_ROOT, branch->path, &directory) && directory.directory;
    branch->tree = branch->of->tree;
    branch->root = found ? directory.id : TREE_ROOT;
    return OK;
}

static node_id add_branch(struct tree *tree, node_id parent, const char *name, plan_function *plan,
                          const struct tree_branch *new)
{
    struct tree_branch *branch = arena_alloc(tree->arena, sizeof *branch);
    if (tree->n_branches == MAX_BRANCHES || !tree_add_file(tree, parent, name, plan, branch))
        return 0;
    *branch = *new;
    branch->owner = tree;
    branch->node = tree->n_nodes - 1;
    tree->branches = memory_resize(tree->branches, (tree->n_branches + 1) * sizeof(struct tree_branch *));
    tree->branches[tree->n_branches++] = branch;
    struct node *node = tree->nodes[branch->node];
    node->directory = true;
    node->branch = (uint16_t)tree->n_branches;
    tree->nodes[node->parent]->n_directories++;
    return node->number;
}

node_id tree_add_branch(struct tree *tree, node_id parent, const char *name, branch_function *open, void *context)
{
    return add_branch(tree, parent, name, plan_branch, &(struct tree_branch){.open = open, .context = context});
}

bool tree_add_part_of_branch(struct tree *tree, node_id parent, const char *name, node_id branch, const char *directory)
{
    const struct node *whole = node_of(tree, branch);
    return whole != NULL && whole->branch != 0 &&
           add_branch(tree, parent, name, plan_part_of_branch,
                      &(struct tree_branch){.of = tree->branches[whole->branch - 1], .path = directory}) != 0;
}

/* Returns the number, from 1, of the branch that a node is in, or is the top directory of; 0: none. */
static uint64_t branch_number(const struct tree *tree, node_id id)
{
    const struct node *top = node_of(tree, id);
    uint64_t number = top != NULL ? top->branch : (id & BRANCH_MASK) >> BRANCH_SHIFT;
    return number <= tree->n_branches ? number : 0;
}

bool branch_has(const struct tree *tree, node_id id)
{
    return branch_number(tree, id) != 0;
}

bool branch_find(struct tree *tree, node_id id, struct branch_node *ret_found)
{
    const struct node *top = node_of(tree, id);
    uint64_t number = branch_number(tree, id);
    if (number == 0)
        return false;
    const struct tree_branch *branch = tree->branches[number - 1];
    bool is_open = node_plan(tree, tree->nodes[branch->node]);
    *ret_found = (struct branch_node){
        .tree = is_open ? branch->tree : NULL,
        .unreached = !is_open && node_plan_state(tree->nodes[branch->node]) != ABSENT,
        .root = branch->root,
        .id = top != NULL ? branch->root : id & ~BRANCH_MASK,
        .top = tree->nodes[branch->node]->number,
        .prefix = (node_id)number << BRANCH_SHIFT,
    };
    return true;
}

node_id branch_id_here(const struct branch_node *branch, node_id id)
{
    return id == branch->root ? branch->top : id | branch->prefix;
}

bool branch_take(const struct branch_node *branch, struct node_attributes *attributes)
{
    attributes->id = branch_id_here(branch, attributes->id);
    return true;
}

/* Nodes in a branch are those of its tree, under other numbers. */

static bool attributes(const struct place *place, enum waiting waiting, struct node_attributes *ret_attributes)
{
    struct branch_node found;
    bool (*get)(struct tree *, node_id, struct node_attributes *) =
        waiting == WAIT_FOR_NONE ? tree_attributes_prepared : tree_attributes;
    return branch_find(place->tree, place->id, &found) && found.tree != NULL &&
           get(found.tree, found.id, ret_attributes) && branch_take(&found, ret_attributes);
}

static bool lookup(const struct place *place, const char *name, struct node_attributes *ret_attributes)
{
    struct branch_node found;
    if (!branch_find(place->tree, place->id, &found))
        return false;
    ret_attributes->unreached = found.unreached;
    return found.tree != NULL && tree_lookup(found.tree, found.id, name, ret_attributes) &&
           branch_take(&found, ret_attributes);
}

static bool is_unreached(const struct place *place)
{
    struct branch_node found;
    return branch_find(place->tree, place->id, &found) && found.unreached;
}

static bool prepare(const struct place *place, const char *name)
{
    struct branch_node found;
    return !branch_find(place->tree, place->id, &found) || found.tree == NULL ||
           tree_prepare(found.tree, found.id, name);
}

static bool prepare_top(const struct place *place, const char *name)
{
    return node_prepare(place->tree, place->node) && prepare(place, name);
}

static node_id parent(const struct place *place)
{
    struct branch_node found;
    bool is_open = branch_find(place->tree, place->id, &found) && found.tree != NULL;
    return is_open ? branch_id_here(&found, tree_parent(found.tree, found.id)) : TREE_ROOT;
}

struct branch_listing {
    const struct branch_node *branch;
    tree_emit *emit;
    void *context;
};

static bool emit_from_branch(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct branch_listing *listing = context;
    struct node_attributes here = *attributes;
    branch_take(listing->branch, &here);
    return listing->emit(listing->context, index, name, &here);
}

static void list(const struct place *place, uint64_t first, enum waiting waiting, tree_emit *emit, void *context)
{
    struct branch_node found;
    if (branch_find(place->tree, place->id, &found) && found.tree != NULL)
        node_list(found.tree, found.id, first, waiting, emit_from_branch,
                  &(struct branch_listing){&found, emit, context});
}

static bool file(const struct place *place, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct branch_node found;
    bool is_open = branch_find(place->tree, place->id, &found) && found.tree != NULL;
    return is_open ? tree_file(found.tree, found.id, arena, ret_file, error) : error_set(error, "no such file");
}

static bool whole_file(const struct place *place, struct whole_file *ret_whole)
{
    struct branch_node found;
    return branch_find(place->tree, place->id, &found) && found.tree != NULL &&
           tree_whole_file(found.tree, found.id, ret_whole);
}

static void xattrs(const struct place *place, tree_emit_xattr *emit, void *context)
{
    struct branch_node found;
    if (branch_find(place->tree, place->id, &found) && found.tree != NULL)
        tree_xattrs(found.tree, found.id, emit, context);
}

static const char *path(const struct place *place, struct arena *arena, bool *ret_is_whole)
{
    struct branch_node found;
    if (!branch_find(place->tree, place->id, &found))
        return NULL;
    const char *top = tree_path(place->tree, found.top, arena);
    *ret_is_whole = true;
    if (found.tree == NULL)
        return top;
    const char *inner = tree_path(found.tree, found.id, arena), *root = tree_path(found.tree, found.root, arena);
    inner += strlen(root);
    return arena_printf(arena, "%s/%s", top, inner + (*inner == '/'));
}

const struct node_ops branch_ops = {
    .attributes = attributes,
    .lookup = lookup,
    .is_unreached = is_unreached,
    .prepare = prepare,
    .parent = parent,
    .list = list,
    .file = file,
    .whole_file = whole_file,
    .xattrs = xattrs,
    .path = path,
};

/* The directory itself is stored here, and its entries are the branch's. */
const struct node_ops branch_top_ops = {
    .attributes = stored_attributes,
    .lookup = lookup,
    .is_unreached = is_unreached,
    .prepare = prepare_top,
    .parent = stored_parent,
    .list = list,
    .file = stored_file,
    .whole_file = stored_whole_file,
    .xattrs = stored_xattrs,
    .path = stored_name,
};

struct tree *tree_branch(struct tree *tree, node_id directory)
{
    struct branch_node found;
    bool is_top = branch_find(tree, directory, &found) && directory == found.top;
    return is_top && found.root == TREE_ROOT ? found.tree : NULL;
}

void tree_on_checkpoint(struct tree *tree, tree_checkpoint_function *opened, void *context)
{
    lock_take(&tree->lock);
    tree->opened = opened;
    tree->opened_context = context;
    if (opened != NULL) {
        opened(context, tree->checkpoint);
        for (size_t i = 0; i < tree->n_branches; i++)
            if (tree->branches[i]->tree != NULL && tree->branches[i]->of == NULL)
                opened(context, tree->branches[i]->tree->checkpoint);
    }
    lock_drop(&tree->lock);
}
