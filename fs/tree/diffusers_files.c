/* diffusers/transformer/: a Flux or Stable Diffusion 3 model in its makers' file as a component that diffusers opens.
 */
#include "fs/tree/content.h"

#include "models/diffusion/component.h"

static enum outcome plan_weights(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct tree *tree = context;
    struct artifact artifact;
    if (!component_artifact(state_dict_of(tree_checkpoint(tree)), arena, &artifact, error))
        return REPORTED; /* such as Flux 2, which has the architecture of Flux, but other names */
    enum outcome outcome = vfile_of_artifact(&artifact, tree_origin_of_model(tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_config(void *context, struct buffer *out, struct error *error)
{
    const struct tree *tree = context;
    return component_write_config(state_dict_of(tree_checkpoint(tree)), out, error) ? OK : REPORTED;
}

/* Adds the directory, unless the source is a component already. */
static bool add(struct tree *tree, struct error *error)
{
    const struct state_dict *dict = state_dict_of(tree_checkpoint(tree));
    if (dict == NULL || dict->is_component || !component_is_known(dict))
        return true;
    node_id directory = tree_add_directory(tree, tree_add_directory(tree, TREE_ROOT, "diffusers"), "transformer");
    tree_add_file(tree, directory, "diffusion_pytorch_model.safetensors", plan_weights, tree);
    tree_add_text(tree, directory, "config.json", tree_origin_of_model(tree), write_config, tree);
    return true;
}

const struct content diffusers_files_content = {
    .name = "diffusers",
    .summary = "diffusers/transformer/: a Flux or Stable Diffusion 3 model for diffusers",
    .of_weights = true,
    .add = add,
};
