/* DFlash: layers of Qwen 3 that draft a block of tokens for a target model, from the hidden states of some of its
 * layers; and DSpark, which adds a Markov head. conversion/qwen.py. */
#include "base/text.h"
#include "models/families/drafts.h"
#include "models/families/layers.h"
#include "models/families/qwen.h"

/* The embedding and the output are the target model's. */
static const struct relation_row tensors[] = {
    {"model.fc", "fc"},
    {"model.hidden_norm", "enc.output_norm"},
    {"model.markov_head.markov_w1", "markov_w1", .parallel = "row"},
    {"model.markov_head.markov_w2", "markov_w2", .parallel = "row"},
    {"model.confidence_head.proj", "conf_proj"},
    {"model.embed_tokens.*", NULL},
    {"model.lm_head.*", NULL},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char prefix[] = "model.";
    return direction == BACKWARD || text_starts_with(name, prefix) ? name : arena_printf(arena, "%s%s", prefix, name);
}

/* Returns a hyperparameter of dflash_config, or of config.json without dflash_config. */
static const struct json *own_value(const struct model_builder *builder, const char *key)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *config = hparams_get(hparams, "dflash_config");
    return config != NULL ? json_get(config, key) : hparams_get(hparams, key);
}

/* Sets the target layers, whose numbers begin with the embedding. */
static bool emit_target_layers(struct model_builder *builder, struct error *error)
{
    return draft_list_target_layers(builder, own_value(builder, "target_layer_ids"), 1, error);
}

/* Marks the layers that the class gives a window if config.json names none. */
static bool mark_last(struct model_builder *builder, struct error *error)
{
    double first;
    struct layers layers;
    if (!builder_number(builder, "max_window_layers", 28, &first, error) || !layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = (double)i >= first;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool emit_window(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    static const struct key_row row[] = {{"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window"}, {0}};
    uint64_t window;
    if (!json_bool(hparams_get(hparams, "use_sliding_window"), false) ||
        !json_u64(hparams_get(hparams, "sliding_window"), &window) || window == 0)
        return true;
    bool is_listed = json_is(hparams_get(hparams, "layer_types"), JSON_ARRAY);
    return builder_emit(builder, row, error) &&
           (is_listed ? emit_sliding_layers(builder, error) : mark_last(builder, error));
}

static bool check_target(struct model_builder *builder, struct error *error)
{
    struct document *config;
    if (!draft_open_target(builder, &config, error))
        return false;
    document_close(config);
    return true;
}

static bool set_mask_token(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t id;
    const struct json *value = own_value(builder, "mask_token_id");
    if (value == NULL || json_type(value) == JSON_NULL)
        return true;
    if (!json_u64(value, &id) || id > UINT32_MAX)
        return error_set(error, "config.json: mask_token_id is not a token");
    gguf_set_u32(&builder->model->kvs, "tokenizer.ggml.mask_token_id", (uint32_t)id);
    return true;
}

const struct family dflash_family = {
    .name = "dflash",
    .summary = "DFlash, DSpark",
    .hf = FAMILY_NAMES({"DFlashDraftModel"}, {"Qwen3DSparkModel"}),
    .tensors = {tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {"block_size", GGUF_U32, OR_DEFAULT, "block_size", 16},
                             {.emit = emit_target_layers}, {.emit = emit_window})},
    .drafts = true,
    .rename = rename_tensor,
    .add_extras = check_target,
    .after_vocab = set_mask_token,
};
