/* EAGLE-3: one layer that drafts for a target model, from the hidden states of three of its layers.
 * conversion/llama.py. */
#include "base/little_endian.h"
#include "base/text.h"
#include "models/families/drafts.h"
#include "models/families/llama.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <stdlib.h>
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
    static const char middle[] = "midlayer.";
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

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool check_ids(const int64_t *ids, uint64_t n_ids, uint64_t n_vocab, struct arena *arena, struct error *error)
{
    int64_t *sorted = arena_copy(arena, ids, n_ids * sizeof *ids);
    qsort(sorted, n_ids, sizeof *sorted, compare_ids);
    if (n_ids > 0 && (sorted[0] < 0 || (uint64_t)sorted[n_ids - 1] >= n_vocab))
        return error_set(error, "tensor 'd2t' leads to tokens %" PRId64 " to %" PRId64 ", where the base has %" PRIu64,
                         sorted[0], sorted[n_ids - 1], n_vocab);
    for (uint64_t i = 1; i < n_ids; i++)
        if (sorted[i] == sorted[i - 1])
            return error_set(error, "tensor 'd2t' leads to token %" PRId64 " twice", sorted[i]);
    return true;
}

/* Adds the target model's token for each token of the draft model, which stores the difference of the two numbers. */
static bool add_tokens(struct model_builder *builder, const struct document *config, struct error *error)
{
    static const char name[] = "d2t";
    struct arena *arena = builder->model->arena;
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, name);
    uint64_t n_vocab;
    if (tensor == NULL)
        return true;
    if (!json_u64(draft_target_value(config, "vocab_size"), &n_vocab))
        return error_set(error, "config.json of the base: vocab_size is not a number of tokens");
    if (tensor->refusal != NULL || dtype_kernels(tensor->dtype).decode == NULL)
        return error_set(error, "tensor '%s': %s", name, tensor->refusal ? tensor->refusal : "it has no numbers");
    const struct view *view = tensor_view(tensor, arena);
    uint64_t n_ids = view->n_elements;
    float *steps = arena_array(arena, n_ids + 1, sizeof *steps);
    int64_t *ids = arena_array(arena, n_ids + 1, sizeof *ids);
    if (!convert_values(view, 0, n_ids, steps, error))
        return false;
    for (uint64_t i = 0; i < n_ids; i++) {
        if (!(steps[i] > (float)INT32_MIN && steps[i] < (float)INT32_MAX))
            return error_set(error, "tensor '%s' has a value that is not a 32-bit integer", name);
        ids[i] = (int64_t)steps[i] + (int64_t)i;
    }
    if (!check_ids(ids, n_ids, n_vocab, arena, error))
        return false;
    little_endian(ids, n_ids, sizeof *ids);
    tensor_set_add_view(builder->model->tensors, name, view_literal(arena, &i64_dtype, 1, &n_ids, ids));
    return true;
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

const struct family eagle3_family = {
    .name = "eagle3",
    .summary = "EAGLE-3",
    .hf = names,
    .tensors = {tensors, llama_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .drafts = true,
    .stored_types = STORED_TYPES({"d2t", &i64_dtype}),
    .applies = applies,
    .add_extras = add_extras,
    .rename = rename_layer,
    .arrange = arrange,
};
