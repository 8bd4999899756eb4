/* The files beside the weights of a merge: the tokenizer, and the recipe. */
#include "base/text.h"
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

/* README.md of a merge: the front matter of mergekit's model card, from which a GGUF's general.* keys are made, and the
 * recipe. */

/* Appends the models of the hub as base models; those of other places are nobody else's. */
static void append_base_models(const struct recipe_merge *merge, struct buffer *out)
{
    bool any = false;
    for (size_t i = 0; i < merge->recipe->n_models; i++) {
        const char *name = merge->inputs[i].repository;
        if (name != NULL)
            buffer_printf(out, "%s- %s\n", any ? "" : "base_model:\n", name);
        any |= name != NULL;
    }
    if (!any)
        buffer_append_text(out, "base_model: []\n");
}

bool recipe_add_card(const struct recipe_merge *merge)
{
    enum { TITLE = 256 };
    struct buffer out = {0};
    char title[TITLE];
    size_t length;
    char *recipe = source_read_text(merge->from->sources[0], RECIPE_MAX_TEXT, &length, merge->error);
    if (recipe == NULL)
        return false;
    text_printable(merge->merged->model_name, strlen(merge->merged->model_name), title, sizeof title);
    buffer_append_text(&out, "---\n");
    append_base_models(merge, &out);
    buffer_printf(&out,
                  "library_name: transformers\ntags:\n- mergekit\n- merge\n\n---\n# %s\n\nA merge by the method %s of "
                  "mergekit, computed by wfs from this recipe:\n\n```yaml\n",
                  title, merge->recipe->method->name);
    buffer_append(&out, recipe, length);
    buffer_printf(&out, "%s```\n", length > 0 && recipe[length - 1] == '\n' ? "" : "\n");
    recipe_add_text(merge, "README.md", &out);
    buffer_free(&out);
    free(recipe);
    return true;
}
