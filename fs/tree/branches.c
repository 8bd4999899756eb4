/* Branches: directories of other trees. */
#include "base/attempt.h"
#include "base/lock.h"
#include "fs/tree/nodes.h"

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

static bool add_branch(struct tree *tree, node_id parent, const char *name, plan_function *plan,
                       const struct tree_branch *new)
{
    struct tree_branch *branch = arena_alloc(tree->arena, sizeof *branch);
    if (tree->n_branches == MAX_BRANCHES || !tree_add_file(tree, parent, name, plan, branch))
        return false;
    *branch = *new;
    branch->owner = tree;
    branch->node = tree->n_nodes - 1;
    tree->branches = memory_resize(tree->branches, (tree->n_branches + 1) * sizeof(struct tree_branch *));
    tree->branches[tree->n_branches++] = branch;
    struct node *node = tree->nodes[branch->node];
    node->directory = true;
    node->branch = (uint16_t)tree->n_branches;
    tree->nodes[node->parent]->n_directories++;
    return true;
}

bool tree_add_branch(struct tree *tree, node_id parent, const char *name, branch_function *open, void *context)
{
    return add_branch(tree, parent, name, plan_branch, &(struct tree_branch){.open = open, .context = context});
}

bool tree_add_part_of_branch(struct tree *tree, node_id parent, const char *name, node_id branch, const char *directory)
{
    const struct node *whole = node_of(tree, branch);
    return whole != NULL && whole->branch != 0 &&
           add_branch(tree, parent, name, plan_part_of_branch,
                      &(struct tree_branch){.of = tree->branches[whole->branch - 1], .path = directory});
}

bool branch_find(struct tree *tree, node_id id, struct branch_node *ret_found)
{
    const struct node *top = node_of(tree, id);
    uint64_t number = top != NULL ? top->branch : (id & BRANCH_MASK) >> BRANCH_SHIFT;
    if (number == 0 || number > tree->n_branches)
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
