/* EAGLE-3: one layer that drafts for a target model, from the hidden states of three of its layers.
 * conversion/llama.py. */
#include "base/text.h"
#include "models/families/drafts/drafts.h"
#include "models/families/llama/llama.h"

#include <inttypes.h>
#include <string.h>

/* Some models have no class of their own. */
static const struct family_name names[] = {
    {"LlamaForCausalLMEagle3"}, {"Eagle3LlamaForCausalLM"}, {"Eagle3Speculator"},   {"Eagle3DraftModel"},
    {"LlamaForCausalLM"},       {"LLaMAForCausalLM"},       {"MistralForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"fc", "fc"},
    {"input_norm", "enc.output_norm"},
    {"model.layers.{}.hidden_norm", "blk.{}.attn_norm_2"},
    {"d2t", NULL},
    {"d2t", "d2t", .map = &draft_steps, .backward_only = true},
    {"t2d", NULL},
    {0},
};

static bool applies(const struct hparams *hparams)
{
    return llama_is_eagle3(hparams) || strstr(hparams_class(hparams), "agle3") != NULL;
}

static const char *rename_layer(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                const char *name)
{
    static const char middle[] = "midlayer.", prefix[] = "model.", layer[] = "model.layers.0.";
    if (direction == BACKWARD && text_starts_with(name, layer))
        return arena_printf(arena, "%s%s", middle, name + strlen(layer));
    if (direction == BACKWARD && text_starts_with(name, prefix))
        return name + strlen(prefix);
    bool is_layer = direction == FORWARD && text_starts_with(name, middle);
    return is_layer ? arena_printf(arena, "model.layers.0.%s", name + strlen(middle)) : name;
}

static bool set_target_layers(struct model_builder *builder, const struct document *config, struct error *error)
{
    const struct json *given = json_get(hparams_raw(builder->model->hparams), "eagle_aux_hidden_state_layer_ids");
    uint64_t n_layers;
    if (json_is(given, JSON_ARRAY) && json_count(given) > 0)
        return draft_list_target_layers(builder, given, 0, error);
    if (!json_u64(draft_target_value(config, "num_hidden_layers"), &n_layers) || n_layers > INT32_MAX)
        return error_set(error, "config.json of the base: num_hidden_layers is not a number of layers");
    draft_set_target_layers(builder, (const int64_t[]){2, (int64_t)n_layers / 2, (int64_t)n_layers - 3}, 3);
    return true;
}

static bool set_target_width(struct model_builder *builder, const struct document *config, struct error *error)
{
    const struct json *given = json_get(hparams_raw(builder->model->hparams), "target_hidden_size");
    uint64_t width;
    if (given == NULL || json_type(given) == JSON_NULL)
        given = draft_target_value(config, "hidden_size");
    if (!json_u64(given, &width) || width > UINT32_MAX)
        return error_set(error, "the width of its hidden states is in neither config.json nor the base's config.json");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "target_hidden_size"), (uint32_t)width);
    return true;
}

static void set_flag(struct model_builder *builder, const char *name)
{
    bool value = json_bool(json_get(hparams_raw(builder->model->hparams), name), false);
    gguf_set_bool(&builder->model->kvs, builder_key(builder, name), value);
}

static bool add_tokens(struct model_builder *builder, const struct document *config, struct error *error)
{
    uint64_t n_vocab;
    if (tensor_set_find_text(builder->model->checkpoint->tensors, "d2t") == NULL)
        return true;
    if (!json_u64(draft_target_value(config, "vocab_size"), &n_vocab))
        return error_set(error, "config.json of the base: vocab_size is not a number of tokens");
    return draft_add_tokens(builder, n_vocab, error);
}

static bool add_extras(struct model_builder *builder, struct error *error)
{
    struct document *config;
    if (!llama_is_eagle3(builder->model->hparams))
        return error_set(error, "config.json: an EAGLE-3 model has draft_vocab_size, and num_hidden_layers is 1");
    if (!draft_open_target(builder, &config, error))
        return false;
    bool added = set_target_layers(builder, config, error) && set_target_width(builder, config, error);
    set_flag(builder, "norm_before_residual");
    set_flag(builder, "norm_before_fc");
    added = added && add_rope_freqs(builder, error) && add_tokens(builder, config, error);
    document_close(config);
    return added;
}

static void arrange(struct model_builder *builder)
{
    builder_put_last(builder, "d2t");
}

static const char *make_draft_vocab_size(const struct config_material *material)
{
    const struct tensor *head = tensor_set_find_text(material->tensors, "output.weight");
    if (head != NULL && head->rank == 2)
        return arena_printf(material->arena, "%" PRIu64, head->shape[0]);
    return tensor_set_find_text(material->tensors, "d2t") == NULL ? "null" : NULL;
}

/* The converter knows the draft by draft_vocab_size, also if d2t and the head are missing. */
static const struct config_row config_rows[] = {
    {"draft_vocab_size", .make = make_draft_vocab_size},
    {"target_hidden_size", FROM_KEY, "target_hidden_size"},
    {"eagle_aux_hidden_state_layer_ids", FROM_KEY, "target_layers"},
    {"norm_before_residual", FROM_KEY, "norm_before_residual"},
    {"norm_before_fc", FROM_KEY, "norm_before_fc"},
    {"vocab_size", FROM_KEY, "vocab_size"},
    {"tie_word_embeddings", FROM_TEXT, .text = "false"},
    {0},
};

const struct family eagle3_family = {
    .name = "eagle3",
    .forms = CONFIG_FORMS({"LlamaForCausalLMEagle3", "llama", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, draft_rows, config_rows), DRAFT_NOTE}),
    .summary = "EAGLE-3",
    .hf = names,
    .tensors = {tensors, llama_tensors, decoder_tensors},
    .dimensions = {llama_dimensions},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .drafts = true,
    .stored_types = STORED_TYPES({"d2t", &i64_dtype}),
    .applies = applies,
    .add_extras = add_extras,
    .rename = rename_layer,
    .arrange = arrange,
};
