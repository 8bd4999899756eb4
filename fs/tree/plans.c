/* Plans of files: each is made once, by who asks first or by a thread of its own. */
#include "base/attempt.h"
#include "fs/tree/nodes.h"
#include "fs/tree/planner.h"

static void note_absence(const struct tree *tree, const struct node *node, const struct error *error)
{
    struct arena *arena = arena_new();
    const char *path = node->name;
    for (uint32_t above = node->parent; above != 0; above = tree->nodes[above]->parent)
        path = arena_printf(arena, "%s/%s", tree->nodes[above]->name, path);
    checkpoint_note(tree->checkpoint, "%s is left out: %s", path, error->message);
    arena_free(arena);
}

struct planning {
    struct node *node;
    struct error *error;
    bool planned;
};

static void plan(void *context)
{
    struct planning *planning = context;
    struct node *node = planning->node;
    node->arena = arena_new();
    planning->planned = node->plan(node->context, node->arena, &node->file, planning->error);
}

static void make_plan(struct tree *tree, struct node *node)
{
    struct error error;
    struct planning planning = {.node = node, .error = &error};
    bool made = attempt(plan, &planning, &error), planned = made && planning.planned;
    if (!planned) {
        if (made)
            arena_free(node->arena);
        node->arena = NULL;
        if (error.message[0] != '\0')
            note_absence(tree, node, &error);
    }
    pthread_mutex_lock(&tree->lock);
    atomic_store_explicit(&node->state, planned ? PLANNED : ABSENT, memory_order_release);
    pthread_cond_broadcast(&tree->plan_ended);
    if (tree->planned != NULL)
        tree->planned(tree->planned_context);
    pthread_mutex_unlock(&tree->lock);
}

bool node_plan(struct tree *tree, struct node *node)
{
    if (node_plan_state(node) >= PLANNED)
        return node_plan_state(node) == PLANNED;
    pthread_mutex_lock(&tree->lock);
    bool unplanned = node_plan_state(node) == UNPLANNED;
    if (unplanned) {
        atomic_store(&node->state, PLANNING);
        node->planned_by = pthread_self();
    }
    bool by_us = node_plan_state(node) == PLANNING && pthread_equal(node->planned_by, pthread_self());
    while (node_plan_state(node) == PLANNING && !by_us)
        pthread_cond_wait(&tree->plan_ended, &tree->lock);
    pthread_mutex_unlock(&tree->lock);
    if (unplanned)
        make_plan(tree, node);
    return node_plan_state(node) == PLANNED;
}

static void plan_prepared(void *tree, void *node)
{
    node_plan(tree, node);
}

/* Whether the node is planned; otherwise, unless that has been done, its plan is begun on another thread, or made here
 * where there can be none. */
static bool prepare_node(struct tree *tree, struct node *node)
{
    if (node_plan_state(node) >= PLANNED)
        return true;
    pthread_mutex_lock(&tree->lock);
    bool begin = !node->prepared && node_plan_state(node) == UNPLANNED;
    node->prepared = true;
    pthread_mutex_unlock(&tree->lock);
    if (begin && !planner_add(tree->planner, plan_prepared, tree, node))
        node_plan(tree, node);
    return node_plan_state(node) >= PLANNED;
}

bool tree_is_open(const struct tree *tree, node_id directory)
{
    const struct node *node = node_of(tree, directory);
    return node == NULL || node->branch == 0 || node_plan_state(node) >= PLANNED;
}

bool tree_prepare(struct tree *tree, node_id directory, const char *name)
{
    struct node *node = node_of(tree, directory);
    struct branch_node found;
    bool prepared = true;
    if (!tree_is_open(tree, directory) && !prepare_node(tree, node))
        return false;
    if (branch_find(tree, directory, &found))
        return found.tree == NULL || tree_prepare(found.tree, found.id, name);
    if (node == NULL || node->collection != 0)
        return true;
    for (uint32_t child = node->first_child; child != 0; child = tree->nodes[child]->next_sibling) {
        struct node *planned = tree->nodes[child];
        if (!planned->directory && (name == NULL ? !planned->certain : node_is_called(planned, name)))
            prepared &= prepare_node(tree, planned);
    }
    return prepared;
}

void tree_on_planned(struct tree *tree, void (*planned)(void *context), void *context)
{
    pthread_mutex_lock(&tree->lock);
    tree->planned = planned;
    tree->planned_context = context;
    pthread_mutex_unlock(&tree->lock);
}
