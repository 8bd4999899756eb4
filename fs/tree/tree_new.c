#include "fs/tree/content.h"

/* Reports whether the checkpoint has what files of this kind are made from. */
static bool applies(const struct content *content, const struct checkpoint *checkpoint)
{
    return !content->of_weights ||
           (checkpoint->n_sources != 0 && (content->of_parts || checkpoint->incomplete == NULL));
}

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error)
{
    struct tree *tree = tree_empty(checkpoint, options);
    if (checkpoint->incomplete != NULL && checkpoint->tensors->n_tensors == 0)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "no files of a model: %s", checkpoint->incomplete);
    for (const struct content *const *content = contents; *content != NULL; content++)
        if (applies(*content, checkpoint) && !(*content)->add(tree, error)) {
            tree_free(tree);
            return NULL;
        }
    memory_trim();
    return tree;
}
