/* Plans of files. The first caller or a thread of the tree makes a plan; a read repeats it if its spans were dropped.
 */
#include "base/attempt.h"
#include "base/lock.h"
#include "base/stop.h"
#include "fs/tree/nodes.h"
#include "fs/tree/waits.h"
#include "sources/source.h"

#include <string.h>
#include <time.h>

struct absence {
    const struct tree *tree;
    const struct node *node;
    const struct error *error;
};

static void note_absence(void *context)
{
    const struct absence *absence = context;
    const struct tree *tree = absence->tree;
    const struct node *node = absence->node;
    struct arena *arena = arena_new();
    const char *path = node->name;
    for (uint32_t above = node->parent; above != 0; above = tree->nodes[above]->parent)
        path = arena_printf(arena, "%s/%s", tree->nodes[above]->name, path);
    checkpoint_note(tree->checkpoint, SUBJECT_SOURCE, "%s is left out: %s", path, absence->error->message);
    arena_free(arena);
}

struct planning {
    const struct node *node;
    struct arena *arena;
    struct vfile file;
    struct error *error;
    enum outcome outcome;
    bool unreached; /* or memory ran out: it may be made later */
};

static void plan(void *context)
{
    struct planning *planning = context;
    const struct node *node = planning->node;
    planning->arena = arena_new();
    planning->outcome = node->plan(node->context, planning->arena, &planning->file, planning->error);
}

/* Plans a node's file in a new arena, which is NULL on failure. */
static struct planning plan_file(const struct node *node, struct error *error)
{
    struct planning planning = {.node = node, .error = error, .outcome = FAILED};
    uint64_t n_unreached = source_unreached();
    bool attempted = attempt(plan, &planning, error);
    if (!attempted && !node->deferred) /* a directory is filled once */
        source_count_unreached();      /* what depends on this file is to be made later, too */
    planning.unreached = source_unreached() != n_unreached;
    if (attempted && planning.outcome == OK && planning.unreached) {
        planning.outcome = FAILED;
        error_set(error, "a source could not be read");
    }
    if (planning.outcome != OK) {
        if (attempted)
            arena_free(planning.arena);
        planning.arena = NULL;
    }
    return planning;
}

/* Bytes of the spans that all trees keep. */
static _Atomic size_t all_kept_bytes;

static void count_kept(struct tree *tree, const struct arena *arena)
{
    tree->kept_bytes += arena_bytes(arena);
    atomic_fetch_add(&all_kept_bytes, arena_bytes(arena));
}

void node_spans_freed(const struct tree *tree)
{
    atomic_fetch_sub(&all_kept_bytes, tree->kept_bytes);
}

/* Keeps the size and origin of a plan, and its spans while there is room for them. A certain file is planned once,
 * since a second plan could list newer facts. The caller has the lock. Returns the arena if it is not kept. */
