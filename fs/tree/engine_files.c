/* compressed-tensors/SCHEME/: the model quantized for vLLM and SGLang, in files of the source's names; and
 * compressed-tensors/oneshot/SCHEME/, in one file.
 *
 * The first plan of a file makes the model, which all schemes of one way share. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/hf_files.h"

#include "formats/once.h"
#include "models/engines/compressed_tensors.h"
#include "models/facts.h"

struct engine_files {
    struct tree *tree;
    struct once quantized; /* a ct_model */
    bool keeps_files, is_oneshot;
};

struct scheme_file {
    struct engine_files *files;
    const struct ct_scheme *scheme;
    size_t file;
};

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    const struct engine_files *files = context;
    const struct hf_model *model = hf_model_of(tree_checkpoint(files->tree), error);
    const char *const *ignored = tree_options(files->tree)->request.ignored_modules;
    if (model == NULL)
        return NULL;
    return files->is_oneshot ? ct_model_load(arena, model, ignored, error)
                             : ct_model_new(arena, model, files->keeps_files, ignored, error);
}

/* Returns NULL, with the reason, if there is no model. A reason stays with its file: a note for each scheme would hide
 * the notes that matter. */
static const struct ct_model *model_of(struct engine_files *files, struct error *error)
{
    const void *model;
    once_get(&files->quantized, make_model, files, &model, error);
    return model;
}

static enum outcome plan_weights(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct scheme_file *file = context;
    const struct ct_model *model = model_of(file->files, error);
    struct artifact artifact;
    if (model == NULL || !ct_artifact(model, file->scheme, file->file, arena, &artifact, error))
        return REPORTED;
    struct origin origin = tree_origin_of_model(file->files->tree);
    enum outcome outcome = vfile_of_artifact(&artifact, origin, arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_index(void *context, struct buffer *out, struct error *error)
{
    const struct scheme_file *file = context;
    const struct ct_model *model = model_of(file->files, error);
    return model != NULL && ct_write_index(model, file->scheme, out, error) ? OK : REPORTED;
}

static enum outcome write_config(void *context, struct buffer *out, struct error *error)
{
    const struct scheme_file *file = context;
    const struct ct_model *model = model_of(file->files, error);
    return model != NULL && ct_write_config(model, file->scheme, out, error) ? OK : REPORTED;
}

static enum outcome write_recipe(void *context, struct buffer *out, struct error *error)
{
    const struct scheme_file *file = context;
    const struct ct_model *model = model_of(file->files, error);
    return model != NULL && ct_write_recipe(model, file->scheme, out, error) ? OK : REPORTED;
}

static enum outcome write_generation_config(void *context, struct buffer *out, struct error *error)
{
    const struct scheme_file *file = context;
    const struct ct_model *model = model_of(file->files, error);
    return model != NULL && ct_write_generation_config(model, out, error) ? OK : REPORTED;
}

/* Adds the documents that one way writes and the other does not. */
static void add_documents(struct engine_files *files, node_id directory, struct scheme_file *file)
{
    struct tree *tree = files->tree;
    struct origin origin = tree_origin_of_model(tree);
    if (!files->is_oneshot) {
        tree_add_text(tree, directory, "model.safetensors.index.json", origin, write_index, file);
        return;
    }
    tree_add_text(tree, directory, "recipe.yaml", origin, write_recipe, file);
    if (facts_of(tree_checkpoint(tree)).keys == NULL)
        tree_add_text(tree, directory, "generation_config.json", origin, write_generation_config, file);
    hf_files_add_template(tree, directory);
}

static void add_scheme(struct engine_files *files, node_id parent, const struct ct_scheme *scheme)
{
    struct tree *tree = files->tree;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    size_t n_files = files->keeps_files ? checkpoint->n_sources : 1;
    struct origin origin = tree_origin_of_model(tree);
    node_id directory = tree_add_directory(tree, parent, scheme->name);
    struct scheme_file *parts = arena_array(tree_arena(tree), n_files + 1, sizeof *parts);
    for (size_t i = 0; i <= n_files; i++)
        parts[i] = (struct scheme_file){files, scheme, i};
    for (size_t i = 0; i < n_files; i++) {
        const char *path = files->keeps_files ? source_name(checkpoint->sources[i]) : "model.safetensors", *name;
        node_id folder = tree_add_path(tree, directory, path, &name); /* an index may name shards in folders */
        if (folder != 0)
            tree_add_file(tree, folder, name, plan_weights, &parts[i]);
    }
    add_documents(files, directory, &parts[n_files]);
    tree_add_text(tree, directory, "config.json", origin, write_config, &parts[n_files]);
    hf_files_add_beside(tree, directory);
    if (scheme->is_rare)
        tree_unlist(tree, directory);
}

static void release(void *context)
{
    once_destroy(&((struct engine_files *)context)->quantized);
}

static void add_schemes(struct engine_files *way, node_id parent)
{
    once_init(&way->quantized);
    tree_on_free(way->tree, release, way);
    for (const struct ct_scheme *scheme = ct_schemes; scheme->name != NULL; scheme++)
        add_scheme(way, parent, scheme);
}

static void fill(void *context, node_id directory)
{
    struct tree *tree = context;
    struct engine_files *ways = arena_array(tree_arena(tree), 2, sizeof *ways);
    bool keeps_files = ct_keeps_files(tree_checkpoint(tree), shown_tensors_of(tree_checkpoint(tree))->unpacked != NULL);
    ways[0] = (struct engine_files){.tree = tree, .keeps_files = keeps_files};
    ways[1] = (struct engine_files){.tree = tree, .is_oneshot = true};
    add_schemes(&ways[0], directory);
    node_id oneshot = tree_add_directory(tree, directory, "oneshot");
    add_schemes(&ways[1], oneshot);
    tree_unlist(tree, oneshot); /* it has the same weights once more */
}

/* Engines load models that have a config.json. */
static bool add(struct tree *tree, struct error *error)
{
    if (facts_of(tree_checkpoint(tree)).makes_directories)
        tree_add_deferred(tree, TREE_ROOT, "compressed-tensors", NULL, fill, tree);
    return true;
}

const struct content engine_files_content = {
    .name = "engines",
    .summary = "compressed-tensors/SCHEME/: the model quantized for vLLM and SGLang",
    .of_weights = true,
    .add = add,
};
