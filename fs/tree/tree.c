#include "fs/tree/tree.h"

#include "base/attempt.h"
#include "base/text.h"
#include "fs/tree/absence.h"
#include "fs/tree/content.h"
#include "fs/tree/planner.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static const node_id branch_mask = (node_id)MAX_BRANCHES << BRANCH_SHIFT;

static node_id computed_id(size_t collection, uint64_t item, unsigned slot_plus_1)
{
    return (node_id)(collection + 1) << COLLECTION_SHIFT | item << SLOT_BITS | slot_plus_1;
}

struct computed {
    const struct tree_collection *owner;
    size_t collection;
    uint64_t item;
    int slot; /* -1: the item's directory */
};

static bool find_computed(const struct tree *tree, node_id id, struct computed *ret_computed)
{
    uint64_t number = id >> COLLECTION_SHIFT;
    if (number == 0 || number > tree->n_collections || (id & branch_mask) != 0)
        return false;
    struct computed computed = {
        .owner = &tree->collections[number - 1],
        .collection = number - 1,
        .item = (id & (((node_id)1 << BRANCH_SHIFT) - 1)) >> SLOT_BITS,
        .slot = (int)(id & ((1 << SLOT_BITS) - 1)) - 1,
    };
    if (computed.item >= computed.owner->collection->count(computed.owner->context))
        return false;
    *ret_computed = computed;
    return true;
}

static struct node *find_node(const struct tree *tree, node_id id)
{
    return id >= 1 && id <= tree->n_nodes ? tree->nodes[id - 1] : NULL;
}

static uint32_t add_node(struct tree *tree, uint32_t parent, const char *name, bool directory)
{
    struct node *node = arena_alloc(tree->arena, sizeof *node);
    *node = (struct node){.name = arena_strdup(tree->arena, name), .parent = parent, .directory = directory};
    if ((tree->n_nodes & (tree->n_nodes - 1)) == 0)
        tree->nodes = memory_resize(tree->nodes, (tree->n_nodes ? tree->n_nodes * 2 : 1) * sizeof(struct node *));
    uint32_t index = tree->n_nodes++;
    tree->nodes[index] = node;
    if (index == 0)
        return index;
    struct node *above = tree->nodes[parent];
    if (above->last_child != 0)
        tree->nodes[above->last_child]->next_sibling = index;
    else
        above->first_child = index;
    above->last_child = index;
    above->n_directories += directory;
    return index;
}

static bool is_called(const struct node *node, const char *name)
{
    return strcmp(node->name, name) == 0 || (node->alias != NULL && strcmp(node->alias, name) == 0);
}

static uint32_t find_child(const struct tree *tree, const struct node *directory, const char *name)
{
    for (uint32_t child = directory->first_child; child != 0; child = tree->nodes[child]->next_sibling)
        if (is_called(tree->nodes[child], name))
            return child;
    return 0;
}

node_id tree_add_directory(struct tree *tree, node_id parent, const char *name)
{
    const struct node *above = find_node(tree, parent);
    uint32_t there = find_child(tree, above, name);
    if (there == 0)
        return (node_id)add_node(tree, (uint32_t)parent - 1, name, true) + 1;
    bool is_plain = tree->nodes[there]->collection == 0 && tree->nodes[there]->branch == 0;
    return tree->nodes[there]->directory && is_plain ? (node_id)there + 1 : 0;
}

bool tree_add_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, const void *context)
{
    if (find_child(tree, find_node(tree, parent), name) != 0)
        return false;
    uint32_t index = add_node(tree, (uint32_t)parent - 1, name, false); /* moves tree->nodes */
    struct node *node = tree->nodes[index];
    node->plan = plan;
    node->context = context;
    return true;
}

bool tree_add_certain_file(struct tree *tree, node_id parent, const char *name, plan_function *plan,
                           const void *context)
{
    if (!tree_add_file(tree, parent, name, plan, context))
        return false;
    tree->nodes[tree->n_nodes - 1]->certain = true;
    return true;
}

