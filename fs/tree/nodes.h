/* The inside of a tree, for the files that implement tree.h and no others: its stored nodes, the numbers of computed
 * ones, the plans of files, and the branches.
 *
 * One thread makes a tree (tree.c). Afterwards only plans, branches and callbacks change, under the tree's lock, and
 * deferred directories are filled, under a lock of their own: a reader sees their nodes once they are planned. */
#pragma once

#include "base/lock.h"
#include "base/text_index.h"
#include "fs/tree/tree.h"

#include <pthread.h>
#include <stdatomic.h>

/* A number follows from the node's place alone, not from what was listed before: handles and inode numbers outlive the
 * mount. Its lowest two bits are its kind, the others
 *
 *     STORED    the node's index: the root is 1
 *     COMPUTED  a place of a collection: the item's directory, then its slots
 *     FILLED    where the node was added below a deferred directory of the first level, whose ordinal has 4 bits: as
 * the N-th, or as the M-th into the deferred directory that was the N-th: (N + 1) << FILLED_BITS | M
 *
 * A node of a branch has its number in the branch's tree, with the branch's index + 1 at BRANCH_SHIFT; branches have no
 * branches. So numbers have 53 bits, which a double can hold, and in small trees without branches 32. */
enum number_kind { STORED = 1, COMPUTED, FILLED };
enum {
    KIND_BITS = 2,
    ORDINAL_BITS = 4,
    FILLED_BITS = 16,
    MAX_FILLED = 1 << FILLED_BITS,
    MAX_DEFERRED = 1 << ORDINAL_BITS
};
enum { BRANCH_SHIFT = 37, MAX_BRANCHES = 65535 };
#define BRANCH_MASK ((node_id)MAX_BRANCHES << BRANCH_SHIFT)

/* UNREACHED: a remote source could not be read, or memory ran out; planned again after UNREACHED_PAUSE. */
enum plan_state { UNPLANNED, PLANNING, PLANNED, ABSENT, UNREACHED };
enum { UNREACHED_PAUSE = 2000 /* milliseconds */ };

/* A stored node; nodes of collections are computed. */
struct node {
    node_id number;
    uint32_t index;            /* among the stored nodes */
    _Atomic uint32_t n_filled; /* nodes that the plan of a deferred directory has added ... */
    uint32_t first_filled;     /* ... the index of the first; all others follow it */
    uint8_t ordinal;           /* of the deferred directory of the first level */
    const char *name, *alias;  /* `alias` may be NULL */
    uint32_t parent, first_child, last_child, next_sibling; /* indices; 0 ends a list, as the root is no child */
    uint32_t n_children, n_directories;                     /* directories are among its children */
    struct text_index *names; /* the children by name and alias; NULL while they are few */
    bool directory, certain, unlisted;
    bool deferred;       /* the plan of this directory fills it */
    uint16_t collection; /* 1 + the number of the collection in this directory; 0: none */
    uint16_t branch;     /* 1 + the number of the branch; 0: none */

    const struct original *original; /* NULL: the node is computed */

    plan_function *plan;
    void *context;
    atomic_int state; /* enum plan_state; the size and origin of `file` are valid from PLANNED on */
    bool prepared;    /* handed to a thread; the tree's lock guards this, and the next fields until PLANNED */
    pthread_t planned_by;
    _Atomic(struct arena *) arena; /* holds the file's spans; NULL: node_spans() makes them */
    bool laying_out;               /* the spans are being made again; guarded by the lock */
    struct vfile file;
    char *reason;  /* why the file is ABSENT, else NULL; freed with the tree */
    char *outage;  /* why it was first UNREACHED, else NULL; freed with the tree */
    int64_t again; /* when an UNREACHED file may be planned again, in milliseconds of CLOCK_MONOTONIC */
};

struct tree_collection {
    const struct collection *collection;
    const void *context;
    uint32_t node;
    uint64_t first; /* of its places among those of all collections: slots + 1 for each item */
};

/* A directory of another tree: planning its node opens that tree. */
struct tree_branch {
    struct tree *owner;
    uint32_t node;
    branch_function *open;
    void *context;
    const struct tree_branch *of; /* the branch whose tree it shares, from the directory `path` on; NULL: none */
    const char *path;
    struct tree *tree; /* NULL until it has been opened */
    node_id root;      /* the directory's number in `tree` */
};

/* Inputs that many files share, and the time of these files. */
struct dated_origin {
    struct origin origin;
    struct timespec time;
};

