/* Filling a tree. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/nodes.h"

#include "base/attempt.h"
#include "base/stop.h"
#include "sources/source.h"
#include "sources/source_kinds.h"

#include <assert.h>
#include <string.h>

node_id tree_add_directory(struct tree *tree, node_id parent, const char *name)
{
    struct node *above = node_of(tree, parent);
    uint32_t there = node_child(tree, above, name);
    const struct node *node = there != 0 ? tree->nodes[there] : node_add(tree, above, name, true);
    bool is_plain = node != NULL && node->collection == 0 && node->branch == 0 && !node->deferred;
    return is_plain && node->directory ? node->number : 0;
}

node_id tree_add_path(struct tree *tree, node_id parent, const char *path, const char **ret_name)
{
    for (const char *slash; parent != 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1)
        parent = tree_add_directory(tree, parent, arena_strndup(tree_arena(tree), path, (size_t)(slash - path)));
    *ret_name = path;
    return parent;
}

bool tree_add_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, void *context)
{
    struct node *above = node_of(tree, parent);
    struct node *node = node_child(tree, above, name) == 0 ? node_add(tree, above, name, false) : NULL;
    if (node == NULL)
        return false;
    node->plan = plan;
    node->context = context;
    return true;
}

bool tree_add_certain_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, void *context)
{
    if (!tree_add_file(tree, parent, name, plan, context))
        return false;
    tree->nodes[tree->n_nodes - 1]->certain = true;
    return true;
}

node_id tree_add_original(struct tree *tree, node_id parent, const char *name, const struct original *original,
                          plan_function *plan, void *context)
{
    struct node *above = node_of(tree, parent);
    bool is_directory = plan == NULL && original->target == NULL;
    struct node *node = node_child(tree, above, name) == 0 ? node_add(tree, above, name, is_directory) : NULL;
    if (node == NULL)
        return 0;
    node->original = original;
    node->plan = plan;
    node->context = context;
    node->certain = true;
    if (original->target != NULL) {
        node->file = (struct vfile){.size = strlen(original->target)};
        atomic_store(&node->state, PLANNED);
    }
    return node->number;
}

struct text_file {
    struct origin origin;
    text_writer *write;
    void *context;
};

enum { LONG_TEXT = 1024 * 1024 /* bytes: such as a tokenizer */ };

static bool write_again(void *context, struct buffer *parts, size_t n_parts, struct error *error)
{
    const struct text_file *file = context;
    return file->write(file->context, parts, error) == OK;
}

static void close_source(void *source)
{
    source_close(source);
}

/* Makes the file of a long text, and takes the text: who asked for its size may be about to read it, and a tree has
 * many files whose size is all that anybody asks for. */
static struct vfile long_text(struct text_file *file, struct buffer *text, struct arena *arena)
{
    struct span_list spans = {.arena = arena};
    uint64_t size = text->length;
    struct source *source = source_remade_new(file->origin.sources[0], "the text", text, 1, write_again, NULL, file);
    arena_on_free(arena, close_source, source);
    spans_add_view(&spans, view_of_source(arena, source, 0, &u8_dtype, 1, &size), encoding_of(&u8_dtype));
    return vfile_of_spans(&spans, file->origin);
}

static enum outcome plan_text(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct text_file *file = context;
    struct buffer text = {0};
    enum outcome outcome = file->write(file->context, &text, error);
    bool is_long = text.length >= LONG_TEXT && file->origin.n_sources != 0 && !source_any_remote();
    if (outcome == OK)
        *ret_file =
            is_long ? long_text(file, &text, arena) : vfile_of_text(text.bytes, text.length, file->origin, arena);
    buffer_free(&text);
    return outcome;
}

void tree_unlist(struct tree *tree, node_id id)
{
    struct node *node = node_of(tree, id);
    if (node->unlisted)
        return;
    node->unlisted = true;
    tree->nodes[node->parent]->n_directories -= node->directory;
}

void tree_list_last(struct tree *tree, node_id parent, const char *name)
{
    struct node *above = node_of(tree, parent);
    uint32_t child = node_child(tree, above, name), *link = &above->first_child;
    struct node *node = tree->nodes[child];
    if (child == 0)
        return;
    node->unlisted = false;
    if (above->last_child == child)
        return;
    while (*link != child)
        link = &tree->nodes[*link]->next_sibling;
    *link = node->next_sibling;
    node->next_sibling = 0;
    tree->nodes[above->last_child]->next_sibling = child;
    above->last_child = child;
}

bool tree_add_text(struct tree *tree, node_id parent, const char *name, struct origin origin, text_writer *write,
                   void *context)
{
    struct text_file *file = arena_alloc(tree_arena(tree), sizeof *file);
    *file = (struct text_file){origin, write, context};
    return tree_add_file(tree, parent, name, plan_text, file);
}