void tree_add_alias(struct tree *tree, node_id parent, const char *name, const char *alias)
{
    uint32_t child = find_child(tree, find_node(tree, parent), name);
    if (child != 0)
        tree->nodes[child]->alias = arena_strdup(tree->arena, alias);
}

void tree_add_hint(struct tree *tree, const char *path, const char *text)
{
    struct hint *hint = arena_alloc(tree->arena, sizeof *hint);
    *hint = (struct hint){path, text, tree->hints};
    tree->hints = hint;
}

void tree_add_collection(struct tree *tree, node_id parent, const char *name, const struct collection *collection,
                         const void *context)
{
    assert(collection->n_slots() <= COLLECTION_MAX_SLOTS);
    uint32_t node = add_node(tree, (uint32_t)parent - 1, name, true);
    tree->collections = memory_resize(tree->collections, (tree->n_collections + 1) * sizeof *tree->collections);
    tree->collections[tree->n_collections++] = (struct tree_collection){collection, context, node};
    tree->nodes[node]->collection = (uint16_t)tree->n_collections;
}

void tree_show(struct tree *tree, const struct shown *shown)
{
    tree->shown = shown;
}

void tree_on_free(struct tree *tree, void (*release)(void *context), void *context)
{
    tree->releases = memory_resize(tree->releases, (tree->n_releases + 1) * sizeof *tree->releases);
    tree->releases[tree->n_releases++] = (struct release){release, context};
}

static void find_later(const struct source *source, struct timespec *latest)
{
    struct timespec time = source_mtime(source);
    if (time.tv_sec > latest->tv_sec || (time.tv_sec == latest->tv_sec && time.tv_nsec > latest->tv_nsec))
        *latest = time;
}

/* Of the weights; where there are none, of whatever there is. */
static struct timespec newest(const struct checkpoint *checkpoint)
{
    struct timespec latest = {0};
    size_t n_guides = checkpoint->n_sources == 0 ? checkpoint->n_guides : 0;
    for (size_t i = 0; i < checkpoint->n_sources + n_guides; i++)
        find_later(checkpoint->sources[i], &latest);
    for (size_t i = 0; checkpoint->n_sources == 0 && i < checkpoint->n_side_files; i++)
        find_later(checkpoint->side_files[i].source, &latest);
    return latest;
}

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error)
{
    struct tree *tree = memory_alloc(sizeof *tree);
    *tree = (struct tree){
        .checkpoint = checkpoint,
        .options = options,
        .arena = arena_new(),
        .mtime = newest(checkpoint),
        .planner = planner_new(),
    };
    pthread_mutex_init(&tree->lock, NULL);
    pthread_cond_init(&tree->plan_ended, NULL);
    tree->source_shown = shown_of(checkpoint, tree->arena);
    tree->shown = &tree->source_shown;
    add_node(tree, 0, "", true);
    for (const struct content *const *content = contents; *content != NULL; content++)
        if ((checkpoint->n_sources != 0 || !(*content)->of_weights) && !(*content)->add(tree, error)) {
            tree_free(tree);
            return NULL;
        }
    memory_trim();
    return tree;
}

void tree_free(struct tree *tree)
{
    if (tree == NULL)
        return;
    planner_free(tree->planner);
    for (size_t i = 0; i < tree->n_branches; i++)
        if (tree->branches[i]->of == NULL)
            tree_free(tree->branches[i]->tree);
    for (size_t i = tree->n_releases; i-- > 0;)
        tree->releases[i].release(tree->releases[i].context);
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        arena_free(tree->nodes[i]->arena);
    free(tree->branches);
    pthread_cond_destroy(&tree->plan_ended);
    pthread_mutex_destroy(&tree->lock);
    free(tree->releases);
    free(tree->nodes);
    free(tree->collections);
    arena_free(tree->arena);
    free(tree);
}

const struct checkpoint *tree_checkpoint(const struct tree *tree)
{
    return tree->checkpoint;
}

