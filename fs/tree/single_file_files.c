/* Pipelines as the single checkpoints that other programs load: single_file.safetensors and
 * single_file-fp16.safetensors at the root of a Stable Diffusion pipeline, as diffusers' scripts write them;
 * original.safetensors in a component that has diffusers' names for tensors, under its makers' names, which no tool of
 * diffusers writes.
 *
 * The first plan of a file at the root opens the components that it is made from. */
#include "fs/tree/component_files.h"
#include "fs/tree/content.h"

#include "formats/components.h"
#include "formats/once.h"
#include "formats/safetensors/write.h"
#include "models/diffusion/single_file.h"
#include "models/diffusion/state_dict.h"
#include "models/packings/packings.h"

#include <string.h>

/* The files at the root of a pipeline. */
struct single_files {
    struct tree *tree;
    bool is_xl;
    struct once made; /* struct single_model */
};

struct single_file {
    struct single_files *files;
    bool is_half;
};

/* The tensors of both files, from all components. */
struct single_model {
    struct arena *arena;
    const struct tensor_set *tensors;
    struct origin origin;
};

/* Adds the inputs of a component. */
static void add_origin(struct single_model *model, const struct checkpoint *checkpoint)
{
    const struct origin more = origin_of_weights(checkpoint);
    struct source **sources =
        arena_array(model->arena, model->origin.n_sources + more.n_sources, sizeof(struct source *));
    for (size_t i = 0; i < model->origin.n_sources; i++)
        sources[i] = model->origin.sources[i];
    for (size_t i = 0; i < more.n_sources; i++)
        sources[model->origin.n_sources + i] = more.sources[i];
    model->origin = (struct origin){sources, model->origin.n_sources + more.n_sources};
}

static bool fill_in(struct single_model *model, const struct single_files *files, struct error *error)
{
    const struct tensor_set *parts[SINGLE_FILE_MAX_PARTS] = {NULL};
    const char *const *folders = files->is_xl ? single_file_xl_parts : single_file_parts;
    for (size_t i = 0; folders[i] != NULL; i++) {
        const struct component *component = components_named(tree_checkpoint(files->tree)->components, folders[i]);
        struct tree *tree = tree_of_component(files->tree, component);
        const struct checkpoint *checkpoint = tree != NULL ? tree_checkpoint(tree) : NULL;
        if (checkpoint == NULL || checkpoint->n_sources == 0)
            return error_set(error, "%s: its weights cannot be used", folders[i]);
        const struct plain_tensors *plain = packings_plain(checkpoint);
        if (plain->set == NULL)
            return error_set(error, "%s: %s", folders[i], plain->refusal);
        parts[i] = plain->set;
        add_origin(model, checkpoint);
    }
    model->tensors = single_file_new(parts, files->is_xl, model->arena, error);
    return model->tensors != NULL;
}

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    struct single_model *model = arena_alloc(arena, sizeof *model);
    model->arena = arena;
    return fill_in(model, context, error) ? model : NULL;
}

static enum outcome plan_single(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct single_file *file = context;
    const void *value;
    struct artifact artifact;
    once_get(&file->files->made, make_model, file->files, &value, error);
    if (value == NULL)
        return REPORTED; /* most pipelines with these components are not Stable Diffusion, which is not worth a note */
    const struct single_model *model = value;
    if (!single_file_artifact(model->tensors, file->is_half, arena, &artifact, error))
        return FAILED;
    enum outcome outcome = vfile_of_artifact(&artifact, model->origin, arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static void release(void *context)
{
    once_destroy(&((struct single_files *)context)->made);
}

/* Reports whether model_index.json names all these folders, and they have weights. */
static bool has_parts(const struct components *components, const char *const *folders)
{
    for (; *folders != NULL; folders++) {
        const struct component *component = components_named(components, *folders);
        if (component == NULL || component->class_name == NULL)
            return false;
    }
    return true;
}

static void add_pipeline(struct tree *tree)
{
    struct single_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    struct single_file *both = arena_array(tree_arena(tree), 2, sizeof *both);
    *files = (struct single_files){.tree = tree,
                                   .is_xl = has_parts(tree_checkpoint(tree)->components, single_file_xl_parts)};
    once_init(&files->made);
    tree_on_free(tree, release, files);
    both[0] = (struct single_file){files, false};
    both[1] = (struct single_file){files, true};
    tree_add_file(tree, TREE_ROOT, "single_file.safetensors", plan_single, &both[0]);
    tree_add_file(tree, TREE_ROOT, "single_file-fp16.safetensors", plan_single, &both[1]);
}

static enum outcome plan_original(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct tree *tree = context;
    const struct state_dict *dict = state_dict_of(tree_checkpoint(tree));
    struct artifact artifact;
    if (dict == NULL || dict->refusal != NULL) {
        error_set(error, "%s", dict != NULL ? dict->refusal : "the makers' names are unknown");
        return REPORTED;
    }
    if (!single_file_artifact(dict->tensors, false, arena, &artifact, error))
        return FAILED;
    enum outcome outcome = vfile_of_artifact(&artifact, tree_origin_of_model(tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct components *components = checkpoint->components;
    const struct state_dict *dict = state_dict_of(checkpoint);
    if (checkpoint->n_sources == 0 && components != NULL && has_parts(components, single_file_parts)) {
        add_pipeline(tree);
    } else if (dict != NULL && dict->is_component) {
        tree_add_file(tree, TREE_ROOT, "original.safetensors", plan_original, tree);
        checkpoint_hint(checkpoint, SUBJECT_WEIGHTS,
                        "original.safetensors has the makers' names and exact values; no tool of diffusers writes it");
    }
    return true;
}

const struct content single_file_files_content = {
    .name = "single-file",
    .summary =
        "single_file.safetensors of a Stable Diffusion pipeline; original.safetensors of a Flux or SD3 transformer",
    .add = add,
};
