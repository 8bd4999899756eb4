/* LFM 2 and 2.5, dense and with experts: short convolutions, and attention in some layers. conversion/lfm2.py. */
#include "base/text.h"
#include "formats/components.h"
#include "models/families/layers.h"

#include <math.h>
#include <string.h>

static const struct family_name moe_names[] = {{"Lfm2MoeForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"model.embedding_norm", "token_embd_norm"},
    {"model.layers.{}.operator_norm", "blk.{}.attn_norm"},
    {"model.layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {"model.layers.{}.conv.conv", "blk.{}.shortconv.conv", "c 1 k -> c k", "c"},
    {"model.layers.{}.conv.in_proj", "blk.{}.shortconv.in_proj", "(part row) ...", "row"},
    {"model.layers.{}.conv.out_proj", "blk.{}.shortconv.out_proj", .parallel = "column"},
    {"model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.feed_forward.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.feed_forward.w3", "blk.{}.ffn_up", .parallel = "row"},
    {"model.layers.{}.feed_forward.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.feed_forward.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.feed_forward.experts.{expert}.w1", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.feed_forward.experts.{expert}.w2", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.feed_forward.experts.{expert}.w3", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"model.layers.{}.self_attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {"model.layers.{}.self_attn.q_layernorm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_layernorm", "blk.{}.attn_k_norm"},
    {0},
};

/* Marks the layers with attention: by type, or by number in full_attn_idxs; all layers without either. */
static void mark_attention(const struct model_builder *builder, struct layers *layers)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "layer_types"), *listed = hparams_get(hparams, "full_attn_idxs");
    bool is_moe = builder->hf == moe_names;
    if (json_is(types, JSON_ARRAY)) {
        layers_mark(layers, types, is_moe ? "full_attention" : "conv");
        for (uint64_t i = 0; i < layers->n && !is_moe; i++)
            layers->values[i] = layers->values[i] == 0;
        return;
    }
    for (uint64_t i = 0; i < layers->n && !json_is(listed, JSON_ARRAY); i++)
        layers->values[i] = 1;
    for (const struct json *item = json_first(listed); item != NULL; item = json_next(item)) {
        uint64_t i;
        if (json_u64(item, &i) && i < layers->n)
            layers->values[i] = 1;
    }
}

static bool emit_kv_heads(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    struct layers layers;
    if (json_is(types, JSON_ARRAY) ? !layers_of_list(builder, types, &layers, error)
                                   : !layers_new(builder, &layers, error))
        return false;
    mark_attention(builder, &layers);
    if (layers.n == 0)
        gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.head_count_kv"));
    return layers_set_kv_heads(builder, &layers, error);
}

/* Computes the width: two thirds of the declared one, times a factor, rounded up. */
static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width, factor, multiple;
    if (!builder_number(builder, "block_ff_dim|intermediate_size", 12288, &width, error) ||
        !builder_number(builder, "block_ffn_dim_multiplier", 1, &factor, error) ||
        !builder_number(builder, "block_multiple_of", 256, &multiple, error))
        return false;
    if (!json_bool(hparams_get(builder->model->hparams, "block_auto_adjust_ff_dim"), false)) {
        *ret_value = width;
        return true;
    }
    if (!(multiple >= 1))
        return error_set(error, "config.json: block_multiple_of is %g, below 1", multiple);
    width = trunc(factor * trunc(2 * width / 3));
    *ret_value = multiple * floor((width + multiple - 1) / multiple);
    return true;
}

static const struct key_row keys[] = {
    {.emit = emit_kv_heads},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"shortconv.l_cache", GGUF_U32, REQUIRED, "conv_L_cache"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "norm_eps"},
    {"feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {0},
};

static bool emit_causal(struct model_builder *builder, struct error *error)
{
    if (text_starts_with(builder->hf->name, "Lfm2Bidirectional"))
        gguf_set_bool(&builder->model->kvs, builder_key(builder, "attention.causal"), false);
    return true;
}

static const char dense_folder[] = "1_Dense";

/* Finds the matrix of the dense layer; NULL: no such folder. Fails if the folder has no readable matrix. */
static bool find_dense(const struct checkpoint *checkpoint, const struct tensor **ret_matrix, struct error *error)
{
    static const char name[] = "linear.weight";
    const struct checkpoint *dense = checkpoint_base(checkpoint, BASE_FOLDER);
    *ret_matrix = NULL;
    if (components_named(checkpoint->components, dense_folder) == NULL)
        return true;
    const struct tensor *tensor = dense != NULL ? tensor_set_find_text(dense->tensors, name) : NULL;
    if (tensor == NULL || tensor->refusal != NULL || tensor->rank != 2 || dtype_kernels(tensor->dtype).decode == NULL)
        return error_set(error, "%s: no readable matrix %s", dense_folder, name);
    *ret_matrix = tensor;
    return true;
}

static bool add_dense(struct model_builder *builder, struct error *error)
{
    struct gguf_model *model = builder->model;
    const struct tensor *dense;
    if (!find_dense(model->checkpoint, &dense, error))
        return false;
    if (dense == NULL)
        return true;
    gguf_set_u32(&model->kvs, builder_key(builder, "embedding_length_out"), (uint32_t)dense->shape[0]);
    tensor_set_add_view(builder->model->tensors, "dense_2.weight", tensor_view(dense, model->arena));
    return true;
}

static const struct key_row moe_family_keys[] = {
    {.emit = emit_kv_heads},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "num_dense_layers"},
    {"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, /* sigmoid */
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"shortconv.l_cache", GGUF_U32, REQUIRED, "conv_L_cache"},
    {0},
};