static struct arena *keep_plan(struct tree *tree, struct node *node, const struct planning *planning)
{
    node->file = planning->file;
    bool is_too_large = atomic_load(&all_kept_bytes) + arena_bytes(planning->arena) > PLANS_KEPT;
    if (node->file.has_size_alone || (!node->certain && is_too_large)) {
        node->file.spans = NULL;
        node->file.n_spans = 0;
        return planning->arena;
    }
    count_kept(tree, planning->arena);
    atomic_store(&node->arena, planning->arena);
    return NULL;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Notes why a node has no plan. A note that lacks memory is made later, with another plan. */
static void note_failure(struct tree *tree, const struct node *node, struct planning *planning)
{
    struct error unnoted;
    if (planning->outcome != FAILED || planning->unreached ||
        attempt(note_absence, &(struct absence){tree, node, planning->error}, &unnoted) || node->deferred)
        return;
    planning->unreached = true;
    source_count_unreached();
}

/* Records why a node has no plan. */
static void record_absence(struct tree *tree, struct node *node, const struct planning *planning)
{
    if (!planning->unreached) {
        node->reason = strdup(planning->error->message);
        return;
    }
    lock_take(&tree->lock);
    if (node->outage == NULL)
        node->outage = strdup(planning->error->message);
    node->again = now() + UNREACHED_PAUSE;
    tree->outage = *planning->error;
    lock_drop(&tree->lock);
}

/* After a stop, the node is as if nobody had planned it. */
static enum plan_state state_after(const struct planning *planning)
{
    struct error unused;
    if (planning->outcome == OK)
        return PLANNED;
    if (!planning->unreached)
        return ABSENT;
    return stop_is_due(&unused) ? UNPLANNED : UNREACHED;
}

static void make_plan(struct tree *tree, struct node *node)
{
    struct error error;
    struct planning planning = plan_file(node, &error);
    note_failure(tree, node, &planning);
    enum plan_state state = state_after(&planning);
    if (state == ABSENT || state == UNREACHED)
        record_absence(tree, node, &planning);
    lock_take(&tree->lock);
    struct arena *unkept = state == PLANNED ? keep_plan(tree, node, &planning) : NULL;
    atomic_store_explicit(&node->state, state, memory_order_release);
    event_wake_all(&tree->plan_ended);
    if (tree->planned != NULL)
        tree->planned(tree->planned_context);
    lock_drop(&tree->lock);
    arena_free(unkept);
}

/* Plans a file again. Fails if its size has changed, as it may if a source was written to, or was wrong, as it may be
 * if an earlier process kept a wrong one: readers rely on the size. */
static struct planning plan_again(const struct node *node, struct error *error)
{
    struct planning again = plan_file(node, error);
    if (again.arena == NULL || again.file.size == node->file.size)
        return again;
    error_set(error, "its size would be %llu bytes, and was %llu: %s; mount again", (unsigned long long)again.file.size,
              (unsigned long long)node->file.size,
              node->file.has_size_alone ? "the size that an earlier wfs kept was wrong" : "a source has changed");
    arena_free(again.arena);
    again.arena = NULL;
    return again;
}

/* Makes a file's spans again, and changes nothing else: other threads may be reading the attributes. */
static bool make_spans(struct tree *tree, struct node *node, struct error *error)
{
    struct planning again = plan_again(node, error);
    lock_take(&tree->lock);
    if (again.arena != NULL) {
        count_kept(tree, again.arena);
        node->file.spans = again.file.spans;
        node->file.n_spans = again.file.n_spans;
        atomic_store_explicit(&node->arena, again.arena, memory_order_release);
    }
    node->laying_out = false;
    event_wake_all(&tree->plan_ended);
    lock_drop(&tree->lock);
    return again.arena != NULL;
}

bool node_spans(struct tree *tree, struct node *node, struct error *error)
{
    if (atomic_load_explicit(&node->arena, memory_order_acquire) != NULL)
        return true;
    lock_take(&tree->lock);
    while (node->laying_out)
        event_wait(&tree->plan_ended, &tree->lock);
    bool made = atomic_load(&node->arena) != NULL;
    node->laying_out = !made;
    lock_drop(&tree->lock);
    return made || make_spans(tree, node, error);
}

/* Lets a node be planned again whose pause ended `extra` milliseconds ago; the caller has the lock. */
static void renew(struct node *node, int64_t extra)
{
    if (node_plan_state(node) != UNREACHED || now() < node->again + extra)
        return;
    atomic_store(&node->state, UNPLANNED);
    node->prepared = false;
}

bool node_plan(struct tree *tree, struct node *node)
{
    if (node_plan_state(node) == PLANNED || node_plan_state(node) == ABSENT)
        return node_plan_state(node) == PLANNED;
    lock_take(&tree->lock);
    renew(node, UNREACHED_PAUSE); /* later than node_prepare(), so that a server that has called it does not wait */
    while (node_plan_state(node) == PLANNING && !pthread_equal(node->planned_by, pthread_self()))
        event_wait(&tree->plan_ended, &tree->lock);
    bool unplanned = node_plan_state(node) == UNPLANNED;
    if (unplanned) {
        atomic_store(&node->state, PLANNING);
        node->planned_by = pthread_self();
    }
    lock_drop(&tree->lock);
    if (unplanned)
        make_plan(tree, node);
    else if (node_plan_state(node) == UNREACHED)
        source_count_unreached(); /* what this thread plans depends on it */
    return node_plan_state(node) == PLANNED;
}

static void plan_prepared(void *tree, void *node)
{
    node_plan(tree, node);
}

bool node_prepare(struct tree *tree, struct node *node)
{
    if (node_plan_state(node) == PLANNED || node_plan_state(node) == ABSENT)
        return true;
    lock_take(&tree->lock);
    renew(node, 0);
    bool begin = !node->prepared && node_plan_state(node) == UNPLANNED;
    node->prepared = true;
    lock_drop(&tree->lock);
    if (begin && !waits_add(tree->plans, plan_prepared, tree, node))
        node_plan(tree, node);
    return node_plan_state(node) >= PLANNED;
}

bool tree_is_open(const struct tree *tree, node_id directory)
{
    const struct node *node = node_of(tree, directory);
    return node == NULL || !node_is_opened_late(node) || node_plan_state(node) >= PLANNED;
}

struct error tree_outage(struct tree *tree)
{
    lock_take(&tree->lock);
    struct error outage = tree->outage;
    for (size_t i = 0; i < tree->n_branches && outage.message[0] == '\0'; i++)
        if (tree->branches[i]->tree != NULL)
            outage = tree_outage(tree->branches[i]->tree);
    lock_drop(&tree->lock);
    return outage;
}

void tree_on_planned(struct tree *tree, void (*planned)(void *context), void *context)
{
    lock_take(&tree->lock);
    tree->planned = planned;
    tree->planned_context = context;
    lock_drop(&tree->lock);
}