const struct content_options *tree_options(const struct tree *tree)
{
    return tree->options;
}

const struct shown *tree_shown(const struct tree *tree)
{
    return tree->shown;
}

const struct shown *tree_source_shown(const struct tree *tree)
{
    return &tree->source_shown;
}

struct arena *tree_arena(struct tree *tree)
{
    return tree->arena;
}

static void note_absence(const struct tree *tree, const struct node *node, const struct error *error)
{
    struct arena *arena = arena_new();
    const char *path = node->name;
    for (uint32_t above = node->parent; above != 0; above = tree->nodes[above]->parent)
        path = arena_printf(arena, "%s/%s", tree->nodes[above]->name, path);
    checkpoint_note(tree->checkpoint, "%s is left out: %s", path, error->message);
    arena_free(arena);
}

static int plan_state(const struct node *node)
{
    return atomic_load_explicit(&node->state, memory_order_acquire);
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

/* Plans a stored file once; false where it turned out to be absent, and for its own plan (metadata.json lists the
 * others). */
static bool plan_node(struct tree *tree, struct node *node)
{
    if (plan_state(node) >= PLANNED)
        return plan_state(node) == PLANNED;
    pthread_mutex_lock(&tree->lock);
    bool unplanned = plan_state(node) == UNPLANNED;
    if (unplanned) {
        atomic_store(&node->state, PLANNING);
        node->planned_by = pthread_self();
    }
    bool by_us = plan_state(node) == PLANNING && pthread_equal(node->planned_by, pthread_self());
    while (plan_state(node) == PLANNING && !by_us)
        pthread_cond_wait(&tree->plan_ended, &tree->lock);
    pthread_mutex_unlock(&tree->lock);
    if (unplanned)
        make_plan(tree, node);
    return plan_state(node) == PLANNED;
}

static void planned_in_branch(void *context)
{
    struct tree *owner = context;
    pthread_mutex_lock(&owner->lock);
    if (owner->planned != NULL)
        owner->planned(owner->planned_context);
    pthread_mutex_unlock(&owner->lock);
}

/* The plan of the node of a branch: there is no file. */
static bool plan_branch(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)arena, (void)ret_file;
    struct tree_branch *branch = (struct tree_branch *)context;
    struct tree *owner = branch->owner, *tree = branch->open(branch->context, error);
    if (tree == NULL)
        return false;
    tree_on_planned(tree, planned_in_branch, owner);
    attempt_lock(&owner->lock);
    branch->tree = tree;
    branch->root = TREE_ROOT;
    if (owner->opened != NULL)
        owner->opened(owner->opened_context, tree->checkpoint);
    attempt_unlock(&owner->lock);
    return true;
}

/* The same of a branch that has no tree of its own. */
static bool plan_part_of_branch(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)arena, (void)ret_file;
    struct tree_branch *branch = (struct tree_branch *)context;
    struct node_attributes directory;
    error->message[0] = '\0'; /* the other says it */
    if (!plan_node(branch->owner, branch->owner->nodes[branch->of->node]))
        return false;
    bool found = tree_lookup(branch->of->tree, TREE_ROOT, branch->path, &directory) && directory.directory;
    branch->tree = branch->of->tree;
    branch->root = found ? directory.id : TREE_ROOT;
    return true;
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

bool tree_add_branch(struct tree *tree, node_id parent, const char *name, branch_function *open, const void *context)
{
    return add_branch(tree, parent, name, plan_branch, &(struct tree_branch){.open = open, .context = context});
}

bool tree_add_part_of_branch(struct tree *tree, node_id parent, const char *name, node_id branch, const char *directory)
{
    const struct node *whole = find_node(tree, branch);
    return whole != NULL && whole->branch != 0 &&
           add_branch(tree, parent, name, plan_part_of_branch,
                      &(struct tree_branch){.of = tree->branches[whole->branch - 1], .path = directory});
}

