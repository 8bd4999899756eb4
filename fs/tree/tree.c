/* How a tree is filled, and freed. */
#include "fs/tree/content.h"
#include "fs/tree/nodes.h"
#include "fs/tree/planner.h"

#include <assert.h>
#include <stdlib.h>

node_id tree_add_directory(struct tree *tree, node_id parent, const char *name)
{
    const struct node *above = node_of(tree, parent);
    uint32_t there = node_child(tree, above, name);
    if (there == 0)
        return (node_id)node_add(tree, (uint32_t)parent - 1, name, true) + 1;
    bool is_plain = tree->nodes[there]->collection == 0 && tree->nodes[there]->branch == 0;
    return tree->nodes[there]->directory && is_plain ? (node_id)there + 1 : 0;
}

bool tree_add_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, const void *context)
{
    if (node_child(tree, node_of(tree, parent), name) != 0)
        return false;
    uint32_t index = node_add(tree, (uint32_t)parent - 1, name, false); /* moves tree->nodes */
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
    uint32_t child = node_child(tree, node_of(tree, parent), name);
    if (child != 0)
        tree->nodes[child]->alias = arena_strdup(tree->arena, alias);
}

static void add_hint(struct tree *tree, struct hint hint)
{
    struct hint *added = arena_alloc(tree->arena, sizeof *added);
    *added = hint;
    added->next = tree->hints;
    tree->hints = added;
}

void tree_add_hint(struct tree *tree, const char *path, const char *text)
{
    add_hint(tree, (struct hint){.path = path, .text = text});
}

void tree_add_place(struct tree *tree, const char *path, const char *place, const char *why)
{
    add_hint(tree, (struct hint){path, arena_printf(tree->arena, "%s, as %s", why, place), place, NULL});
}

void tree_add_collection(struct tree *tree, node_id parent, const char *name, const struct collection *collection,
                         const void *context)
{
    assert(collection->n_slots() <= COLLECTION_MAX_SLOTS);
    uint32_t node = node_add(tree, (uint32_t)parent - 1, name, true);
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
    node_add(tree, 0, "", true);
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