void tree_add_alias(struct tree *tree, node_id parent, const char *name, const char *alias)
{
    uint32_t child = node_child(tree, node_of(tree, parent), name);
    if (child != 0)
        node_add_alias(tree, tree->nodes[child], alias);
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
    assert(tree->filled == NULL); /* places among those of all collections would depend on what was listed first */
    struct node *node = node_add(tree, node_of(tree, parent), name, true);
    const struct tree_collection *last = tree->n_collections > 0 ? &tree->collections[tree->n_collections - 1] : NULL;
    uint64_t first = last != NULL ? computed_id(last, last->collection->n_items(last->context), 0) >> KIND_BITS : 0;
    tree->collections = memory_resize(tree->collections, (tree->n_collections + 1) * sizeof *tree->collections);
    tree->collections[tree->n_collections++] = (struct tree_collection){collection, context, node->index, first};
    node->collection = (uint16_t)tree->n_collections;
}

void tree_show(struct tree *tree, const struct shown_tensors *shown)
{
    tree->shown = shown;
}

void tree_expect_whole(struct tree *tree, const struct source *source)
{
    const struct source *largest = tree->largest_whole;
    if (source_descriptor(source) >= 0 && (largest == NULL || source_size(source) > source_size(largest)))
        tree->largest_whole = source;
}

const struct source *tree_largest_whole(const struct tree *tree)
{
    return tree->largest_whole;
}

bool tree_keeps(const struct tree *tree)
{
    return tree->kept != NULL;
}

bool tree_has_branches(const struct tree *tree)
{
    return tree->n_branches > 0;
}

void tree_on_free(struct tree *tree, void (*release)(void *context), void *context)
{
    tree->releases = memory_resize(tree->releases, (tree->n_releases + 1) * sizeof *tree->releases);
    tree->releases[tree->n_releases++] = (struct release){release, context};
}

struct origin tree_origin_of_model(const struct tree *tree)
{
    return tree->model.origin;
}

struct origin tree_origin_of_packed(const struct tree *tree)
{
    return tree->packed.origin;
}

const struct checkpoint *tree_checkpoint(const struct tree *tree)
{
    return tree->checkpoint;
}

const struct content_options *tree_options(const struct tree *tree)
{
    return tree->options;
}

const struct shown_tensors *tree_shown(const struct tree *tree)
{
    return tree->shown;
}

struct arena *tree_arena(struct tree *tree)
{
    return tree->arena;
}

/* Deferred directories: filled by the first look into them, as the plan of their node. */

struct deferred {
    struct tree *tree;
    node_id directory;
    prepare_function *prepare;
    fill_function *fill;
    void *context;
};

/* Fills the directory, unless a source was not reached: then the number of its files may be another one. */
static enum outcome plan_deferred(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct deferred *deferred = context;
    uint64_t n_unreached = source_unreached();
    if (deferred->prepare != NULL)
        deferred->prepare(deferred->context);
    if (source_unreached() != n_unreached) {
        error_set(error, "a source could not be read");
        return REPORTED;
    }
    struct tree *tree = deferred->tree;
    const volatile int *stop = stop_use(NULL); /* half a directory would stay so */
    attempt_lock(&tree->filling);
    tree->filled = node_of(tree, deferred->directory);
    tree->filled->first_filled = tree->n_nodes;
    deferred->fill(deferred->context, deferred->directory);
    tree->filled = NULL;
    attempt_unlock(&tree->filling);
    stop_use(stop);
    return OK;
}

/* A deferred directory inside another one has that one's ordinal. */
static void give_ordinal(struct tree *tree, struct node *node)
{
    if (tree->filled != NULL) {
        node->ordinal = tree->filled->ordinal;
        return;
    }
    assert(tree->n_first_level < MAX_DEFERRED);
    node->ordinal = (uint8_t)tree->n_first_level;
    tree->first_level[tree->n_first_level++] = node->index;
}

node_id tree_add_deferred(struct tree *tree, node_id parent, const char *name, prepare_function *prepare,
                          fill_function *fill, void *context)
{
    struct deferred *deferred = arena_alloc(tree->arena, sizeof *deferred);
    if (!tree_add_certain_file(tree, parent, name, plan_deferred, deferred))
        return 0;
    struct node *node = tree->nodes[tree->n_nodes - 1];
    *deferred = (struct deferred){tree, node->number, prepare, fill, context};
    node->directory = true;
    node->deferred = true;
    tree->nodes[node->parent]->n_directories++;
    give_ordinal(tree, node);
    return node->number;
}
