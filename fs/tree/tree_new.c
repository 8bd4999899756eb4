/* Making and freeing a tree. */
#include "fs/kept/kept_files.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/nodes.h"
#include "fs/tree/waits.h"

#include "base/stop.h"
#include "models/facts.h"
#include "models/packings/packings.h"

#include <stdlib.h>

enum { MOST_PLANS = 64 }; /* that threads make at a time */

static struct dated_origin dated(const struct tree *tree, struct origin origin)
{
    return (struct dated_origin){origin, file_time(origin.sources, origin.n_sources, &tree->options->file_request)};
}

/* Finds the shared origins. Without weights, directories get the time of all inputs. */
static void find_origins(struct tree *tree)
{
    const struct checkpoint *checkpoint = tree->checkpoint;
    tree->packed = dated(tree, origin_of_packed(checkpoint, tree->arena));
    tree->model = dated(tree, origin_of_model(checkpoint, tree->arena));
    tree->weights = dated(tree, (struct origin){checkpoint->sources, checkpoint->n_sources});
    if (checkpoint->n_sources == 0)
        tree->weights.time = tree->model.time;
}

struct tree *tree_empty(const struct checkpoint *checkpoint, const struct content_options *options)
{
    struct tree *tree = memory_alloc(sizeof *tree);
    *tree = (struct tree){
        .checkpoint = checkpoint,
        .options = options,
        .arena = arena_new(),
        .plans = waits_new(MOST_PLANS, 0),
    };
    find_origins(tree);
    lock_init(&tree->lock);
    lock_init(&tree->filling);
    event_init(&tree->plan_ended);
    tree->shown = shown_tensors_of(checkpoint);
    if (options->keep > KEEP_NONE)
        tree->kept = kept_files_new();
    tree->findings = kept_findings_new(checkpoint, options);
    node_add(tree, NULL, "", true);
    return tree;
}

void tree_free(struct tree *tree)
{
    if (tree == NULL)
        return;
    waits_drop(tree->plans);
    waits_free(tree->plans);
    for (size_t i = 0; i < tree->n_branches; i++)
        if (tree->branches[i]->of == NULL)
            tree_free(tree->branches[i]->tree);
    kept_files_free(tree->kept);
    kept_findings_free(tree->findings);
    for (size_t i = tree->n_releases; i-- > 0;)
        tree->releases[i].release(tree->releases[i].context);
    node_spans_freed(tree);
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        arena_free(tree->nodes[i]->arena);
        free(tree->nodes[i]->reason);
        free(tree->nodes[i]->outage);
    }
    free(tree->branches);
    event_destroy(&tree->plan_ended);
    lock_destroy(&tree->filling);
    lock_destroy(&tree->lock);
    free(tree->releases);
    free(tree->collections);
    arena_free(tree->arena);
    free(tree);
}

/* Reports whether the checkpoint has what files of this kind are made from. */
static bool applies(const struct content *content, const struct checkpoint *checkpoint)
{
    bool of_weights = content->product != NULL ? !content->product->needs_no_weights : content->of_weights;
    return !of_weights || (checkpoint->n_sources != 0 && (content->of_parts || checkpoint->incomplete == NULL));
}

static bool add(const struct content *content, struct tree *tree, struct error *error)
{
    return content->product != NULL ? product_files_add(tree, content->product, error) : content->add(tree, error);
}

/* Fails if a file that decides which files there are could not be reached: that is asked only once. */
static bool are_reached(const struct checkpoint *checkpoint, struct error *error)
{
    if (checkpoint->n_sources == 0)
        return true;
    const struct packed_weights *packed = packings_of(checkpoint);
    if (packed->is_unreached)
        return error_set(error, "%s", packed->unread);
    return config_is_reached(checkpoint, error);
}

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error)
{
    if (!are_reached(checkpoint, error))
        return NULL;
    struct tree *tree = tree_empty(checkpoint, options);
    if (checkpoint->incomplete != NULL && checkpoint->tensors->n_tensors == 0)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "no files of a model: %s", checkpoint->incomplete);
    for (const struct content *const *content = contents; *content != NULL; content++)
        if (applies(*content, checkpoint) && (!add(*content, tree, error) || stop_is_due(error))) {
            tree_free(tree);
            return NULL;
        }
    memory_trim();
    return tree;
}
