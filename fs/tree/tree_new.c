#include "fs/tree/content.h"

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error)
{
    struct tree *tree = tree_empty(checkpoint, options);
    for (const struct content *const *content = contents; *content != NULL; content++)
        if ((checkpoint->n_sources != 0 || !(*content)->of_weights) && !(*content)->add(tree, error)) {
            tree_free(tree);
            return NULL;
        }
    memory_trim();
    return tree;
}
