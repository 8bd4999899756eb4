/* model.safetensors, and hf/: the weights, configuration and tokenizer that save_pretrained() would write.
 *
 * All files of weights share the model. The names of shards need their number: if the tensors may exceed one shard, or
 * a GGUF's order of tensors may imply shards, the model is made before they are listed. */
#include "products/product.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "models/card/general.h"
#include "models/derive/plain_config.h"
#include "models/facts.h"
#include "models/huggingface/hf_model.h"
#include "models/huggingface/hf_of_gguf.h"
#include "models/huggingface/shards.h"
#include "models/shown_tensors.h"
#include "models/tokenizers/rebuild.h"

#include <string.h>

static const char config_name[] = "config.json";

/* Returns the name of the single weights file: for an adapter, the name that peft opens. */
static const char *weights_name(const struct checkpoint *checkpoint)
{
    return facts_of(checkpoint).is_adapter ? "adapter_model.safetensors" : "model.safetensors";
}

/* Returns the name that Diffusers looks for, if the source's file has it; NULL: it has another. */
static const char *name_of_diffusers(const struct checkpoint *checkpoint)
{
    bool has = text_starts_with(source_name(checkpoint->sources[0]), "diffusion_pytorch_model");
    return has ? "diffusion_pytorch_model.safetensors" : NULL;
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct dtype *type = input->request->hf_type;
    return type == NULL ? hf_model_of(input->checkpoint, error) : hf_model_new(arena, input->checkpoint, type, error);
}

/* Weights. */

static enum outcome make_weights(const struct product_input *input, const void *made, const void *what,
                                 struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct product_shard *shard = what;
    shards_artifact(made, shard->of, shard->number, ret_artifact);
    return OK;
}

static enum outcome write_index(const struct product_input *input, const void *made, const void *what,
                                struct buffer *out, struct error *error)
{
    shards_write_index(made, what, out);
    return OK;
}

static struct source *whole_of(const void *made)
{
    return ((const struct hf_model *)made)->whole;
}

