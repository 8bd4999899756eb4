/* The inside of a tree, for the files that implement tree.h and no others: its stored nodes, the numbers of computed
 * ones, the plans of files, and the branches.
 *
 * A tree is filled by one thread (tree.c) and does not change after that, but for the plans: those have the tree's
 * lock. */
#pragma once

#include "fs/tree/tree.h"

#include <pthread.h>
#include <stdatomic.h>

enum plan_state { UNPLANNED, PLANNING, PLANNED, ABSENT };

/* A node that is stored; those of collections are computed. Its number is its index + 1. */
struct node {
    const char *name, *alias;                               /* NULL: no other name */
    uint32_t parent, first_child, last_child, next_sibling; /* indices; 0 (the root is nobody's child) ends a list */
    uint32_t n_directories;                                 /* among its children */
    bool directory, certain;
    uint16_t collection; /* 1 + the number of the collection whose directory it is; 0: none */
    uint16_t branch;     /* the same of the branch */

    plan_function *plan;
    const void *context;
    atomic_int state; /* enum plan_state; `file` is valid from PLANNED on */
    bool prepared;    /* given to the planner; guarded by the tree's lock, as what follows is until then */
    pthread_t planned_by;
    struct arena *arena;
    struct vfile file;
};

struct tree_collection {
    const struct collection *collection;
    const void *context;
    uint32_t node;
};

/* A directory that is one of another tree: its node is planned when that tree has been opened. */
struct tree_branch {
    struct tree *owner;
    uint32_t node;
    branch_function *open;
    const void *context;
    const struct tree_branch *of; /* whose tree it is of, from the directory `path` on; NULL: it has its own */
    const char *path;
    struct tree *tree; /* NULL until it has been opened */
    node_id root;      /* the directory there */
};

struct hint {
    const char *path, *text;
    const char *place; /* where the like of it is, if that is there; NULL: nowhere */
    const struct hint *next;
};

struct release {
    void (*release)(void *context);
    void *context;
};

struct tree {
    const struct checkpoint *checkpoint;
    const struct content_options *options;
    struct arena *arena;
    struct shown source_shown;
    const struct shown *shown;
    struct timespec mtime;
    struct node **nodes; /* nodes never move: other threads may hold them */
    uint32_t n_nodes;
    struct tree_collection *collections;
    size_t n_collections;
    struct tree_branch **branches; /* as nodes, they never move */
    size_t n_branches;
    const struct hint *hints;
    struct release *releases;
    size_t n_releases;
    struct planner *planner;
    pthread_mutex_t lock; /* of the states of plans; not held while one is made */
    pthread_cond_t plan_ended;
    void (*planned)(void *context);
    void *planned_context;
    tree_checkpoint_function *opened;
    void *opened_context;
};

/* Numbers of computed nodes: collection + 1 | 0 | item | slot + 1, a slot of 0 being the item's directory. A node of a
 * branch has the number that it has there, with that of the branch + 1 at BRANCH_SHIFT; branches have no branches. */
enum { SLOT_BITS = 8, BRANCH_SHIFT = 48, COLLECTION_SHIFT = 56, MAX_BRANCHES = 255 };
#define BRANCH_MASK ((node_id)MAX_BRANCHES << BRANCH_SHIFT)

/* Nodes (nodes.c). */

/* The stored node of a number; NULL where there is none. */
struct node *node_of(const struct tree *tree, node_id id);

/* Adds one below the node of index `parent`; its index. */
uint32_t node_add(struct tree *tree, uint32_t parent, const char *name, bool directory);

/* Whether it has the name, or the alias. */
bool node_is_called(const struct node *node, const char *name);

/* The index of the child of that name; 0 where there is none. */
uint32_t node_child(const struct tree *tree, const struct node *directory, const char *name);

/* A node of a collection. */
struct computed {
    const struct tree_collection *owner;
    size_t collection;
    uint64_t item;
    int slot; /* -1: the item's directory */
};

node_id computed_id(size_t collection, uint64_t item, unsigned slot_plus_1);
bool computed_of(const struct tree *tree, node_id id, struct computed *ret_computed);

/* Plans (plans.c). */

static inline int node_plan_state(const struct node *node)
{
    return atomic_load_explicit(&node->state, memory_order_acquire);
}

/* Plans a stored file once; false where it turned out to be absent, and for its own plan (metadata.json lists the
 * others). */
bool node_plan(struct tree *tree, struct node *node);

/* Branches (branches.c). */

/* A node that a branch has: which one it is there. */
struct branch_node {
    struct tree *tree; /* NULL: it could not be opened */
    node_id id;
    node_id root;        /* the directory that the branch is, there */
    node_id top, prefix; /* its number here, and what its others have here */
};

/* Whether a node is in a branch, or the directory that one is. Opens it. */
bool branch_find(struct tree *tree, node_id id, struct branch_node *ret_found);

/* The number here of a node of the branch. */
node_id branch_id_here(const struct branch_node *branch, node_id id);

/* Makes the attributes of a branch's node those of the node here; true. */
bool branch_take(const struct branch_node *branch, struct node_attributes *attributes);
