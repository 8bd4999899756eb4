/* sdcpp/model-TYPE.gguf: a diffusion checkpoint as stable-diffusion.cpp converts it. */
#include "fs/tree/content.h"

#include "models/diffusion/sdcpp.h"
#include "models/diffusion/state_dict.h"

struct sdcpp_file {
    const struct tree *tree;
    const struct sdcpp_type *type;
};

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct sdcpp_file *file = context;
    struct artifact artifact;
    if (!sdcpp_artifact(tree_checkpoint(file->tree), file->type, arena, &artifact, error))
        return REPORTED; /* the same for every type, and few users want these files */
    enum outcome outcome =
        vfile_of_artifact(&artifact, origin_of_weights(tree_checkpoint(file->tree)), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    if (!sdcpp_reads(checkpoint) || state_dict_of(checkpoint) == NULL)
        return true;
    node_id directory = tree_add_directory(tree, TREE_ROOT, "sdcpp");
    for (const struct sdcpp_type *type = sdcpp_types; type->name != NULL; type++) {
        struct sdcpp_file *file = arena_alloc(tree_arena(tree), sizeof *file);
        *file = (struct sdcpp_file){tree, type};
        tree_add_file(tree, directory, arena_printf(tree_arena(tree), "model-%s.gguf", type->name), plan, file);
    }
    return true;
}

const struct content sdcpp_files_content = {
    .name = "sdcpp",
    .summary = "sdcpp/: a diffusion model in the GGUF files of stable-diffusion.cpp",
    .of_weights = true,
    .add = add,
};
