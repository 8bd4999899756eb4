/* mlx/VARIANT/: the model as mlx_lm.convert writes it.
 *
 * The first look into a variant makes the model, which all variants share: the names of shards need their number. */
#include "fs/tree/content.h"
#include "fs/tree/hf_files.h"

#include "formats/once.h"
#include "models/engines/mlx.h"
#include "models/facts.h"

struct mlx_files {
    struct tree *tree;
    node_id parent;
    struct once made; /* a mlx_model */
};

/* A variant's directory. */
struct variant_files {
    struct mlx_files *files;
    struct mlx_variant variant;
    size_t n_shards;
};

struct mlx_file {
    const struct variant_files *of;
    size_t shard;
};

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    const struct mlx_files *files = context;
    const struct hf_model *model = hf_model_of(tree_checkpoint(files->tree), error);
    return model != NULL ? mlx_model_new(arena, model, error) : NULL;
}

/* Returns NULL, with the reason, if there is no model. A reason stays with its file, as for other engines. */
static const struct mlx_model *model_of(struct mlx_files *files, struct error *error)
{
    const void *made;
    once_get(&files->made, make_model, files, &made, error);
    return made;
}

static enum outcome plan_weights(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct mlx_file *file = context;
    const struct mlx_model *model = model_of(file->of->files, error);
    struct artifact artifact;
    if (model == NULL || !mlx_artifact(model, &file->of->variant, file->shard, arena, &artifact, error))
        return REPORTED;
    enum outcome outcome =
        vfile_of_artifact(&artifact, tree_origin_of_model(file->of->files->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_index(void *context, struct buffer *out, struct error *error)
{
    const struct mlx_file *file = context;
    const struct mlx_model *model = model_of(file->of->files, error);
    return model != NULL && mlx_write_index(model, &file->of->variant, out, error) ? OK : REPORTED;
}

static enum outcome write_config(void *context, struct buffer *out, struct error *error)
{
    const struct mlx_file *file = context;
    const struct mlx_model *model = model_of(file->of->files, error);
    return model != NULL && mlx_write_config(model, &file->of->variant, out, error) ? OK : REPORTED;
}

static enum outcome write_card(void *context, struct buffer *out, struct error *error)
{
    const struct mlx_file *file = context;
    if (model_of(file->of->files, error) == NULL)
        return REPORTED;
    mlx_write_card(out);
    return OK;
}

static void count_shards(void *context)
{
    struct variant_files *variant = context;
    struct error error;
    const struct mlx_model *model = model_of(variant->files, &error);
    size_t n_shards = model != NULL ? mlx_shards(model, &variant->variant, &error) : 1;
    variant->n_shards = n_shards > 0 ? n_shards : 1;
}

static void fill_variant(void *context, node_id directory)
{
    const struct variant_files *variant = context;
    struct tree *tree = variant->files->tree;
    struct arena *arena = tree_arena(tree);
    struct origin origin = tree_origin_of_model(tree);
    char name[MLX_SHARD_NAME];
    struct mlx_file *shards = arena_array(arena, variant->n_shards, sizeof *shards);
    for (size_t i = 0; i < variant->n_shards; i++) {
        shards[i] = (struct mlx_file){variant, i};
        tree_add_file(tree, directory, mlx_shard_name(i, variant->n_shards, name), plan_weights, &shards[i]);
    }
    tree_add_text(tree, directory, "model.safetensors.index.json", origin, write_index, shards);
    tree_add_text(tree, directory, "config.json", origin, write_config, shards);
    tree_add_text(tree, directory, "README.md", origin, write_card, shards);
    hf_files_add_template(tree, directory);
    hf_files_add_beside(tree, directory);
}

/* Adds a variant's directory; the common ones are listed. */
static void add_variant(void *context, const char *name, const struct mlx_variant *variant)
{
    struct mlx_files *files = context;
    struct variant_files *added = arena_alloc(tree_arena(files->tree), sizeof *added);
    *added = (struct variant_files){.files = files, .variant = *variant};
    node_id directory = tree_add_deferred(files->tree, files->parent, name, count_shards, fill_variant, added);
    if (!variant->mode->is_common || variant->columns != 0 || variant->dtype != variant->mode->dtype)
        tree_unlist(files->tree, directory);
}

static void release(void *context)
{
    once_destroy(&((struct mlx_files *)context)->made);
}

static void fill(void *context, node_id directory)
{
    struct mlx_files *files = context;
    files->parent = directory;
    mlx_each_variant(add_variant, files);
}

static bool add(struct tree *tree, struct error *error)
{
    struct mlx_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    files->tree = tree;
    if (!facts_of(tree_checkpoint(tree)).makes_directories ||
        tree_add_deferred(tree, TREE_ROOT, "mlx", NULL, fill, files) == 0)
        return true;
    once_init(&files->made);
    tree_on_free(tree, release, files);
    return true;
}

const struct content mlx_files_content = {
    .name = "mlx",
    .summary = "mlx/VARIANT/: the model as mlx_lm.convert writes it, quantized or not",
    .of_weights = true,
    .add = add,
};