struct hint {
    const char *path, *text;
    const char *place; /* the path of an equivalent file; NULL: none */
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
    const struct shown_tensors *shown;
    struct dated_origin weights, packed, model; /* origin_of_weights() without guides, _packed(), _model() */
    _Atomic(struct node **) nodes; /* a node never moves: other threads may hold it; nor does an outgrown array */
    _Atomic uint32_t n_nodes;
    _Atomic uint64_t generation;        /* tree_generation() above a bit that is set; 0: not known yet */
    struct lock filling;                /* held while a deferred directory is filled */
    struct node *filled;                /* that directory, or NULL; guarded by `filling` */
    uint32_t first_level[MAX_DEFERRED]; /* the indices of the deferred directories that are in no other */
    size_t n_first_level;
    struct tree_collection *collections;
    size_t n_collections;
    struct tree_branch **branches; /* branches never move either */
    size_t n_branches;
    const struct hint *hints;
    _Atomic(const struct source *) largest_whole; /* tree_largest_whole() without branches */
    struct release *releases;
    size_t n_releases;
    struct waits *plans;
    struct lock lock; /* guards the states of plans; not held while planning */
    struct event plan_ended;
    struct error outage; /* the last; its message is "" before; guarded by the lock */
    size_t kept_bytes;   /* size of the kept spans of all files; guarded by the lock */
    void (*planned)(void *context);
    void *planned_context;
    tree_checkpoint_function *opened;
    void *opened_context;
    struct kept_files *kept;        /* NULL: nothing is kept */
    struct kept_findings *findings; /* NULL: none are kept */
    struct shown_product *products; /* product_files.c */
};

/* Nodes (nodes.c). */

/* Returns the stored node of a number, or NULL. */
struct node *node_of(const struct tree *tree, node_id id);

/* Returns what tells trees apart in which a number could mean another node: a hash of the model's identity, the
 * request, and the names of the stored nodes. */
uint32_t tree_generation(struct tree *tree);

/* Adds a node below `parent` (NULL: the root itself). Returns NULL if there is no number for it: a deferred directory
 * has MAX_FILLED nodes already. */
struct node *node_add(struct tree *tree, struct node *parent, const char *name, bool directory);

/* Gives a node a second name. */
void node_add_alias(const struct tree *tree, struct node *node, const char *alias);

/* Reports whether this is the node's name or alias. */
bool node_is_called(const struct node *node, const char *name);

/* Returns the index of the child of that name or alias, or 0. */
uint32_t node_child(const struct tree *tree, const struct node *directory, const char *name);

/* A node of a collection. computed_of() finds the one of a number, or returns false; computed_id() is its reverse. */
struct computed {
    const struct tree_collection *owner;
    uint64_t item;
    int slot; /* -1: the item's directory */
};

node_id computed_id(const struct tree_collection *owner, uint64_t item, unsigned slot_plus_1);
bool computed_of(const struct tree *tree, node_id id, struct computed *ret_computed);

/* Plans (plans.c). */

static inline int node_plan_state(const struct node *node)
{
    return atomic_load_explicit(&node->state, memory_order_acquire);
}

/* Plans a stored file, once, or again after it could not be reached. Returns false if the file is absent or not
 * reached, or if this thread is planning it: metadata.json lists all other files. */
bool node_plan(struct tree *tree, struct node *node);

/* Reports whether the node is planned. If not, starts its plan once, on another thread, or makes it here if no thread
 * can be had. */
bool node_prepare(struct tree *tree, struct node *node);

/* Reports whether a look into the directory must first plan its node. */
static inline bool node_is_opened_late(const struct node *node)
{
    return node->branch != 0 || node->deferred;
}

/* Fills a deferred directory. Returns false if it has no entries, since that failed; true for all other nodes. */
static inline bool node_fill(struct tree *tree, struct node *node)
{
    return !node->deferred || node_plan(tree, node);
}

/* Makes the spans of a planned file valid until the tree is freed. Listing a directory asks for the sizes of many
 * files, few of which are read: once all trees keep PLANS_KEPT bytes, new plans drop their spans, except those of
 * certain files, and the first read makes and keeps them again. Fails if the size is another one by then. */
enum { PLANS_KEPT = 8 * 1024 * 1024 };
bool node_spans(struct tree *tree, struct node *node, struct error *error);
void node_spans_freed(const struct tree *tree); /* the tree's spans are about to be */

/* Branches (branches.c). */

/* The node of the branch's tree that a number stands for. */
struct branch_node {
    struct tree *tree; /* the branch's; NULL: it could not be opened */
    bool unreached;    /* it may be opened later */
    node_id id;
    node_id root;        /* the branch's directory in that tree */
    node_id top, prefix; /* the number of that directory here, and the high bits of all other nodes' numbers here */
};

/* Reports whether a node is a branch's directory or inside a branch. */
bool branch_has(const struct tree *tree, node_id id);

/* Like branch_has(), and opens that branch. */
bool branch_find(struct tree *tree, node_id id, struct branch_node *ret_found);

/* Returns the number, in this tree, of a node of the branch's tree. */
node_id branch_id_here(const struct branch_node *branch, node_id id);

/* Changes the number in the attributes to the one in this tree. Returns true. */
bool branch_take(const struct branch_node *branch, struct node_attributes *attributes);