/* A node that a branch has: which one it is there. */
struct branch_node {
    struct tree *tree; /* NULL: it could not be opened */
    node_id id;
    node_id root;        /* the directory that the branch is, there */
    node_id top, prefix; /* its number here, and what its others have here */
};

/* Whether a node is in a branch, or the directory that one is. Opens it. */
static bool find_in_branch(struct tree *tree, node_id id, struct branch_node *ret_found)
{
    const struct node *top = find_node(tree, id);
    uint64_t number = top != NULL ? top->branch : (id & branch_mask) >> BRANCH_SHIFT;
    if (number == 0 || number > tree->n_branches)
        return false;
    const struct tree_branch *branch = tree->branches[number - 1];
    bool is_open = plan_node(tree, tree->nodes[branch->node]);
    *ret_found = (struct branch_node){
        .tree = is_open ? branch->tree : NULL,
        .root = branch->root,
        .id = top != NULL ? branch->root : id & ~branch_mask,
        .top = (node_id)branch->node + 1,
        .prefix = (node_id)number << BRANCH_SHIFT,
    };
    return true;
}

/* The number here of a node of the branch. */
static node_id id_from_branch(const struct branch_node *branch, node_id id)
{
    return id == branch->root ? branch->top : id | branch->prefix;
}

struct tree *tree_branch(struct tree *tree, node_id directory)
{
    struct branch_node found;
    bool is_top = find_in_branch(tree, directory, &found) && directory == found.top;
    return is_top && found.root == TREE_ROOT ? found.tree : NULL;
}

void tree_on_checkpoint(struct tree *tree, tree_checkpoint_function *opened, void *context)
{
    pthread_mutex_lock(&tree->lock);
    tree->opened = opened;
    tree->opened_context = context;
    if (opened != NULL) {
        opened(context, tree->checkpoint);
        for (size_t i = 0; i < tree->n_branches; i++)
            if (tree->branches[i]->tree != NULL && tree->branches[i]->of == NULL)
                opened(context, tree->branches[i]->tree->checkpoint);
    }
    pthread_mutex_unlock(&tree->lock);
}

static void plan_prepared(void *tree, void *node)
{
    plan_node(tree, node);
}

/* Whether the node is planned; otherwise, unless that has been done, its plan is begun on another thread, or made here
 * where there can be none. */
static bool prepare_node(struct tree *tree, struct node *node)
{
    if (plan_state(node) >= PLANNED)
        return true;
    pthread_mutex_lock(&tree->lock);
    bool begin = !node->prepared && plan_state(node) == UNPLANNED;
    node->prepared = true;
    pthread_mutex_unlock(&tree->lock);
    if (begin && !planner_add(tree->planner, plan_prepared, tree, node))
        plan_node(tree, node);
    return plan_state(node) >= PLANNED;
}

bool tree_is_open(const struct tree *tree, node_id directory)
{
    const struct node *node = find_node(tree, directory);
    return node == NULL || node->branch == 0 || plan_state(node) >= PLANNED;
}

