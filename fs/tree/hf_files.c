/* model.safetensors, and hf/: the weights, configuration and tokenizer that save_pretrained() would write.
 *
 * The first plan of a weights file makes the model, which all of them share. The names of shards need their number: if
 * the tensors may exceed one shard, or a GGUF's order of tensors may imply shards, the model is made at once. */
#include "fs/tree/hf_files.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/side_files.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "formats/once.h"
#include "models/card/general.h"
#include "models/derive/plain_config.h"
#include "models/engines/chat_template.h"
#include "models/facts.h"
#include "models/huggingface/generation_config.h"
#include "models/huggingface/hf_model.h"
#include "models/huggingface/pooling_of_keys.h"
#include "models/huggingface/shards.h"
#include "models/tokenizers/rebuild.h"

#include <string.h>

struct hf_files {
    struct tree *tree;
    struct once model; /* a hf_model */
    struct shards shards;
};

/* Returns the name of the single weights file: for an adapter, the name that peft opens. */
static const char *weights_name(const struct tree *tree)
{
    return facts_of(tree_checkpoint(tree)).is_adapter ? "adapter_model.safetensors" : "model.safetensors";
}

/* Adds the name that Diffusers looks for as an alias, if the source's file has it. */
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

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    const struct tree *tree = ((const struct hf_files *)context)->tree;
    const struct dtype *type = tree_options(tree)->request.hf_type;
    return type == NULL ? hf_model_of(tree_checkpoint(tree), error)
                        : hf_model_new(arena, tree_checkpoint(tree), type, error);
}

/* Returns the model, or NULL; notes the reason once for all files. */
static const struct hf_model *model_of(struct hf_files *files, struct error *error)
{
    const void *model;
    if (once_get(&files->model, make_model, files, &model, error) == FAILED)
        checkpoint_note(tree_checkpoint(files->tree), SUBJECT_SOURCE, "model.safetensors is left out, in hf/, too: %s",
                        error->message);
    return model;
}

