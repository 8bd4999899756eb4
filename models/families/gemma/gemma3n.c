/* Gemma 3n, the text model: several streams (AltUp), and an embedding for each layer. conversion/gemma.py. */
#include "models/families/gemma/gemma.h"
#include "models/families/layers.h"

#include <math.h>
#include <string.h>

/* Three tensors of a kind, stacked; "even", "odd" and "last" are 1. */
#define STACKED "(even i) o, (odd i) o, (last i) o -> (even + odd + last) i o"

static const struct relation_row tensors[] = {
    {"model.embed_tokens", "token_embd", "row c -> (row + added) c", "row"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd", "row c -> (row + added_per_layer) c", "row"},
    {"lm_head.weight", "output.weight", .parallel = "row"},
    {"model.altup_projections.0, model.altup_projections.1, model.altup_projections.2", "altup_proj", STACKED, "row"},
    {"model.altup_unembed_projections.0, model.altup_unembed_projections.1, model.altup_unembed_projections.2",
     "altup_unembd_proj", STACKED, "row"},
    {"model.per_layer_model_projection", "per_layer_model_proj", .parallel = "row"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {"model.layers.{}.altup.correct_output_scale", "blk.{}.altup_correct_scale.weight"},
    {"model.layers.{}.altup.correction_coefs", "blk.{}.altup_correct_coef"},
    {"model.layers.{}.altup.prediction_coefs", "blk.{}.altup_predict_coef"},
    {"model.layers.{}.altup.modality_router", "blk.{}.altup_router"},
    {"model.layers.{}.altup.router_norm", "blk.{}.altup_router_norm"},
    {"model.layers.{}.laurel.linear_left", "blk.{}.laurel_l", .parallel = "row"},
    {"model.layers.{}.laurel.linear_right", "blk.{}.laurel_r", .parallel = "column"},
    {"model.layers.{}.laurel.post_laurel_norm", "blk.{}.laurel_post_norm"},
    {"model.layers.{}.per_layer_input_gate", "blk.{}.inp_gate"},
    {"model.layers.{}.per_layer_projection", "blk.{}.proj"},
    {"model.layers.{}.post_per_layer_input_norm", "blk.{}.post_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
    {0},
};

/* Sets one width for all layers. */
static bool emit_feed_forward(struct model_builder *builder, struct error *error)
{
    const struct json *width = hparams_get(builder->model->hparams, "intermediate_size");
    struct layers layers;
    double value;
    if (!json_double(width, &value))
        return true;
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = value;
    return layers_set_i32(builder, "feed_forward_length", &layers, error);
}

/* Sets how many standard deviations are below a share of a normal distribution, as torch computes it in F32, for the
 * only two shares in use. */
static bool emit_sparsity(struct model_builder *builder, struct error *error)
{
    enum { SPARSE_LAYERS = 10 };
    const double share = 0.95, deviations = 1.6448535919189453;
    const struct json *pattern = hparams_get(builder->model->hparams, "activation_sparsity_pattern");
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < SPARSE_LAYERS && layers.n > SPARSE_LAYERS && !json_is(pattern, JSON_ARRAY); i++)
        layers.values[i] = share;
    layers_fill(&layers, pattern);
    for (uint64_t i = 0; i < layers.n; i++) {
        if (layers.values[i] != 0 && layers.values[i] != share)
            return error_set(error, "config.json: activation_sparsity_pattern has %g, which is neither 0 nor 0.95",
                             layers.values[i]);
        layers.values[i] = layers.values[i] == 0 ? (double)-INFINITY : deviations;
    }
    layers_set(builder, "activation_sparsity_scale", GGUF_F32, &layers);
    return true;
}

static bool emit_window_pattern(struct model_builder *builder, struct error *error)
{
    enum { FULL_EACH = 5 };
    struct layers layers;
    if (json_is(hparams_get(builder->model->hparams, "layer_types"), JSON_ARRAY))
        return emit_listed_windows(builder, error);
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = (i + 1) % FULL_EACH != 0;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static const struct key_row keys[] = {
    {.emit = emit_feed_forward},
    {"altup.active_idx", GGUF_U32, REQUIRED, "altup_active_idx"},
    {"altup.num_inputs", GGUF_U32, REQUIRED, "altup_num_inputs"},
    {"embedding_length_per_layer_input", GGUF_U32, REQUIRED, "hidden_size_per_layer_input"},
    {"attention.shared_kv_layers", GGUF_U32, REQUIRED, "num_kv_shared_layers"},
    {.emit = emit_sparsity},
    {.emit = emit_window_pattern},
    {0},
};

/* Sets a dimension for rows of zeros that give an embedding one row for each token. */
static void pad(struct model_builder *builder, const char *fact, const char *tensor_name)
{
    struct error unused;
    uint64_t n_tokens;
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, 1 << 24, &n_tokens, &unused))
        return;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (strstr(tensor->name, tensor_name) != NULL && tensor->rank == 2 && tensor->shape[0] < n_tokens &&
            strstr(tensor->name, "embed_vision") == NULL && strstr(tensor->name, "embed_audio") == NULL)
            dimensions_set(&builder->dimensions, fact, n_tokens - tensor->shape[0]);
    }
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    enum { INPUTS = 4 };
    uint64_t n_inputs;
    pad(builder, "added", "embed_tokens.weight");
    pad(builder, "added_per_layer", "embed_tokens_per_layer.weight");
    return hparams_count(builder->model->hparams, "altup_num_inputs", INPUTS, INPUTS, &n_inputs, error);
}

/* Makes the list have all tokens, not just those in the layers' embedding. */
static bool count_all_tokens(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t n_tokens;
    return hparams_count(builder->model->hparams, "vocab_size", 0, UINT32_MAX, &n_tokens, error) &&
           hparams_override(builder->model->hparams, "vocab_size_per_layer_input", n_tokens, error);
}

static const struct config_row config_rows[] = {
    {"activation_sparsity_pattern", FROM_LAYERS, "activation_sparsity_scale", "0.95|0.0"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"vocab_size_per_layer_input", FROM_ROWS, "per_layer_token_embd.weight"},
    {"laurel_rank", FROM_ROWS, "blk.0.laurel_l.weight"},
    {0},
};

const struct family gemma3n_family = {
    .name = "gemma3n",
    .summary = "Gemma 3n (language model)",
    .hf = FAMILY_NAMES({"Gemma3nForCausalLM"}, {"Gemma3nForConditionalGeneration"}),
    .tensors = {tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Gemma3nForCausalLM", "gemma3n_text", NULL,
                           CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, config_rows)}),
    .keys = {base_keys, gemma3_keys, keys},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .dimensions = {DIMENSIONS({"last", NULL, 1}, {"added"}, {"added_per_layer"})},
    .adjust = adjust,
    .before_vocab = count_all_tokens,
    .after_vocab = gemma3_after_vocab,
};
