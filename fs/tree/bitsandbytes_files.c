/* bitsandbytes/TYPE/: the model quantized for transformers.
 *
 * The first look into the directory makes the model, which all files share: the names of shards need their number. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/hf_files.h"

#include "formats/once.h"
#include "models/engines/bitsandbytes.h"
#include "models/facts.h"

struct bitsandbytes_files {
    struct tree *tree;
    struct once models; /* struct models */
};

/* The shards of a type, or why it has none. */
struct planned {
    struct shards shards;
    const char *refusal; /* NULL: none */
};

struct models {
    const struct loaded_model *loaded;
    struct planned *planned; /* by type */
};

struct type_file {
    struct bitsandbytes_files *files;
    const struct bnb_type *type;
    const struct shards *shards; /* NULL: one file */
    size_t shard;
    const char *refusal; /* why there is no such file; NULL: there may be one */
};

static uint64_t size_limit(const struct tree *tree)
{
    uint64_t size = tree_options(tree)->request.shard_size;
    return size != 0 ? size : shards_usual_size;
}

static void plan_shards(struct models *made, uint64_t limit, struct arena *arena)
{
    struct error error;
    size_t n_types = 0;
    while (bnb_types[n_types].name != NULL)
        n_types++;
    made->planned = arena_array(arena, n_types, sizeof *made->planned);
    for (size_t i = 0; i < n_types; i++)
        if (!bnb_plan_shards(made->loaded, &bnb_types[i], limit, arena, &made->planned[i].shards, &error))
            made->planned[i].refusal = arena_strdup(arena, error.message);
}

static const void *make_models(void *context, struct arena *arena, struct error *error)
{
    const struct bitsandbytes_files *files = context;
    struct models *made = arena_alloc(arena, sizeof *made);
    const struct hf_model *plain = hf_model_of(tree_checkpoint(files->tree), error);
    made->loaded = plain != NULL ? loaded_model_new(arena, plain, error) : NULL;
    if (made->loaded == NULL || !bnb_quantizes_any(made->loaded, error))
        return NULL;
    plan_shards(made, size_limit(files->tree), arena);
    return made;
}

/* Returns NULL, with the reason, if there are no models. The reason stays with its file, as in engine_files.c. */
static const struct models *models_of(struct bitsandbytes_files *files, struct error *error)
{
    const void *models;
    once_get(&files->models, make_models, files, &models, error);
    return models;
}

static const struct loaded_model *model_of(const struct type_file *file, struct error *error)
{
    const struct models *models = models_of(file->files, error);
    return models != NULL ? models->loaded : NULL;
}

static enum outcome plan_weights(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct type_file *file = context;
    const struct loaded_model *model = model_of(file, error);
    struct artifact artifact;
    if (model != NULL && file->refusal != NULL)
        error_set(error, "%s", file->refusal);
    if (model == NULL || file->refusal != NULL)
        return REPORTED;
    bnb_artifact(model, file->type, file->shards, file->shard, arena, &artifact);
    enum outcome outcome =
        vfile_of_artifact(&artifact, tree_origin_of_model(file->files->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_index(void *context, struct buffer *out, struct error *error)
{
    const struct type_file *file = context;
    const struct loaded_model *model = model_of(file, error);
    if (model == NULL)
        return REPORTED;
    bnb_write_index(model, file->type, file->shards, out);
    return OK;
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
    once_destroy(&((struct bitsandbytes_files *)context)->models);
}

static void prepare(void *context)
{
    struct error unsaid; /* the plan of a file says it */
    models_of(context, &unsaid);
}

/* Adds the weights of a type; `planned` is NULL if they are one file, or cannot be made: its plan gives the reason. */
static void add_weights(struct bitsandbytes_files *files, node_id directory, const struct bnb_type *type,
                        const struct planned *planned)
{
    struct tree *tree = files->tree;
    struct arena *arena = tree_arena(tree);
    bool is_split = planned != NULL && planned->refusal == NULL && planned->shards.n_shards > 1;
    const struct shards one = {.n_shards = 1}, *shards = is_split ? &planned->shards : NULL;
    size_t n_files = is_split ? shards->n_shards : 1;
    char name[SHARDS_NAME];
    struct type_file *parts = arena_array(arena, n_files, sizeof *parts);
    for (size_t i = 0; i < n_files; i++) {
        parts[i] = (struct type_file){files, type, shards, i, planned != NULL ? planned->refusal : NULL};
        tree_add_file(tree, directory, shards_name(shards != NULL ? shards : &one, i, name), plan_weights, &parts[i]);
    }
    if (shards != NULL)
        tree_add_text(tree, directory, "model.safetensors.index.json", tree_origin_of_model(tree), write_index, parts);
}

static void add_type(struct bitsandbytes_files *files, node_id parent, const struct bnb_type *type,
                     const struct planned *planned)
{
    struct tree *tree = files->tree;
    struct origin origin = tree_origin_of_model(tree);
    struct type_file *file = arena_alloc(tree_arena(tree), sizeof *file);
    node_id directory = tree_add_directory(tree, parent, type->name);
    *file = (struct type_file){.files = files, .type = type};
    add_weights(files, directory, type, planned);
    tree_add_text(tree, directory, "config.json", origin, write_config, file);
    if (facts_of(tree_checkpoint(tree)).keys == NULL)
        tree_add_text(tree, directory, "generation_config.json", origin, write_generation_config, file);
    hf_files_add_template(tree, directory);
    hf_files_add_beside(tree, directory);
    if (type->is_double)
        tree_unlist(tree, directory);
}

static void fill(void *context, node_id directory)
{
    struct bitsandbytes_files *files = context;
    struct error unsaid;
    const struct models *models = models_of(files, &unsaid);
    for (size_t i = 0; bnb_types[i].name != NULL; i++)
        add_type(files, directory, &bnb_types[i], models != NULL ? &models->planned[i] : NULL);
}

/* transformers loads models that have a config.json. */
static bool add(struct tree *tree, struct error *error)
{
    struct bitsandbytes_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    files->tree = tree;
    if (!facts_of(tree_checkpoint(tree)).makes_directories ||
        tree_add_deferred(tree, TREE_ROOT, "bitsandbytes", prepare, fill, files) == 0)
        return true;
    once_init(&files->models);
    tree_on_free(tree, release, files);
    return true;
}

const struct content bitsandbytes_files_content = {
    .name = "bitsandbytes",
    .summary = "bitsandbytes/TYPE/: the model in 4 or 8 bits for transformers",
    .of_weights = true,
    .add = add,
};
