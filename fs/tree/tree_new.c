#include "fs/tree/content.h"

#include "formats/source.h"
#include "models/facts.h"
#include "models/packings/packings.h"

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

/* Fails if config.json could not be reached: it decides which files there are, and that is asked only once. */
static bool config_is_reached(const struct checkpoint *checkpoint, struct error *error)
{
    uint64_t n_unreached = source_unreached();
    if (checkpoint->n_sources == 0)
        return true;
    const struct packed_weights *packed = packings_of(checkpoint);
    if (packed->is_unreached)
        return error_set(error, "%s", packed->unread);
    return config_facts_of(checkpoint, error) != NULL || source_unreached() == n_unreached;
}

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error)
{
    if (!config_is_reached(checkpoint, error))
        return NULL;
    struct tree *tree = tree_empty(checkpoint, options);
    if (checkpoint->incomplete != NULL && checkpoint->tensors->n_tensors == 0)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "no files of a model: %s", checkpoint->incomplete);
    for (const struct content *const *content = contents; *content != NULL; content++)
        if (applies(*content, checkpoint) && !add(*content, tree, error)) {
            tree_free(tree);
            return NULL;
        }
    memory_trim();
    return tree;
}
