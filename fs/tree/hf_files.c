/* model.safetensors, and hf/: what save_pretrained() would have written, weights, configuration and tokenizer.
 *
 * The model that the weights are made of is made when the first of them is asked for, and kept. How many shards hf/ has
 * must be known to name them: where the tensors may be more than one holds, and of a GGUF, whose order may tell of
 * shards, it is made at once. */
#include "fs/tree/hf_files.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/lazy.h"
#include "fs/tree/safetensors_file.h"
#include "fs/tree/side_files.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "models/adapter.h"
#include "models/canonical.h"
#include "models/from_gguf.h"
#include "models/general.h"
#include "models/generation_config.h"
#include "models/plain_config.h"
#include "models/pooling_of_keys.h"
#include "models/shards.h"
#include "models/tokenizers/rebuild.h"

#include <stdlib.h>
#include <string.h>

struct hf_files {
    struct tree *tree;
    struct lazy model; /* a canonical_model */
    struct shards shards;
};

/* What the one file of weights is called: as peft opens an adapter. */
static const char *weights_name(const struct tree *tree)
{
    return adapter_is_source(tree_checkpoint(tree)) ? "adapter_model.safetensors" : "model.safetensors";
}

/* Diffusers looks for its own name, which model.safetensors is found by, too, where that was the source's. */
static void add_name_of_diffusers(struct tree *tree, node_id directory)
{
    static const char stem[] = "diffusion_pytorch_model";
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    if (text_starts_with(source_name(checkpoint->sources[0]), stem))
        tree_add_alias(tree, directory, weights_name(tree), "diffusion_pytorch_model.safetensors");
}

struct hf_shard {
    struct hf_files *files;
    size_t number;
};

static void *make_model(void *context, struct error *error)
{
    const struct tree *tree = ((const struct hf_files *)context)->tree;
    return canonical_model_new(tree_checkpoint(tree), tree_options(tree)->hf_type, error);
}

static const struct canonical_model *model_of(struct hf_files *files)
{
    struct error error;
    const struct canonical_model *model = lazy_get(&files->model, make_model, files, &error);
    if (error.message[0] != '\0')
        checkpoint_note(tree_checkpoint(files->tree), "model.safetensors is left out, in hf/, too: %s", error.message);
    return model;
}

/* The tensors of one shard, or of all where `shards` is NULL. */
static bool render_shard(const struct canonical_model *model, const struct shards *shards, size_t shard,
                         struct arena *arena, struct vfile *ret_file, struct error *error)
{
    static const struct safetensors_metadata metadata[] = {{"format", "pt"}, {0}};
    size_t n_places = 0;
    struct safetensors_place *places = memory_alloc((model->tensors->n_tensors + 1) * sizeof *places);
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (shards == NULL || shards->shard_of[i] == shard)
            places[n_places++] =
                (struct safetensors_place){.tensor = &model->tensors->tensors[i], .type = canonical_written(model, i)};
    struct origin origin = origin_of_model(model->checkpoint, arena);
    bool rendered = safetensors_file_plan(places, n_places, metadata, origin, arena, ret_file, error);
    free(places);
    return rendered;
}

static bool plan_whole(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct canonical_model *model = model_of((struct hf_files *)context);
    if (model == NULL)
        return error_set(error, "%s", "");
    if (model->whole != NULL) {
        *ret_file = vfile_of_source(arena, model->whole, origin_of_weights(model->checkpoint));
        return true;
    }
    return render_shard(model, NULL, 0, arena, ret_file, error);
}

static bool plan_shard(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct hf_shard *shard = context;
    return render_shard(shard->files->model.value, &shard->files->shards, shard->number, arena, ret_file, error);
}

static struct vfile file_of_text(const void *bytes, size_t length, struct origin origin, struct arena *arena)
{
    struct vfile_builder builder = {.arena = arena, .origin = origin};
    vfile_add_literal(&builder, arena_copy(arena, bytes, length), length);
    return vfile_finish(&builder);
}

static bool plan_index(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    const struct hf_files *files = context;
    const struct canonical_model *model = files->model.value;
    struct buffer text = {0};
    shards_write_index(model, &files->shards, &text);
    *ret_file = file_of_text(text.bytes, text.length, origin_of_model(model->checkpoint, arena), arena);
    buffer_free(&text);
    return true;
}

/* What is made of keys. */

static bool plan_config(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct canonical_model *model = model_of((struct hf_files *)context);
    if (model == NULL || model->config == NULL)
        return error_set(error, "%s", ""); /* said where the tensors' names are */
    *ret_file = file_of_text(model->config, model->config_length, origin_of_weights(model->checkpoint), arena);
    return true;
}

static bool plan_generation_config(const void *context, struct arena *arena, struct vfile *ret_file,
                                   struct error *error)
{
    const struct canonical_model *model = model_of((struct hf_files *)context);
    struct buffer text = {0};
    if (model == NULL || !canonical_generates(model))
        return error_set(error, "%s", "");
    generation_config_of_keys(&model->checkpoint->metadata, &text);
    *ret_file = file_of_text(text.bytes, text.length, origin_of_weights(model->checkpoint), arena);
    buffer_free(&text);
    return true;
}

