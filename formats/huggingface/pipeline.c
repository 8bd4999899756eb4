/* Directories of components alone, without tensors of their own: the root of a diffusers pipeline, and
 * sentence-transformers models whose transformer is in a folder, too. */
#include "formats/checkpoint_builder.h"
#include "formats/components.h"

/* Recognizes such directories. Weights beside model_index.json are the whole pipeline in its authors' own form; beside
 * modules.json they are the model. */
static enum probe pipeline_probe(const struct input *input)
{
    if (input->components == NULL)
        return PROBE_NO;
    if (input_has(input, "model_index.json"))
        return PROBE_SURE;
    return input->components->alone ? PROBE_LIKELY : PROBE_NO;
}

static bool pipeline_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                          struct error *error)
{
    if (!options->components)
        return components_ask_for_one(input->components, error);
    struct source *list = location_source(input->location, input->components->list, error);
    if (list == NULL)
        return false;
    checkpoint_add_guide(checkpoint, list);
    format_add_side_files(checkpoint, input);
    return true;
}

const struct format pipeline_format = {
    .name = "pipeline",
    .directory_name = "model_index.json",
    .summary = "a directory with several checkpoints in folders: diffusers pipelines (model_index.json)",
    .probe = pipeline_probe,
    .open = pipeline_open,
};
