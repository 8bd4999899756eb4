/* ERNIE 4.5, dense and with experts, and PaddleOCR-VL's language model. conversion/ernie.py. */
#include "models/families/llama/llama.h"

#include <string.h>

/* Some checkpoints fuse queries, keys and values. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
     "(query head d + key kv_head d + value kv_head d) ... -> (query head d) ..., (key kv_head d) ..., (value kv_head "
     "d) ...",
     "head kv_head", .forward_only = true},
    {"model.layers.{}.mlp.up_gate_proj", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up", .forward_only = true},
    {0},
};

/* Sets the shared experts' width as the converter does, whatever it may mean. */
static bool emit_shared_width(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    uint64_t width, kv_heads, n_shared;
    if (!json_u64(hparams_get(hparams, "moe_num_shared_experts"), &n_shared) || n_shared == 0)
        return true;
    if (!hparams_count(hparams, "intermediate_size", 0, UINT32_MAX, &width, error) ||
        !hparams_count(hparams, "num_key_value_heads", 1, UINT32_MAX, &kv_heads, error))
        return false;
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_shared_feed_forward_length"),
                 (uint32_t)(width / kv_heads));
    return true;
}

static const struct key_row moe_layer_keys[] = {
    {"expert_count", GGUF_U32, REQUIRED, "moe_num_experts"},
    {"expert_used_count", GGUF_U32, REQUIRED, "moe_k"},
    {"interleave_moe_layer_step", GGUF_U32, REQUIRED, "moe_layer_interval"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "moe_layer_start_index"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "moe_num_shared_experts"},
    {.emit = emit_shared_width},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head_dim = 0;
    if (!json_u64(hparams_get(hparams, "head_dim"), &head_dim) && dimensions_get(dimensions, "head") != 0)
        head_dim = dimensions_get(dimensions, "hidden") / dimensions_get(dimensions, "head");
    dimensions_set(dimensions, "d", head_dim);
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char ernie[] = "ernie.";
    const char *found = direction == FORWARD ? strstr(name, ernie) : NULL;
    if (found == NULL)
        return name;
    return arena_printf(arena, "%.*smodel.%s", (int)(found - name), name, found + sizeof ernie - 1);
}

#define ERNIE                                                                                                          \
    .dimensions = {qkv_dimensions, DIMENSIONS({"expert", "moe_num_experts", .kept = true})}, .vocabs = {&spm_vocab},   \
    .add_dimensions = add_dimensions, .rename = rename_tensor, .after_vocab = llama_before_vocab

const struct family ernie4_5_family = {
    .name = "ernie4_5",
    .summary = "ERNIE 4.5, dense",
    .hf = FAMILY_NAMES({"Ernie4_5ForCausalLM"}, {"Ernie4_5_ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Ernie4_5ForCausalLM", "ernie4_5", NULL,
                           CONFIG_TABLES(silu_rows, CONFIG_ROWS({"use_bias", FROM_TENSOR, "blk.0.attn_q.bias"}))}),
    .keys = {base_keys},
    ERNIE,
};

const struct family ernie4_5_moe_family = {
    .name = "ernie4_5-moe",
    .summary = "ERNIE 4.5 MoE",
    .hf = FAMILY_NAMES({"Ernie4_5_MoeForCausalLM"}),
    .tensors = {TENSORS({"model.mtp_*", NULL},
                        {"model.layers.{}.mlp.moe_statics.e_score_correction_bias", "blk.{}.exp_probs_b.bias"}),
                expert_gate_first_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", NULL,
                           CONFIG_TABLES(silu_rows, CONFIG_ROWS({"use_bias", FROM_TENSOR, "blk.0.attn_q.bias"}))}),
    .keys = {base_keys, moe_layer_keys},
    ERNIE,
};

const struct family paddleocr_family = {
    .name = "paddleocr",
    .summary = "PaddleOCR-VL (language model)",
    .hf = FAMILY_NAMES({"PaddleOCRVLForConditionalGeneration"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys},
    ERNIE,
};
