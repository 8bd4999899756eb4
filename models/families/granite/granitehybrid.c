/* Granite 4 and Bamba: layers of Mamba 2 and of attention. conversion/granite.py, GraniteHybridModel.
 *
 * The converter looks for some names first, then for the same names after "mamba_". A model without Mamba layers has
 * Granite 3's architecture, but all keys of the hybrid. */
#include "models/families/granite/granite.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/families/llama/llama.h"

#include <string.h>

static const struct relation_row bamba_tensors[] = {
    {"model.final_layernorm", "output_norm", .when = "bamba"},
    {"model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm", .when = "bamba"},
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row", .when = "bamba"},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row", .when = "bamba"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column", .when = "bamba"},
    {0},
};

static const struct relation_row tensors[] = {
    {"model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate_shexp, blk.{}.ffn_up_shexp", GATE_UP, "gate up",
     .when = "expert"},
    {"model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp", .parallel = "column", .when = "expert"},
    {"model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up",
     .when = "!expert"},
    {"model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down", .parallel = "column", .when = "!expert"},
    {0},
};

/* Reports whether layer `i` has attention if no list names such layers. */
static bool is_periodic(const struct hparams *hparams, uint64_t i)
{
    uint64_t period, offset;
    struct error unused;
    return hparams_count(hparams, "attn_layer_period", 1, UINT32_MAX, &period, &unused) &&
           hparams_count(hparams, "attn_layer_offset", 0, UINT32_MAX, &offset, &unused) && i % period == offset;
}

/* Marks the layers with attention, among the first `n`. */
static void mark_attention(const struct hparams *hparams, struct layers *layers)
{
    const struct json *types = hparams_get(hparams, "layer_types"),
                      *listed = hparams_get(hparams, "attn_layer_indices");
    if (json_count(types) > 0) {
        layers_mark(layers, types, "attention");
        return;
    }
    for (uint64_t i = 0; i < layers->n && json_count(listed) == 0; i++)
        layers->values[i] = is_periodic(hparams, i);
    for (const struct json *item = json_first(listed); item != NULL; item = json_next(item)) {
        uint64_t i;
        if (json_u64(item, &i) && i < layers->n)
            layers->values[i] = 1;
    }
}

static bool has_mamba_layers(const struct hparams *hparams)
{
    double values[MAX_LISTED_LAYERS / 64];
    struct layers layers = {0, values};
    struct error unused;
    if (!hparams_count(hparams, BLOCK_COUNT, 1, sizeof values / sizeof *values, &layers.n, &unused))
        return true;
    memset(values, 0, layers.n * sizeof *values);
    mark_attention(hparams, &layers);
    for (uint64_t i = 0; i < layers.n; i++)
        if (values[i] == 0)
            return true;
    return false;
}

static bool has_experts(const struct hparams *hparams)
{
    double used;
    return json_double(hparams_find(hparams, "num_experts_per_tok|num_experts_per_token"), &used) && used != 0;
}

static bool is_attention_with_experts(const struct hparams *hparams)
{
    return !has_mamba_layers(hparams) && has_experts(hparams);
}

static bool is_attention_alone(const struct hparams *hparams)
{
    return !has_mamba_layers(hparams) && !has_experts(hparams);
}

static bool emit_attention(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (!layers_new(builder, &layers, error))
        return false;
    mark_attention(builder->model->hparams, &layers);
    layers_note_later_names(builder, hparams_get(builder->model->hparams, "layer_types"));
    bool is_bamba = strcmp(builder->hf->name, "BambaForCausalLM") == 0;
    bool has_rope = !has_mamba_layers(builder->model->hparams) || is_bamba;
    if (is_bamba)
        checkpoint_note(
            builder->model->checkpoint, SUBJECT_GGUF,
            "Bamba's rope turns the first half of each head, but the converter orders queries and keys as for "
            "whole heads: llama.cpp turns other elements, and computes other values than transformers");
    if (!layers_set_kv_heads(builder, &layers, error))
        return false;
    gguf_set_bool(kvs, builder_key(builder, "rope.scaling.finetuned"), has_rope);
    if (!has_rope)
        gguf_set_u32(kvs, builder_key(builder, "context_length"), MAMBA2_CONTEXT);
    return true;
}