/* Lays out a shard of the model, which was made before; the whole model if `shards` is NULL. */
static enum outcome lay_out_shard(const struct hf_files *files, const struct shards *shards, size_t number,
                                  struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct artifact artifact;
    shards_artifact(files->model.value, shards, number, &artifact);
    enum outcome outcome = vfile_of_artifact(&artifact, tree_origin_of_model(files->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome plan_whole(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct hf_files *files = context;
    const struct hf_model *model = model_of(context, error);
    if (model == NULL)
        return REPORTED;
    if (model->whole != NULL) {
        *ret_file = vfile_of_source(arena, model->whole, origin_of_weights(model->checkpoint));
        return OK;
    }
    return lay_out_shard(files, NULL, 0, arena, ret_file, error);
}

static enum outcome plan_shard(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct hf_shard *shard = context;
    return lay_out_shard(shard->files, &shard->files->shards, shard->number, arena, ret_file, error);
}

static enum outcome write_index(void *context, struct buffer *out, struct error *error)
{
    const struct hf_files *files = context;
    shards_write_index(files->model.value, &files->shards, out);
    return OK;
}

/* Files made from keys. */

static enum outcome write_config(void *context, struct buffer *out, struct error *error)
{
    const struct hf_model *model = model_of(context, error);
    if (model != NULL && model->config == NULL)
        error_set(error, "%s", model->kept_names);
    if (model == NULL || model->config == NULL)
        return REPORTED; /* if the config is missing: noted with the tensors' names */
    buffer_append(out, model->config, model->config_length);
    return OK;
}

static enum outcome write_generation_config(void *context, struct buffer *out, struct error *error)
{
    const struct hf_model *model = model_of(context, error);
    if (model != NULL && !hf_generates(model))
        error_set(error, "it is made only for text generation models of a known family");
    if (model == NULL || !hf_generates(model))
        return REPORTED;
    generation_config_of_keys(&model->checkpoint->metadata, out);
    return OK;
}

/* A file made from all keys by write(), or the text of one key. */
struct key_file {
    const struct gguf_kvs *kvs;
    void (*write)(const struct gguf_kvs *kvs, struct buffer *out);
    const char *key;
};

static enum outcome write_key_file(void *context, struct buffer *out, struct error *error)
{
    const struct key_file *file = context;
    file->write(file->kvs, out);
    return OK;
}

static enum outcome write_key_text(void *context, struct buffer *out, struct error *error)
{
    const struct key_file *file = context;
    struct arena *arena = arena_new();
    size_t length;
    const char *text = gguf_get_string(file->kvs, file->key, arena, &length, error);
    if (text != NULL)
        buffer_append(out, text, length);
    arena_free(arena);
    return text != NULL ? OK : FAILED;
}

/* Adds the chat templates that have names: for tools, for retrieval. */
static void add_templates(struct tree *tree, node_id directory)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct gguf_kvs *kvs = &checkpoint->metadata;
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        const char *name = rebuilt_template_name(kvs->kvs[i].key);
        node_id templates = name != NULL ? tree_add_directory(tree, directory, "additional_chat_templates") : 0;
        if (templates == 0)
            continue;
        struct key_file *file = arena_alloc(tree_arena(tree), sizeof *file);
        *file = (struct key_file){.kvs = kvs, .key = kvs->kvs[i].key};
        tree_add_text(tree, templates, arena_printf(tree_arena(tree), "%s.jinja", name), origin_of_weights(checkpoint),
                      write_key_text, file);
    }
}

static void add_key_file(struct tree *tree, node_id directory, const char *name,
                         void (*write)(const struct gguf_kvs *kvs, struct buffer *out))
{
    struct key_file *file = arena_alloc(tree_arena(tree), sizeof *file);
    *file = (struct key_file){.kvs = &tree_checkpoint(tree)->metadata, .write = write};
    tree_add_text(tree, directory, name, origin_of_weights(tree_checkpoint(tree)), write_key_file, file);
}

struct tokenizer_file {
    const struct gguf_kvs *kvs;
    const struct rebuilt_file *file;
};

static enum outcome write_tokenizer(void *context, struct buffer *out, struct error *error)
{
    const struct tokenizer_file *tokenizer = context;
    return rebuilt_file_write(tokenizer->file, tokenizer->kvs, out, error) ? OK : FAILED;
}

static void add_tokenizer(struct tree *tree, node_id directory)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++) {
        if (!rebuilt_file_applies(file, &checkpoint->metadata))
            continue;
        struct tokenizer_file *tokenizer = arena_alloc(tree_arena(tree), sizeof *tokenizer);
        *tokenizer = (struct tokenizer_file){&checkpoint->metadata, file};
        tree_add_text(tree, directory, file->name, origin_of_weights(checkpoint), write_tokenizer, tokenizer);
    }
}

/* Says where the files that a GGUF's keys replace are, and why some are missing. */
static void explain_rebuilt(struct tree *tree)
{
    static const char from_keys[] = "it is made from the GGUF's keys";
    struct arena *arena = tree_arena(tree);
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const char *note = rebuilt_note(&checkpoint->metadata, arena);
    if (note != NULL)
        checkpoint_note(checkpoint, SUBJECT_DIRECTORY, "%s", note);
    tree_add_place(tree, "config.json", "hf/config.json", from_keys);
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++) {
        const char *refusal = rebuilt_file_refusal(file, &checkpoint->metadata, arena);
        if (refusal != NULL) {
            tree_add_hint(tree, file->name, refusal);
            tree_add_hint(tree, arena_printf(arena, "hf/%s", file->name), refusal);
        }
        if (rebuilt_file_applies(file, &checkpoint->metadata))
            tree_add_place(tree, file->name, arena_printf(arena, "hf/%s", file->name), from_keys);
    }
}