/* Leaves out the audio tensors of LFM2-Audio. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const audio[] = {"audio",           "codebook",    "conformer",
                                        "depth_embedding", "depthformer", "depth_linear"};
    if (direction == BACKWARD)
        return name;
    for (size_t i = 0; i < sizeof audio / sizeof *audio; i++)
        if (strstr(name, audio[i]) != NULL)
            return NULL;
    return text_starts_with(name, "lfm.") ? arena_printf(arena, "model.%s", name + 4) : name;
}

/* Leaves out tensors before and after the layers of LFM2-Audio's tokenizer, which makes sound from tokens. */
static const char *rename_of_audio(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const char *name)
{
    if (direction == FORWARD && (strcmp(name, "istft.window") == 0 || text_starts_with(name, "emb.emb")))
        return NULL;
    if (direction == FORWARD && text_starts_with(name, "lin."))
        return arena_printf(arena, "dense_2_out%s", name + 3);
    return rename_tensor(arena, dimensions, direction, name);
}

/* Refuses biases of convolutions: the converter fails on their shape, and llama.cpp has no tensors for them. */
static bool refuse_biases(struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (text_ends_with(set->tensors[i].name, ".conv.conv.bias"))
            return error_set(error,
                             "tensor '%.200s': llama.cpp has no biases of LFM 2's convolutions (conv_bias in "
                             "config.json), and the converter refuses them, too",
                             set->tensors[i].name);
    return true;
}

static const struct config_row common_rows[] = {
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"layer_types", FROM_LAYERS, "attention.head_count_kv", "'full_attention'|'conv'"},
    {"conv_bias", FROM_TENSOR, "blk.0.shortconv.conv.bias"},
    {0},
};

static const struct config_row config_rows[] = {
    {"intermediate_size", FROM_KEY, "feed_forward_length"},
    {"block_auto_adjust_ff_dim", FROM_TEXT, .text = "false"},
    {0},
};

/* No layer that always exists shows whether experts have a bias; the class has one by default. */
static const struct config_row config_moe_rows[] = {
    {"norm_eps", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {"rms_norm_eps", FROM_NOWHERE},
    {0},
};

const struct family lfm2_family = {
    .name = "lfm2",
    .summary = "LFM 2 and 2.5",
    .hf = FAMILY_NAMES({"Lfm2ForCausalLM"}, {"LFM2ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Lfm2ForCausalLM", "lfm2", NULL, CONFIG_TABLES(common_rows, config_rows)}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .adjust = refuse_biases,
    .rename = rename_tensor,
};

const struct family lfm2moe_family = {
    .name = "lfm2moe",
    .summary = "LFM 2 and 2.5 MoE",
    .hf = moe_names,
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Lfm2MoeForCausalLM", "lfm2_moe", NULL, CONFIG_TABLES(num_experts_rows, common_rows, config_moe_rows)}),
    .keys = {base_keys, moe_family_keys},
    .vocabs = {&bpe_vocab},
    .adjust = refuse_biases,
    .rename = rename_tensor,
};

const struct family lfm2_audio_family = {
    .name = "lfm2-audio",
    .architecture = "lfm2",
    .summary = "LFM 2.5 audio tokenizer",
    .hf = FAMILY_NAMES({"Lfm25AudioTokenizer"}),
    .tensors = {TENSORS({"dense_2_out", "dense_2"}), tensors, decoder_tensors},
    .keys = {base_keys, keys,
             KEYS({"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
                  {"embedding_length_out", GGUF_U32, REQUIRED, "output_size"})},
    .vocabs = {&no_vocab},
    .tokenizer_model = "none",
    .adjust = refuse_biases,
    .rename = rename_of_audio,
};

/* The inner model has names without "model.". */
static const char *rename_of_inner(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const char *name)
{
    static const char model[] = "model.";
    if (direction == BACKWARD)
        return text_starts_with(name, model) ? name + strlen(model) : name;
    return rename_tensor(arena, dimensions, direction, name);
}

/* The converter has no prefix for the class with a head: it calls the head "model.lm_head", too. */
static const struct relation_row inner_tensors[] = {
    {"model.lm_head", "output", .parallel = "row", .forward_only = true},
    {0},
};

/* Of a model with a dense layer after it, which is no part of the class, there is no config.json. */
static const struct config_form embed_forms[] = {
    {"Lfm2BidirectionalForMaskedLM", "lfm2", "!key:embedding_length_out key:attention.causal tensor:output.weight",
     CONFIG_TABLES(common_rows, config_rows), OWN_CLASS_NOTE},
    {"Lfm2BidirectionalModel", "lfm2", "!key:embedding_length_out key:attention.causal",
     CONFIG_TABLES(common_rows, config_rows), OWN_CLASS_NOTE},
    {"Lfm2Model", "lfm2", "!key:embedding_length_out", CONFIG_TABLES(common_rows, config_rows)},
    {0},
};

const struct family lfm2_embed_family = {
    .name = "lfm2-embed",
    .architecture = "lfm2",
    .summary = "LFM2-ColBERT and LFM 2.5 encoders",
    .hf = FAMILY_NAMES({"Lfm2Model", "model."}, {"Lfm2BidirectionalModel", "model."},
                       {"Lfm2BidirectionalForMaskedLM", "model.", .since = 11382}),
    .tensors = {inner_tensors, tensors, decoder_tensors},
    .forms = embed_forms,
    .keys = {base_keys, keys, KEYS({.emit = emit_causal}, {.emit = emit_pooling_type})},
    .vocabs = {&bpe_vocab},
    .told_by = "key:embedding_length_out|key:attention.causal|key:pooling_type",
    .dropped_prefixes = TEXTS("lfm2."),
    .renamed_late = "lfm2.",
    .folder = dense_folder,
    .add_extras = add_dense,
    .adjust = refuse_biases,
    .rename = rename_of_inner,
};