#define STATE                                                                                                          \
    "state_size|d_state|state_dim|ssm_state_size|mamba_state_size|mamba_d_state|mamba_state_dim|mamba_ssm_state_size"
#define GROUPS      "n_groups|num_groups|mamba_n_groups|mamba_num_groups"
#define MAMBA_HEADS "n_heads|num_heads|mamba_n_heads|mamba_num_heads"

static const struct key_row keys[] = {
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "conv_kernel|d_conv|mamba_conv_kernel|mamba_d_conv"},
    {"ssm.state_size", GGUF_U32, REQUIRED, STATE},
    {"ssm.group_count", GGUF_U32, REQUIRED, GROUPS},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "mamba_head_dim|hidden_size|d_model",
     .by = "expand|num_heads|mamba_expand|mamba_num_heads"},
    {"ssm.time_step_rank", GGUF_U32, REQUIRED, MAMBA_HEADS},
    {"rope.dimension_count", GGUF_U32, IF_TRUE, "attn_rotary_emb"},
    {.emit = emit_attention},
    {0},
};

static const struct dimension_row sizes[] = {
    {"state_group", GROUPS},
    {"state", STATE},
    {"mamba_head", MAMBA_HEADS},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    const char *class_name = hparams_class(hparams);
    if (class_name != NULL && strcmp(class_name, "BambaForCausalLM") == 0)
        dimensions_set(dimensions, "bamba", 1);
}

static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    return !has_mamba_layers(builder->model->hparams) || mamba2_pad_vocabulary(builder, 8, error);
}

static const struct config_row common_rows[] = {
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"mamba_d_head", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"mamba_expand", FROM_QUOTIENT, "ssm.inner_size", "embedding_length"},
    {"mamba_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"mamba_proj_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {0},
};

static const struct config_row granite_rows[] = {
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {"layer_types", FROM_LAYERS, "attention.head_count_kv", "'attention'|'mamba'"},
    {"position_embedding_type", FROM_TEXT, .text = "'nope'"},
    {0},
};

static const struct config_row config_dense_rows[] = {
    {"num_local_experts", FROM_TEXT, .text = "0"},
    {"num_experts_per_tok", FROM_TEXT, .text = "0"},
    {0},
};

static const struct config_row config_bamba_rows[] = {
    {"attn_layer_indices", FROM_LISTED, "attention.head_count_kv"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {0},
};

/* Granite 4 with Mamba layers has no positions; Bamba has a rope. */
static const struct config_form forms[] = {
    {"BambaForCausalLM", "bamba", "key:rope.scaling.finetuned=1",
     CONFIG_TABLES(silu_rows, common_rows, config_bamba_rows)},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", "tensor:blk.0.ffn_gate_inp.weight",
     CONFIG_TABLES(silu_rows, common_rows, granite_rows)},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", NULL,
     CONFIG_TABLES(silu_rows, common_rows, granite_rows, config_dense_rows)},
    {0},
};

#define GRANITE_HYBRID                                                                                                 \
    .hf = FAMILY_NAMES({"GraniteMoeHybridForCausalLM"}, {"BambaForCausalLM"}),                                         \
    .tensors = {bamba_tensors, tensors, mamba2_layer_tensors, granite_moe_tensors, llama_tensors, decoder_tensors},    \
    .keys = {base_keys, granite_keys, granite_moe_keys, keys}, .vocabs = {&spm_vocab, &bpe_vocab},                     \
    .dimensions = {sizes}, .add_dimensions = add_dimensions, .add_extras = add_rope_freqs,                             \
    .rename = granite_without_towers, .before_vocab = pad_vocabulary

const struct family granitehybrid_family = {
    .name = "granitehybrid",
    .summary = "Granite 4, Bamba",
    .forms = forms,
    GRANITE_HYBRID,
};

const struct family granite4_family = {
    .name = "granite4",
    .architecture = "granite",
    .summary = "Granite 4 without Mamba layers",
    .applies = is_attention_alone,
    GRANITE_HYBRID,
};

const struct family granite4moe_family = {
    .name = "granite4moe",
    .architecture = "granitemoe",
    .summary = "Granite 4 MoE without Mamba layers",
    .applies = is_attention_with_experts,
    GRANITE_HYBRID,
};