bool tree_prepare(struct tree *tree, node_id directory, const char *name)
{
    struct node *node = find_node(tree, directory);
    struct branch_node found;
    bool prepared = true;
    if (!tree_is_open(tree, directory) && !prepare_node(tree, node))
        return false;
    if (find_in_branch(tree, directory, &found))
        return found.tree == NULL || tree_prepare(found.tree, found.id, name);
    if (node == NULL || node->collection != 0)
        return true;
    for (uint32_t child = node->first_child; child != 0; child = tree->nodes[child]->next_sibling) {
        struct node *planned = tree->nodes[child];
        if (!planned->directory && (name == NULL ? !planned->certain : is_called(planned, name)))
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

/* What a directory tells of its sources is names: of the tensors, for that of a collection. */
static struct origin node_origin(const struct tree *tree, const struct node *node)
{
    if (!node->directory)
        return node->file.origin;
    return node->collection != 0 ? origin_of_weights(tree->checkpoint) : (struct origin){0};
}

/* Who may read a directory may search it. */
static mode_t permissions(const struct origin *origin, bool directory)
{
    mode_t mode = origin_permissions(origin);
    return directory ? mode | mode >> 2 : mode;
}

static bool node_attributes(struct tree *tree, uint32_t index, struct node_attributes *ret_attributes)
{
    struct node *node = tree->nodes[index];
    if (!node->directory && !plan_node(tree, node))
        return false;
    uint64_t n_links = node->directory && node->branch == 0 ? 2 + (uint64_t)node->n_directories : 1;
    if (node->collection != 0) {
        const struct tree_collection *owner = &tree->collections[node->collection - 1];
        n_links += owner->collection->count(owner->context);
    }
    struct origin origin = node_origin(tree, node);
    *ret_attributes = (struct node_attributes){
        .id = (node_id)index + 1,
        .directory = node->directory,
        .branch = node->branch != 0,
        .permissions = permissions(&origin, node->directory),
        .group = origin_group(&origin),
        .size = node->directory ? 0 : node->file.size,
        .n_links = n_links,
        .mtime = tree->mtime,
    };
    return true;
}

/* Attributes, and the name where `name` is not NULL. */
static bool computed_attributes(const struct tree *tree, const struct computed *computed, char *name,
                                struct node_attributes *ret_attributes)
{
    const struct tree_collection *owner = computed->owner;
    char unwanted[TREE_MAX_NAME + 1];
    uint64_t size = 0;
    if (computed->slot >= (int)owner->collection->n_slots())
        return false;
    if (computed->slot >= 0) {
        if (!owner->collection->file(owner->context, computed->item, (unsigned)computed->slot, name ? name : unwanted,
                                     &size))
            return false;
    } else if (name != NULL) {
        owner->collection->name(owner->context, computed->item, name);
    }
    struct origin origin = owner->collection->origin(owner->context, computed->item);
    *ret_attributes = (struct node_attributes){
        .id = computed_id(computed->collection, computed->item, (unsigned)(computed->slot + 1)),
        .directory = computed->slot < 0,
        .permissions = permissions(&origin, computed->slot < 0),
        .group = origin_group(&origin),
        .size = size,
        .n_links = computed->slot < 0 ? 2 : 1,
        .mtime = tree->mtime,
    };
    return true;
}

/* Makes the attributes of a branch's node those of the node here. */
static bool take_from_branch(const struct branch_node *branch, struct node_attributes *attributes)
{
    attributes->id = id_from_branch(branch, attributes->id);
    return true;
}

bool tree_attributes(struct tree *tree, node_id id, struct node_attributes *ret_attributes)
{
    struct computed computed;
    struct branch_node found;
    if (find_node(tree, id) != NULL)
        return node_attributes(tree, (uint32_t)id - 1, ret_attributes);
    if (find_in_branch(tree, id, &found))
        return found.tree != NULL && tree_attributes(found.tree, found.id, ret_attributes) &&
               take_from_branch(&found, ret_attributes);
    return find_computed(tree, id, &computed) && computed_attributes(tree, &computed, NULL, ret_attributes);
}

static bool lookup_slot(const struct tree *tree, struct computed *item, const char *name,
                        struct node_attributes *ret_attributes)
{
    char found[TREE_MAX_NAME + 1];
    for (item->slot = 0; item->slot < (int)item->owner->collection->n_slots(); item->slot++)
        if (computed_attributes(tree, item, found, ret_attributes) && strcmp(found, name) == 0)
            return true;
    return false;
}

bool tree_lookup(struct tree *tree, node_id directory, const char *name, struct node_attributes *ret_attributes)
{
    struct computed computed;
    struct branch_node found;
    const struct node *node = find_node(tree, directory);
    if (find_in_branch(tree, directory, &found))
        return found.tree != NULL && tree_lookup(found.tree, found.id, name, ret_attributes) &&
               take_from_branch(&found, ret_attributes);
    if (node == NULL)
        return find_computed(tree, directory, &computed) && computed.slot < 0 &&
               lookup_slot(tree, &computed, name, ret_attributes);
    if (node->collection != 0) {
        const struct tree_collection *owner = &tree->collections[node->collection - 1];
        computed = (struct computed){.owner = owner, .collection = node->collection - 1, .slot = -1};
        return owner->collection->find(owner->context, name, &computed.item) &&
               computed_attributes(tree, &computed, NULL, ret_attributes);
    }
    uint32_t child = find_child(tree, node, name);
    return child != 0 && node_attributes(tree, child, ret_attributes);
}

node_id tree_parent(struct tree *tree, node_id id)
{
    struct computed computed;
    struct branch_node found;
    if (find_node(tree, id) != NULL)
        return (node_id)find_node(tree, id)->parent + 1;
    if (find_in_branch(tree, id, &found))
        return found.tree != NULL ? id_from_branch(&found, tree_parent(found.tree, found.id)) : TREE_ROOT;
    if (!find_computed(tree, id, &computed))
        return TREE_ROOT;
    return computed.slot < 0 ? (node_id)computed.owner->node + 1 : computed_id(computed.collection, computed.item, 0);
}

/* Why just this is absent, where that is known: by a note, by who computes the directory, by the list of what is not
 * shown. */
static const char *reason_of_absence(struct tree *tree, node_id directory, const char *name, const char *path,
                                     struct arena *arena)
{
    const struct checkpoint *checkpoint = tree->checkpoint;
    struct computed computed;
    const struct node *node = find_node(tree, directory);
    uint32_t child = node != NULL ? find_child(tree, node, name) : 0;
    if (child != 0)
        path = tree_path(tree, (node_id)child + 1, arena);
    const char *reason = absence_in_notes(checkpoint, path, child != 0);
    if (reason == NULL && find_computed(tree, directory, &computed) && computed.slot < 0)
        reason = computed.owner->collection->refusal(computed.owner->context, computed.item, name);
    for (size_t i = 0; i < checkpoint->n_hidden && reason == NULL; i++)
        if (strcmp(checkpoint->hidden[i].name, path) == 0)
            reason = checkpoint->hidden[i].reason;
    for (const struct hint *hint = tree->hints; hint != NULL && reason == NULL; hint = hint->next)
        if (strcmp(hint->path, path) == 0)
            reason = hint->text;
    return reason;
}

struct nearest {
    struct text_guess guess;
    char best[TREE_MAX_NAME + 1];
};

static bool guess_name(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index, (void)attributes;
    struct nearest *nearest = context;
    text_guess_try(&nearest->guess, name);
    if (nearest->guess.best == name) {
        snprintf(nearest->best, sizeof nearest->best, "%s", name);
        nearest->guess.best = nearest->best;
    }
    return true;
}

/* What may be meant by the last part of a path, which is not in the directory: text to add to the message. */
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
    for (size_t i = 0; tree->checkpoint->n_sources == 0 && i < tree->n_branches; i++)
        hint = arena_printf(arena, "%s%s%s", i == 0 ? "; the components are " : hint, i == 0 ? "" : ", ",
                            tree->nodes[tree->branches[i]->node]->name);
    return hint;
}

/* Of a name that is not in the directory: why, or which one may be meant. `length` is that of the path up to its end.
 */
static bool is_absent(struct tree *tree, node_id directory, const char *name, const char *whole, size_t length,
                      struct error *error)
{
    struct arena *arena = arena_new();
    const char *path = arena_strndup(arena, whole, length), *from = path;
    while (*from == '/' || (from[0] == '.' && from[1] == '/'))
        from++;
    const char *reason = reason_of_absence(tree, directory, name, from, arena);
    if (reason != NULL && text_starts_with(reason, from))
        error_set(error, "%s", reason);
    else if (reason != NULL)
        error_set(error, "there is no '%s': %s", path, reason);
    else
        error_set(error, "there is no '%s'%s", path, hint_at(tree, directory, name, path, arena));
    arena_free(arena);
    return false;
}

static bool walk(struct tree *tree, node_id from, const char *path, struct node_attributes *ret_attributes,
                 struct error *error);

/* The rest of a path that has come to a branch. */
static bool walk_branch(struct tree *tree, node_id top, const char *path, const char *rest,
                        struct node_attributes *ret_attributes, struct error *error)
{
    struct branch_node found;
    const char *inner = rest + strspn(rest, "/");
    if (*inner == '\0')
        return tree_attributes(tree, top, ret_attributes);
    if (!find_in_branch(tree, top, &found) || found.tree == NULL)
        return error_set(error, "%s: '%.*s' cannot be opened", path, (int)(rest - path), path);
    if (!walk(found.tree, found.root, inner, ret_attributes, error))
        return error_prefix(error, "%.*s", (int)(rest - path), path);
    take_from_branch(&found, ret_attributes);
    return ret_attributes->id != top || tree_attributes(tree, top, ret_attributes);
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

/* The last part of a computed node's path. */
static void computed_name(const struct computed *computed, char name[TREE_MAX_NAME + 1])
{
    const struct tree_collection *owner = computed->owner;
    uint64_t size;
    *name = '\0';
    if (computed->slot < 0)
        owner->collection->name(owner->context, computed->item, name);
    else
        owner->collection->file(owner->context, computed->item, (unsigned)computed->slot, name, &size);
}

static const char *path_in_branch(struct tree *tree, const struct branch_node *found, struct arena *arena)
{
    const char *top = tree_path(tree, found->top, arena);
    if (found->tree == NULL)
        return top;
    const char *path = tree_path(found->tree, found->id, arena), *root = tree_path(found->tree, found->root, arena);
    path += strlen(root);
    return arena_printf(arena, "%s/%s", top, path + (*path == '/'));
}

const char *tree_path(struct tree *tree, node_id id, struct arena *arena)
{
    const char *path = NULL;
    for (node_id at = id, above; at != TREE_ROOT; at = above) {
        char computed_part[TREE_MAX_NAME + 1];
        const char *part = computed_part;
        struct computed computed;
        const struct node *node = find_node(tree, at);
        struct branch_node found;
        if (node != NULL)
            part = node->name;
        else if (find_in_branch(tree, at, &found))
            return path_in_branch(tree, &found, arena);
        else if (find_computed(tree, at, &computed))
            computed_name(&computed, computed_part);
        else
            break;
        above = tree_parent(tree, at);
        path = path != NULL ? arena_printf(arena, "%s/%s", part, path) : arena_strdup(arena, part);
    }
    return path != NULL ? path : "";
}

static void list_items(const struct tree *tree, size_t collection, uint64_t first, tree_emit *emit, void *context)
{
    const struct tree_collection *owner = &tree->collections[collection];
    uint64_t n_items = owner->collection->count(owner->context);
    for (uint64_t item = first; item < n_items; item++) {
        char name[TREE_MAX_NAME + 1];
        struct node_attributes attributes;
        struct computed computed = {owner, collection, item, -1};
        if (computed_attributes(tree, &computed, name, &attributes) && !emit(context, item, name, &attributes))
            return;
    }
}

static void list_slots(const struct tree *tree, struct computed *item, uint64_t first, tree_emit *emit, void *context)
{
    for (uint64_t slot = first; slot < item->owner->collection->n_slots(); slot++) {
        char name[TREE_MAX_NAME + 1];
        struct node_attributes attributes;
        item->slot = (int)slot;
        if (computed_attributes(tree, item, name, &attributes) && !emit(context, slot, name, &attributes))
            return;
    }
}

/* Which children are planned before they are listed. */
enum waiting { WAIT_FOR_ALL, WAIT_FOR_UNCERTAIN, WAIT_FOR_NONE };

static bool child_attributes(struct tree *tree, uint32_t index, enum waiting waiting,
                             struct node_attributes *ret_attributes)
{
    const struct node *node = tree->nodes[index];
    bool wait = waiting == WAIT_FOR_ALL || (waiting == WAIT_FOR_UNCERTAIN && !node->certain);
    if (wait || node->directory || plan_state(node) >= PLANNED)
        return node_attributes(tree, index, ret_attributes);
    *ret_attributes = (struct node_attributes){.id = (node_id)index + 1, .pending = true};
    return true;
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
    take_from_branch(listing->branch, &here);
    return listing->emit(listing->context, index, name, &here);
}

static void list(struct tree *tree, node_id directory, uint64_t first, enum waiting waiting, tree_emit *emit,
                 void *context)
{
    struct computed computed;
    struct branch_node found;
    const struct node *node = find_node(tree, directory);
    if (find_in_branch(tree, directory, &found)) {
        if (found.tree != NULL)
            list(found.tree, found.id, first, waiting, emit_from_branch,
                 &(struct branch_listing){&found, emit, context});
        return;
    }
    if (node == NULL) {
        if (find_computed(tree, directory, &computed) && computed.slot < 0)
            list_slots(tree, &computed, first, emit, context);
        return;
    }
    if (node->collection != 0) {
        list_items(tree, node->collection - 1, first, emit, context);
        return;
    }
    uint64_t index = 0;
    for (uint32_t child = node->first_child; child != 0; child = tree->nodes[child]->next_sibling, index++) {
        struct node_attributes attributes;
        if (index >= first && child_attributes(tree, child, waiting, &attributes) &&
            !emit(context, index, tree->nodes[child]->name, &attributes))
            return;
    }
}

void tree_list(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    list(tree, directory, first, WAIT_FOR_ALL, emit, context);
}

void tree_list_names(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    list(tree, directory, first, WAIT_FOR_UNCERTAIN, emit, context);
}

void tree_list_prepared(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    list(tree, directory, first, WAIT_FOR_NONE, emit, context);
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
        if (plan_state(tree->nodes[tree->branches[i]->node]) == PLANNED)
            tree_number_files(tree->branches[i]->tree, emit_number_of_branch,
                              &(struct branch_numbering){(node_id)(i + 1) << BRANCH_SHIFT, emit, context});
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        if (!tree->nodes[i]->directory)
            emit(context, (node_id)i + 1);
    for (size_t i = 0; i < tree->n_collections; i++) {
        const struct tree_collection *owner = &tree->collections[i];
        uint64_t n_items = owner->collection->count(owner->context);
        unsigned n_slots = owner->collection->n_slots();
        for (uint64_t item = 0; item < n_items; item++)
            for (unsigned slot = 0; slot < n_slots; slot++)
                emit(context, computed_id(i, item, slot + 1));
    }
}

bool tree_file(struct tree *tree, node_id id, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct computed computed;
    struct branch_node found;
    struct node *node = find_node(tree, id);
    if (find_in_branch(tree, id, &found) && found.tree != NULL)
        return tree_file(found.tree, found.id, arena, ret_file, error);
    if (node != NULL && !node->directory && plan_node(tree, node)) {
        *ret_file = node->file;
        return true;
    }
    if (node == NULL && find_computed(tree, id, &computed) && computed.slot >= 0)
        return computed.owner->collection->plan(computed.owner->context, computed.item, (unsigned)computed.slot, arena,
                                                ret_file, error);
    return error_set(error, "there is no such file");
}

void tree_xattrs(struct tree *tree, node_id id, tree_emit_xattr *emit, void *context)
{
    struct computed computed;
    struct branch_node found;
    if (find_in_branch(tree, id, &found) && found.tree != NULL)
        tree_xattrs(found.tree, found.id, emit, context);
    else if (find_node(tree, id) == NULL && find_computed(tree, id, &computed))
        computed.owner->collection->xattrs(computed.owner->context, computed.item, computed.slot, emit, context);
}
