/* bitsandbytes/TYPE/: the model quantized for transformers, in one file.
 *
 * The first plan of a file makes the model, which all of them share. */
#include "fs/tree/content.h"
#include "fs/tree/hf_files.h"
#include "fs/tree/lazy.h"

#include "models/engines/bitsandbytes.h"

#include <stdlib.h>

struct bitsandbytes_files {
    struct tree *tree;
    struct lazy models; /* struct models */
};

struct models {
    struct arena *arena;
    struct hf_model *plain;
    const struct loaded_model *loaded;
};

struct type_file {
    struct bitsandbytes_files *files;
    const struct bnb_type *type;
};

static void free_models(void *value)
{
    struct models *models = value;
    if (models == NULL)
        return;
    arena_free(models->arena);
    hf_model_free(models->plain);
    free(models);
}

static void *make_models(void *context, struct error *error)
{
    const struct bitsandbytes_files *files = context;
    struct models *made = memory_alloc(sizeof *made);
    *made = (struct models){.arena = arena_new(), .plain = hf_model_new(tree_checkpoint(files->tree), NULL, error)};
    if (made->plain != NULL)
        made->loaded = loaded_model_new(made->arena, made->plain, error);
    if (made->loaded != NULL)
        return made;
    free_models(made);
    return NULL;
}

/* Returns NULL, with the reason, if there is no model. The reason stays with its file, as in engine_files.c. */
static const struct loaded_model *model_of(const struct type_file *file, struct error *error)
{
    void *models;
    lazy_get(&file->files->models, make_models, file->files, &models, error);
    return models != NULL ? ((const struct models *)models)->loaded : NULL;
}

static enum outcome plan_weights(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct type_file *file = context;
    const struct loaded_model *model = model_of(file, error);
    struct artifact artifact;
    if (model == NULL)
        return REPORTED;
    bnb_artifact(model, file->type, arena, &artifact);
    enum outcome outcome =
        vfile_of_artifact(&artifact, tree_origin_of_model(file->files->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_config(void *context, struct buffer *out, struct error *error)
{
    const struct type_file *file = context;
    const struct loaded_model *model = model_of(file, error);
    return model != NULL && bnb_write_config(model, file->type, out, error) ? OK : REPORTED;
}

static enum outcome write_generation_config(void *context, struct buffer *out, struct error *error)
{
    const struct loaded_model *model = model_of(context, error);
    return model != NULL && loaded_write_generation_config(model, TRANSFORMERS_4, out, error) ? OK : REPORTED;
}

static void release(void *context)
{
    lazy_destroy(&((struct bitsandbytes_files *)context)->models);
}

static void add_type(struct bitsandbytes_files *files, node_id parent, const struct bnb_type *type)
{
    struct tree *tree = files->tree;
    struct origin origin = tree_origin_of_model(tree);
    struct type_file *file = arena_alloc(tree_arena(tree), sizeof *file);
    node_id directory = tree_add_directory(tree, parent, type->name);
    *file = (struct type_file){files, type};
    tree_add_file(tree, directory, "model.safetensors", plan_weights, file);
    tree_add_text(tree, directory, "config.json", origin, write_config, file);
    if (tree_checkpoint(tree)->kind != CHECKPOINT_GGUF)
        tree_add_text(tree, directory, "generation_config.json", origin, write_generation_config, file);
    hf_files_add_template(tree, directory);
    hf_files_add_beside(tree, directory);
    if (type->is_double)
        tree_unlist(tree, directory);
}

static void fill(void *context, node_id directory)
{
    for (const struct bnb_type *type = bnb_types; type->name != NULL; type++)
        add_type(context, directory, type);
}

/* transformers loads models that have a config.json. */
static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    bool has_config = checkpoint->kind == CHECKPOINT_GGUF || checkpoint_side_file(checkpoint, "config.json") != NULL;
    struct bitsandbytes_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    files->tree = tree;
    if (!has_config || checkpoint->kind == CHECKPOINT_ADAPTER ||
        tree_add_deferred(tree, TREE_ROOT, "bitsandbytes", NULL, fill, files) == 0)
        return true;
    lazy_init(&files->models, free_models);
    tree_on_free(tree, release, files);
    return true;
}

const struct content bitsandbytes_files_content = {
    .name = "bitsandbytes",
    .summary = "bitsandbytes/TYPE/: the model in 4 or 8 bits for transformers",
    .of_weights = true,
    .add = add,
};