/* Adds the files of a model directory that a GGUF's keys replace. */
static void add_rebuilt(struct hf_files *files, node_id directory)
{
    struct tree *tree = files->tree;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct origin weights = origin_of_weights(checkpoint);
    tree_add_text(tree, directory, "config.json", weights, write_config, files);
    tree_add_text(tree, directory, "generation_config.json", weights, write_generation_config, files);
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

/* Returns an upper limit for the bytes of all tensors in hf/. */
static uint64_t most_bytes(const struct shown_tensors *shown, const struct dtype *type)
{
    enum { LARGEST_ELEMENT = 4 }; /* bytes: dequantized blocks are F32 at most */
    uint64_t bytes = 0;
    for (size_t i = 0, n_tensors = shown_tensors_count(shown); i < n_tensors; i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensors_at(shown, i, &room);
        uint64_t n_elements = tensor_elements(tensor), stored = dtype_bytes(tensor->dtype, n_elements);
        bool converted = type != NULL || tensor->dtype->kind == DTYPE_BLOCK || shown_tensors_unpacked(shown, i) != NULL;
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
    tree_add_text(files->tree, directory, "model.safetensors.index.json", tree_origin_of_model(files->tree),
                  write_index, files);
}

/* Finds the shards; returns false, with a note, if the weights do not fit into shards. */
static bool plan_shards(struct hf_files *files)
{
    struct tree *tree = files->tree;
    const struct content_options *options = tree_options(tree);
    uint64_t limit = options->request.shard_size != 0 ? options->request.shard_size : shards_usual_size;
    struct error error;
    bool by_order = facts_of(tree_checkpoint(tree)).keys != NULL && options->request.shard_size == 0;
    bool by_size = most_bytes(shown_tensors_of(tree_checkpoint(tree)), options->request.hf_type) > limit;
    if ((!by_order && !by_size) || model_of(files, &error) == NULL)
        return true;
    if (by_order)
        files->shards = shards_of_order(files->model.value, tree_arena(tree));
    if (files->shards.n_shards > 1 || !by_size ||
        shards_plan(files->model.value, limit, tree_arena(tree), &files->shards, &error))
        return true;
    checkpoint_note(tree_checkpoint(tree), SUBJECT_DIRECTORY, "the weights are left out: %s", error.message);
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

/* Writes the config.json of a packed model without its packing. */
static enum outcome write_unpacked_config(void *context, struct buffer *out, struct error *error)
{
    struct document *document;
    if (!document_open(tree_checkpoint(context), "config.json", &document, error))
        return FAILED;
    plain_config(document_root(document), out);
    document_close(document);
    return OK;
}

/* Adds the side files, without those that describe a packing, and without those inside `components`. */
static void add_side_files(struct tree *tree, node_id directory, const struct components *components)
{
    static const char config[] = "config.json";
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    bool is_packed = shown_tensors_of(tree_checkpoint(tree))->unpacked != NULL;
    const struct side_file *side = checkpoint_side_file(checkpoint, config);
    if (is_packed && side != NULL)
        tree_add_text(tree, directory, config, origin_of_side_file(checkpoint, side), write_unpacked_config, tree);
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
    once_destroy(&((struct hf_files *)context)->model);
}

static struct hf_files *new_files(struct tree *tree)
{
    struct hf_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct hf_files){.tree = tree};
    once_init(&files->model);
    tree_on_free(tree, release, files);
    return files;
}

void hf_files_add_beside(struct tree *tree, node_id directory)
{
    add_side_files(tree, directory, NULL);
    if (facts_of(tree_checkpoint(tree)).keys != NULL)
        add_rebuilt(new_files(tree), directory);
}

static enum outcome write_template(void *context, struct buffer *out, struct error *error)
{
    return chat_template_write(tree_checkpoint(context), out, error) ? OK : REPORTED;
}

void hf_files_add_template(struct tree *tree, node_id directory)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct side_file *holder = checkpoint_side_file(checkpoint, "tokenizer_config.json");
    if (holder != NULL && checkpoint_side_file(checkpoint, "chat_template.jinja") == NULL)
        tree_add_text(tree, directory, "chat_template.jinja", origin_of_side_file(checkpoint, holder), write_template,
                      tree);
}

static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct hf_files *files = new_files(tree);
    struct source *only = hf_only_file(checkpoint);
    tree_add_file(tree, TREE_ROOT, weights_name(tree), plan_whole, files);
    if (only != NULL)
        tree_expect_whole(tree, only);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "hf");
    add_weights(files, directory);
    add_name_of_diffusers(tree, TREE_ROOT);
    add_name_of_diffusers(tree, directory);
    add_side_files(tree, directory, checkpoint->components);
    if (facts_of(checkpoint).keys != NULL) {
        add_rebuilt(files, directory);
        explain_rebuilt(tree);
    }
    return true;
}

const struct content hf_files_content = {
    .name = "hf",
    .summary = "model.safetensors, in one file; hf/: a directory that from_pretrained() opens",
    .of_weights = true,
    .add = add,
};