/* Adds the file with all weights. */
static void add_whole(const struct product_input *input, const char *folder, struct product_list *list)
{
    static const struct product_shard all = {NULL, 0};
    product_add(list, (struct product_file){
                          .path = arena_printf(list->arena, "%s%s", folder, weights_name(input->checkpoint)),
                          .make = make_weights,
                          .what = &all,
                          .is = whole_of,
                          .may_be = hf_only_file(input->checkpoint),
                          .alias = name_of_diffusers(input->checkpoint),
                      });
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

static uint64_t size_limit(const struct request *request)
{
    return request->shard_size != 0 ? request->shard_size : shards_usual_size;
}

static bool may_exceed_a_shard(const struct product_input *input)
{
    uint64_t most = most_bytes(shown_tensors_of(input->checkpoint), input->request->hf_type);
    return most > size_limit(input->request);
}

/* Reports whether the order of tensors may show shards. */
static bool is_in_order(const struct product_input *input)
{
    return facts_of(input->checkpoint).keys != NULL && input->request->shard_size == 0;
}

static bool needs_model(const struct product_input *input)
{
    return is_in_order(input) || may_exceed_a_shard(input);
}

/* Finds the shards; returns false, with a note, if the weights do not fit into shards. `model` may be NULL. */
static bool plan_shards(const struct product_input *input, const struct hf_model *model, struct product_list *list,
                        struct shards *ret_shards)
{
    struct error error;
    if (model != NULL && is_in_order(input))
        *ret_shards = shards_of_order(model, list->arena);
    if (model == NULL || ret_shards->n_shards > 1 || !may_exceed_a_shard(input) ||
        shards_plan(model, size_limit(input->request), list->arena, ret_shards, &error))
        return true;
    checkpoint_note(input->checkpoint, SUBJECT_DIRECTORY, "the weights are left out: %s", error.message);
    product_hint(list, "hf/model.safetensors", arena_strdup(list->arena, error.message));
    return false;
}

static void add_weights(const struct product_input *input, const struct hf_model *model, struct product_list *list)
{
    struct shards *shards = arena_alloc(list->arena, sizeof *shards);
    *shards = (struct shards){0};
    if (!plan_shards(input, model, list, shards))
        return;
    if (shards->n_shards <= 1) {
        add_whole(input, "hf/", list);
        return;
    }
    product_add_shards(list, "hf/", shards, shards, make_weights);
    product_add(list,
                (struct product_file){.path = "hf/model.safetensors.index.json", .write = write_index, .what = shards});
}

/* Files made from keys. */

static enum outcome write_config(const struct product_input *input, const void *made, const void *what,
                                 struct buffer *out, struct error *error)
{
    const struct hf_model *model = made;
    if (model->config == NULL) {
        error_set(error, "%s", model->kept_names);
        return REPORTED; /* noted with the tensors' names */
    }
    buffer_append(out, model->config, model->config_length);
    return OK;
}

static enum outcome write_generation_config(const struct product_input *input, const void *made, const void *what,
                                            struct buffer *out, struct error *error)
{
    if (!hf_generates(made)) {
        error_set(error, "it is made only for text generation models of a known family");
        return REPORTED;
    }
    generation_config_of_keys(&input->checkpoint->metadata, out);
    return OK;
}

/* A file that is made from all keys. */
struct key_file {
    const char *path;
    void (*write)(const struct gguf_kvs *kvs, struct buffer *out);
};

static enum outcome write_key_file(const struct product_input *input, const void *made, const void *what,
                                   struct buffer *out, struct error *error)
{
    ((const struct key_file *)what)->write(&input->checkpoint->metadata, out);
    return OK;
}

static enum outcome write_key_text(const struct product_input *input, const void *made, const void *key,
                                   struct buffer *out, struct error *error)
{
    struct arena *arena = arena_new();
    size_t length;
    const char *text = gguf_get_string(&input->checkpoint->metadata, key, arena, &length, error);
    if (text != NULL)
        buffer_append(out, text, length);
    arena_free(arena);
    return text != NULL ? OK : FAILED;
}

static enum outcome write_tokenizer(const struct product_input *input, const void *made, const void *what,
                                    struct buffer *out, struct error *error)
{
    return rebuilt_file_write(what, &input->checkpoint->metadata, out, error) ? OK : FAILED;
}

/* Adds a text that is made from keys. */
static void add_text(struct product_list *list, const char *prefix, const char *path, product_writer *write,
                     const void *what)
{
    product_add(list, (struct product_file){
                          .path = arena_printf(list->arena, "%s%s", prefix, path),
                          .write = write,
                          .what = what,
                          .of = &hf_product,
                          .of_weights = true,
                          .needs_no_object = write != write_config && write != write_generation_config,
                      });
}

/* Adds the chat templates that have names: for tools, for retrieval. */
static void add_templates(const struct gguf_kvs *kvs, const char *prefix, struct product_list *list)
{
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        const char *name = rebuilt_template_name(kvs->kvs[i].key);
        if (name != NULL)
            add_text(list, prefix, arena_printf(list->arena, "additional_chat_templates/%s.jinja", name),
                     write_key_text, kvs->kvs[i].key);
    }
}

/* Adds the files of a model directory that a GGUF's keys replace. */
static void add_rebuilt(const struct gguf_kvs *kvs, const char *prefix, struct product_list *list)
{
    static const struct key_file card = {"README.md", general_write_card},
                                 pooling[] = {{"modules.json", pooling_write_modules},
                                              {"1_Pooling/config.json", pooling_write_config}};
    add_text(list, prefix, config_name, write_config, NULL);
    add_text(list, prefix, "generation_config.json", write_generation_config, NULL);
    add_text(list, prefix, card.path, write_key_file, &card);
    for (size_t i = 0; pooling_is_known(kvs) && i < sizeof pooling / sizeof *pooling; i++)
        add_text(list, prefix, pooling[i].path, write_key_file, &pooling[i]);
    add_templates(kvs, prefix, list);
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++)
        if (rebuilt_file_applies(file, kvs))
            add_text(list, prefix, file->name, write_tokenizer, file);
}

/* Says where the files that a GGUF's keys replace are, and why some are missing. */
static void explain_rebuilt(const struct checkpoint *checkpoint, struct product_list *list)
{
    static const char from_keys[] = "it is made from the GGUF's keys";
    const char *note = rebuilt_note(&checkpoint->metadata, list->arena);
    if (note != NULL)
        checkpoint_note(checkpoint, SUBJECT_DIRECTORY, "%s", note);
    product_place(list, config_name, "hf/config.json", from_keys);
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++) {
        const char *inside = arena_printf(list->arena, "hf/%s", file->name);
        const char *refusal = rebuilt_file_refusal(file, &checkpoint->metadata, list->arena);
        if (refusal != NULL) {
            product_hint(list, file->name, refusal);
            product_hint(list, inside, refusal);
        }
        if (rebuilt_file_applies(file, &checkpoint->metadata))
            product_place(list, file->name, inside, from_keys);
    }
}