/* A file that is made of keys alone, or the text of one. */
struct key_file {
    const struct checkpoint *checkpoint;
    void (*write)(const struct gguf_kvs *kvs, struct buffer *out);
    const char *key;
};

static bool plan_key_file(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct key_file *file = context;
    struct buffer text = {0};
    (void)error;
    file->write(&file->checkpoint->metadata, &text);
    *ret_file = file_of_text(text.bytes, text.length, origin_of_weights(file->checkpoint), arena);
    buffer_free(&text);
    return true;
}

static bool plan_key_text(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct key_file *file = context;
    size_t length;
    const char *text = gguf_get_string(&file->checkpoint->metadata, file->key, arena, &length, error);
    if (text == NULL)
        return false;
    *ret_file = file_of_text(text, length, origin_of_weights(file->checkpoint), arena);
    return true;
}

/* Chat templates that have names: for tools, for retrieval. */
static void add_templates(struct tree *tree, node_id directory)
{
    const struct gguf_kvs *kvs = &tree_checkpoint(tree)->metadata;
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        const char *name = rebuilt_template_name(kvs->kvs[i].key);
        node_id templates = name != NULL ? tree_add_directory(tree, directory, "additional_chat_templates") : 0;
        if (templates == 0)
            continue;
        struct key_file *file = arena_alloc(tree_arena(tree), sizeof *file);
        *file = (struct key_file){.checkpoint = tree_checkpoint(tree), .key = kvs->kvs[i].key};
        tree_add_file(tree, templates, arena_printf(tree_arena(tree), "%s.jinja", name), plan_key_text, file);
    }
}

static void add_key_file(struct tree *tree, node_id directory, const char *name,
                         void (*write)(const struct gguf_kvs *kvs, struct buffer *out))
{
    struct key_file *file = arena_alloc(tree_arena(tree), sizeof *file);
    *file = (struct key_file){.checkpoint = tree_checkpoint(tree), .write = write};
    tree_add_file(tree, directory, name, plan_key_file, file);
}

struct tokenizer_file {
    const struct checkpoint *checkpoint;
    const struct rebuilt_file *file;
};

static bool plan_tokenizer(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct tokenizer_file *tokenizer = context;
    const struct checkpoint *checkpoint = tokenizer->checkpoint;
    struct buffer text = {0};
    bool written = rebuilt_file_write(tokenizer->file, &checkpoint->metadata, &text, error);
    if (written)
        *ret_file = file_of_text(text.bytes, text.length, origin_of_weights(checkpoint), arena);
    buffer_free(&text);
    return written;
}

static const char from_keys[] = "it is made of the keys of the GGUF";

static void add_tokenizer(struct tree *tree, node_id directory)
{
    struct arena *arena = tree_arena(tree);
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const char *note = rebuilt_note(&checkpoint->metadata, arena);
    bool any = false;
    if (note != NULL)
        checkpoint_note(checkpoint, "hf/: %s", note);
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++) {
        if (!rebuilt_file_applies(file, &checkpoint->metadata))
            continue;
        struct tokenizer_file *tokenizer = arena_alloc(arena, sizeof *tokenizer);
        *tokenizer = (struct tokenizer_file){checkpoint, file};
        tree_add_file(tree, directory, file->name, plan_tokenizer, tokenizer);
        tree_add_place(tree, file->name, arena_printf(arena, "hf/%s", file->name), from_keys);
        any = true;
    }
    for (const struct rebuilt_file *file = rebuilt_files; !any && note != NULL && file->name != NULL; file++) {
        tree_add_hint(tree, file->name, note);
        tree_add_hint(tree, arena_printf(arena, "hf/%s", file->name), note);
    }
}

/* Files that the source does not have beside it. */
static void add_rebuilt(struct hf_files *files, node_id directory)
{
    struct tree *tree = files->tree;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    tree_add_file(tree, directory, "config.json", plan_config, files);
    tree_add_place(tree, "config.json", "hf/config.json", from_keys);
    tree_add_file(tree, directory, "generation_config.json", plan_generation_config, files);
    tree_add_hint(tree, "hf/generation_config.json",
                  "it is made for models that generate text, of a family that is known");
    add_key_file(tree, directory, "README.md", general_write_card);
    if (pooling_is_known(&checkpoint->metadata)) {
        add_key_file(tree, directory, "modules.json", pooling_write_modules);
        node_id pooling = tree_add_directory(tree, directory, "1_Pooling");
        if (pooling != 0)
            add_key_file(tree, pooling, "config.json", pooling_write_config);
    }
    add_templates(tree, directory);
    add_tokenizer(tree, directory);
}

