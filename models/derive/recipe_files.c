/* The files beside the weights of a merge: the tokenizer, and the recipe. */
#include "models/derive/recipe_merging.h"

#include <stdlib.h>
#include <string.h>

static int compare_side_files(const void *a, const void *b)
{
    return strcmp(((const struct side_file *)a)->name, ((const struct side_file *)b)->name);
}

bool recipe_make_files(struct recipe_merge *merge)
{
    struct checkpoint *merged = merge->merged;
    const struct side_file recipe = {.name = "mergekit_config.yml", .source = merge->from->sources[0]};
    checkpoint_add_metadata(merged, "format", "pt");
    if (!recipe_add_tokenizer(merge) || !recipe_add_card(merge))
        return false;
    checkpoint_share_side_file(merged, &recipe);
    qsort(merged->side_files, merged->n_side_files, sizeof *merged->side_files, compare_side_files);
    return true;
}