/* Side files. */

/* Writes the config.json of a packed model without its packing. */
static enum outcome write_unpacked_config(const struct product_input *input, const void *made, const void *what,
                                          struct buffer *out, struct error *error)
{
    struct document *document;
    if (!document_open(input->checkpoint, config_name, &document, error))
        return FAILED;
    plain_config(document_root(document), out);
    document_close(document);
    return OK;
}

/* Returns a template, or the one named "default" of several; NULL if there is none. */
static const char *find_template(const struct json *templates, size_t *ret_length)
{
    for (const struct json *one = json_first(templates); one != NULL; one = json_next(one))
        if (json_string_is(json_get(one, "name"), "default"))
            return json_string(json_get(one, "template"), ret_length);
    return json_string(templates, ret_length);
}

/* Appends chat_template.jinja, which transformers takes out of tokenizer_config.json when it saves a tokenizer. */
static enum outcome write_template(const struct product_input *input, const void *made, const void *what,
                                   struct buffer *out, struct error *error)
{
    struct document *document;
    size_t length;
    if (!document_open(input->checkpoint, "tokenizer_config.json", &document, error))
        return REPORTED;
    const char *text = find_template(json_get(document_root(document), "chat_template"), &length);
    if (text != NULL)
        buffer_append(out, text, length);
    document_close(document);
    return text != NULL || error_set(error, "tokenizer_config.json has no chat template") ? OK : REPORTED;
}

/* Adds a side file, or the text that write() makes of it under that name. */
static void add_side_file(struct product_list *list, const char *prefix, const char *name, const struct side_file *side,
                          product_writer *write)
{
    product_add(list, (struct product_file){
                          .path = arena_printf(list->arena, "%s%s", prefix, name),
                          .side = side,
                          .write = write,
                          .needs_no_object = true,
                      });
}

/* Adds the side files, without those that describe a packing, and without those inside `components`. */
static void add_side_files(const struct checkpoint *checkpoint, const char *prefix, const struct components *components,
                           struct product_list *list)
{
    bool is_packed = shown_tensors_of(checkpoint)->unpacked != NULL;
    const struct side_file *side = checkpoint_side_file(checkpoint, config_name);
    if (is_packed && side != NULL)
        add_side_file(list, prefix, config_name, side, write_unpacked_config);
    for (size_t i = 0; i < checkpoint->n_side_files; i++) {
        const char *name = checkpoint->side_files[i].name;
        if (checkpoint->side_files[i].hidden || components_hold(components, name))
            continue;
        if (!is_packed || (strcmp(name, config_name) != 0 && !plain_config_lacks(name)))
            add_side_file(list, prefix, name, &checkpoint->side_files[i], NULL);
    }
}

void hf_add_beside(const struct product_input *input, const char *prefix, struct product_list *list)
{
    add_side_files(input->checkpoint, prefix, NULL, list);
    if (facts_of(input->checkpoint).keys != NULL)
        add_rebuilt(facts_of(input->checkpoint).keys, prefix, list);
}

void hf_add_template(const struct product_input *input, struct product_list *list)
{
    static const char name[] = "chat_template.jinja";
    const struct side_file *holder = checkpoint_side_file(input->checkpoint, "tokenizer_config.json");
    if (holder != NULL && checkpoint_side_file(input->checkpoint, name) == NULL)
        add_side_file(list, "", name, holder, write_template);
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    return true;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    struct facts facts = facts_of(input->checkpoint);
    add_whole(input, "", list);
    product_add(list, (struct product_file){.path = "hf/"});
    add_weights(input, made, list);
    add_side_files(input->checkpoint, "hf/", input->checkpoint->components, list);
    if (facts.keys != NULL) {
        add_rebuilt(facts.keys, "hf/", list);
        explain_rebuilt(input->checkpoint, list);
    }
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return "model.safetensors is left out, in hf/, too";
}

const struct product hf_product = {
    .name = "hf",
    .summary = "model.safetensors, in one file; hf/: a directory that from_pretrained() opens",
    .is_offered = is_offered,
    .make = make_model,
    .needs_object = needs_model,
    .files = list_files,
    .left_out = left_out,
};
