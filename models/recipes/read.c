/* The format of recipes: a YAML file that may be one of mergekit's (recipe_is_likely()). The checkpoint that it opens
 * has no tensors, only the recipe as its guide and side file; the derivation (models/derive/recipe.c) reads it. */
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "models/recipes/recipe.h"

#include <stdlib.h>
#include <string.h>

extern const struct format recipe_format;

static bool is_named(const char *name)
{
    return text_ends_with(name, ".yaml") || text_ends_with(name, ".yml");
}

static enum probe recipe_probe(const struct input *input)
{
    struct error unused;
    size_t length;
    if (input->file == NULL || input->location == NULL || !is_named(input->file_name))
        return PROBE_NO;
    char *text = source_read_text(input->file, RECIPE_MAX_TEXT, &length, &unused);
    bool is_likely = text != NULL && recipe_is_likely(text, length);
    free(text);
    return is_likely ? PROBE_SURE : PROBE_NO;
}

/* A model's name is the recipe's: the directory may hold any number of recipes. */
static bool recipe_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                        struct error *error)
{
    struct source *file = location_source(input->location, input->file_name, error);
    if (file == NULL)
        return false;
    if (options->name == NULL)
        checkpoint->model_name = arena_strndup(checkpoint->arena, input->file_name,
                                               (size_t)(strrchr(input->file_name, '.') - input->file_name));
    checkpoint_add_guide(checkpoint, file);
    return true;
}

const struct format recipe_format = {
    .name = "recipe",
    .summary = "recipes of mergekit: a .yaml file with merge_method",
    .kind = CHECKPOINT_RECIPE,
    .probe = recipe_probe,
    .open = recipe_open,
};
