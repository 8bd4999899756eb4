/* The inside of a tree, for the files that implement tree.h and no others: its stored nodes, the numbers of computed
 * ones, the plans of files, and the branches.
 *
 * One thread fills a tree (tree.c). Afterwards only the plans change, under the tree's lock. */
#pragma once

#include "fs/tree/tree.h"

#include <pthread.h>
#include <stdatomic.h>

enum plan_state { UNPLANNED, PLANNING, PLANNED, ABSENT };

/* A stored node; a collection's nodes are computed. Its number is its index + 1. */
struct node {
    const char *name, *alias;                               /* NULL: no other name */
    uint32_t parent, first_child, last_child, next_sibling; /* indices; 0 ends a list, as the root is no child */
    uint32_t n_directories;                                 /* among its children */
    bool directory, certain;
    uint16_t collection; /* 1 + the number of the collection in this directory; 0: none */
    uint16_t branch;     /* 1 + the number of the branch; 0: none */

    plan_function *plan;
    void *context;
    atomic_int state; /* enum plan_state; the size and origin of `file` are valid from PLANNED on */
    bool prepared;    /* given to the planner; the tree's lock guards this field, and until then the following ones */
    pthread_t planned_by;
    _Atomic(struct arena *) arena; /* of the file's spans; NULL: node_spans() makes them */
    bool laying_out;               /* they are being made again; guarded by the lock */
    struct vfile file;
    char *reason; /* the reason if it is ABSENT; freed with the tree */
};

struct tree_collection {
    const struct collection *collection;
    const void *context;
    uint32_t node;
};

/* A directory of another tree: its node is planned when that tree has been opened. */
struct tree_branch {
    struct tree *owner;
    uint32_t node;
    branch_function *open;
    void *context;
    const struct tree_branch *of; /* shares its tree, from the directory `path` on; NULL: none */
    const char *path;
    struct tree *tree; /* NULL until it has been opened */
    node_id root;      /* the directory there */
};

/* Inputs that many files share, and the time of such files. */
struct dated_origin {
    struct origin origin;
    struct timespec time;
};

struct hint {
    const char *path, *text;
    const char *place; /* the path of an equivalent file, if that exists; NULL: none */
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
    struct shown_tensors source_shown;
    const struct shown_tensors *shown;
    struct dated_origin weights, packed, model; /* as origin.h has them */
    struct node **nodes;                        /* nodes never move: other threads may hold them */
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
    size_t kept_bytes; /* of the spans of all files; guarded by the lock */
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

/* Reports whether it has the name, or the alias. */
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

/* Makes the spans of a planned file valid until the tree is freed. Plans keep them up to PLANS_KEPT bytes in a tree:
 * listing a directory asks for the sizes of many files, and few of these are read. Of other files they are made again
 * for the first reader. */
enum { PLANS_KEPT = 32 * 1024 * 1024 };
bool node_spans(struct tree *tree, struct node *node, struct error *error);

/* Branches (branches.c). */

/* A node that a branch has: which one it is there. */
struct branch_node {
    struct tree *tree; /* NULL: it could not be opened */
    node_id id;
    node_id root;        /* the directory that the branch is, there */
    node_id top, prefix; /* its number here, and what its others have here */
};

/* Reports whether a node is in a branch, or the directory that one is. Opens it. */
bool branch_find(struct tree *tree, node_id id, struct branch_node *ret_found);

/* The number here of a node of the branch. */
node_id branch_id_here(const struct branch_node *branch, node_id id);

/* Makes the attributes of a branch's node those of the node here; true. */
bool branch_take(const struct branch_node *branch, struct node_attributes *attributes);