/* The most bytes that all tensors may have together. */
static uint64_t most_bytes(const struct shown *shown, const struct dtype *type)
{
    enum { LARGEST_ELEMENT = 4 }; /* of what blocks become */
    uint64_t bytes = 0;
    for (size_t i = 0, n_tensors = shown_count(shown); i < n_tensors; i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensor(shown, i, &room);
        uint64_t n_elements = tensor_elements(tensor), stored = dtype_bytes(tensor->dtype, n_elements);
        bool converted = type != NULL || tensor->dtype->kind == DTYPE_BLOCK || shown_unpacked(shown, i) != NULL;
        bytes += converted && n_elements * LARGEST_ELEMENT > stored ? n_elements * LARGEST_ELEMENT : stored;
    }
    return bytes;
}

static void add_shards(struct hf_files *files, node_id directory)
{
    struct arena *arena = tree_arena(files->tree);
    for (size_t i = 0; i < files->shards.n_shards; i++) {
        struct hf_shard *shard = arena_alloc(arena, sizeof *shard);
        char name[SHARDS_NAME];
        *shard = (struct hf_shard){files, i};
        tree_add_file(files->tree, directory, shards_name(&files->shards, i, name), plan_shard, shard);
    }
    tree_add_file(files->tree, directory, "model.safetensors.index.json", plan_index, files);
}

/* Finds the shards; false where the weights cannot be in any. */
static bool plan_shards(struct hf_files *files)
{
    struct tree *tree = files->tree;
    const struct content_options *options = tree_options(tree);
    uint64_t limit = options->shard_size != 0 ? options->shard_size : shards_usual_size;
    struct error error;
    bool by_order = gguf_is_source(tree_checkpoint(tree)) && options->shard_size == 0;
    bool by_size = most_bytes(tree_source_shown(tree), options->hf_type) > limit;
    if ((!by_order && !by_size) || model_of(files) == NULL)
        return true;
    if (by_order)
        files->shards = shards_of_order(files->model.value, tree_arena(tree));
    if (files->shards.n_shards > 1 || !by_size ||
        shards_plan(files->model.value, limit, tree_arena(tree), &files->shards, &error))
        return true;
    checkpoint_note(tree_checkpoint(tree), "hf/: the weights are left out: %s", error.message);
    tree_add_hint(tree, "hf/model.safetensors", arena_strdup(tree_arena(tree), error.message));
    return false;
}

static void add_weights(struct hf_files *files, node_id directory)
{
    if (!plan_shards(files))
        return;
    if (files->shards.n_shards > 1)
        add_shards(files, directory);
    else
        tree_add_file(files->tree, directory, weights_name(files->tree), plan_whole, files);
}

/* config.json of a packed model, which is not packed here. */
static bool plan_unpacked_config(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct tree *tree = (struct tree *)context;
    const struct side_file *side = checkpoint_side_file(tree_checkpoint(tree), "config.json");
    struct buffer plain = {0};
    bool absent;
    size_t length;
    char *text = document_text(tree_checkpoint(tree), "config.json", &length, &absent, error);
    if (text == NULL)
        return false;
    plain_config(text, length, &plain);
    *ret_file = file_of_text(plain.bytes, plain.length, (struct origin){&side->source, 1}, arena);
    buffer_free(&plain);
    free(text);
    return true;
}

/* Side files, but for those that say how a packed model is packed, and those of components that come with all of
 * theirs.
 */
static void add_side_files(struct tree *tree, node_id directory, const struct components *components)
{
    static const char config[] = "config.json";
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    bool is_packed = tree_source_shown(tree)->unpacked != NULL;
    if (is_packed && checkpoint_side_file(checkpoint, config) != NULL)
        tree_add_file(tree, directory, config, plan_unpacked_config, tree);
    for (size_t i = 0; i < checkpoint->n_side_files; i++) {
        const char *name = checkpoint->side_files[i].name;
        if (checkpoint->side_files[i].hidden || components_hold(components, name))
            continue;
        if (!is_packed || (strcmp(name, config) != 0 && !plain_config_lacks(name)))
            side_files_add(tree, directory, &checkpoint->side_files[i]);
    }
}

static void release(void *context)
{
    struct hf_files *files = context;
    canonical_model_free(files->model.value);
    lazy_destroy(&files->model);
}

static struct hf_files *new_files(struct tree *tree)
{
    struct hf_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct hf_files){.tree = tree};
    lazy_init(&files->model);
    tree_on_free(tree, release, files);
    return files;
}

void hf_files_add_beside(struct tree *tree, node_id directory)
{
    add_side_files(tree, directory, NULL);
    if (gguf_is_source(tree_checkpoint(tree)))
        add_rebuilt(new_files(tree), directory);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct hf_files *files = new_files(tree);
    tree_add_file(tree, TREE_ROOT, weights_name(tree), plan_whole, files);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "hf");
    add_weights(files, directory);
    add_name_of_diffusers(tree, TREE_ROOT);
    add_name_of_diffusers(tree, directory);
    add_side_files(tree, directory, checkpoint->components);
    if (gguf_is_source(checkpoint))
        add_rebuilt(files, directory);
    return true;
}

const struct content hf_files_content = {
    .name = "hf",
    .summary = "model.safetensors, in one file; hf/: a directory that from_pretrained() opens",
    .of_weights = true,
    .add = add,
};
