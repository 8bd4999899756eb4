/* Megatron-Core's GPT models, as its distributed checkpoints (torch_dist) and model_optim_rng.pt name them. Sources:
 * sharded_state_dict() of transformer_block.py, mlp.py, moe/experts.py and extensions/transformer_engine.py in
 * Megatron-Core 0.14; the pairs of names in Megatron-Bridge's llama, mistral, qwen2, qwen3 and qwen3_moe.
 *
 * Layers are stacked on a first axis, unless each has a number. The rows of a key head's queries, its key and its value
 * follow each other. Embeddings have rows of padding beyond the vocabulary. A norm before a linear layer is a part of
 * that layer with Transformer Engine, and a module without it. */
#include "models/derive/foreign_names.h"

#include <string.h>

#define HERE    "model.layers.{}."
#define THERE   "decoder.layers.{}."
#define EXPERT  "mlp.experts.experts."
#define HALVES  "gate ..., up ... -> (gate + up) ..."
#define STACKED "gate ..., up ... -> expert (gate + up) ..."
#define PADDED  "token c -> (token + padding) c"
#define GROUPS                                                                                                         \
    "(kv_head share d) ..., (kv_head key d) ..., (kv_head value d) ... -> (kv_head (share d + key d + value d)) ..."

/* clang-format off */

/* Gate and up are one tensor, or two if its parts are saved apart. */
#define GATED(here, gate, up, there)                             \
    {here gate ", " here up, there "linear_fc1", HALVES},        \
    {here gate ".weight", there "linear_fc1.weight_w"},          \
    {here up ".weight", there "linear_fc1.weight_v"}

/* Experts are stacked on an axis, or each has a number. */
#define EXPERTS(here, gate, up, down)                                       \
    {here gate ", " here up, THERE EXPERT "linear_fc1", STACKED},           \
    {here down, THERE EXPERT "linear_fc2"},                                 \
    GATED(here, gate, up, THERE EXPERT "{expert}."),                        \
    {here down, THERE EXPERT "{expert}.linear_fc2"},                        \
    GATED(here, gate, up, THERE "mlp.experts.local_experts.{expert}."),     \
    {here down, THERE "mlp.experts.local_experts.{expert}.linear_fc2"}

/* clang-format on */

static const struct relation_row rows[] = {
    {"model.embed_tokens", "embedding.word_embeddings", PADDED},
    {"lm_head", "output_layer", PADDED},
    {"model.norm", "decoder.final_layernorm"},
    {HERE "self_attn.q_proj, " HERE "self_attn.k_proj, " HERE "self_attn.v_proj", THERE "self_attention.linear_qkv",
     GROUPS},
    {HERE "self_attn.o_proj", THERE "self_attention.linear_proj"},
    {HERE "self_attn.q_norm", THERE "self_attention.q_layernorm"},
    {HERE "self_attn.k_norm", THERE "self_attention.k_layernorm"},
    {HERE "input_layernorm", THERE "input_layernorm"},
    {HERE "input_layernorm.weight", THERE "self_attention.linear_qkv.layer_norm_weight"},
    {HERE "post_attention_layernorm", THERE "pre_mlp_layernorm"},
    {HERE "post_attention_layernorm.weight", THERE "mlp.linear_fc1.layer_norm_weight"},
    GATED(HERE "mlp.", "gate_proj", "up_proj", THERE "mlp."),
    {HERE "mlp.down_proj", THERE "mlp.linear_fc2"},
    {0},
};

static const struct relation_row mixtral_rows[] = {
    {HERE "block_sparse_moe.gate", THERE "mlp.router"},
    EXPERTS(HERE "block_sparse_moe.experts.{expert}.", "w1", "w3", "w2"),
    {0},
};

static const struct relation_row qwen_rows[] = {
    {HERE "mlp.gate", THERE "mlp.router"},
    EXPERTS(HERE "mlp.experts.{expert}.", "gate_proj", "up_proj", "down_proj"),
    {0},
};

static bool is_megatron(const char *name)
{
    return strcmp(name, "decoder.final_layernorm.weight") == 0;
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    static const struct dimension_row more[] = {{"token", "vocab_size"}, {"key", NULL, 1}, {"value", NULL, 1}, {0}};
    dimensions_add(dimensions, more, hparams);
    uint64_t head = dimensions_get(dimensions, "head"), kv_head = dimensions_get(dimensions, "kv_head");
    if (head != 0 && kv_head != 0)
        dimensions_set(dimensions, "share", head / kv_head);
}

static const char *const dense_types[] = {"llama", "mistral", "qwen2", "qwen3", NULL},
                         *const mixtral_types[] = {"mixtral", NULL}, *const qwen_types[] = {"qwen3_moe", NULL};

#define MEGATRON                                                                                                       \
    .framework = "Megatron-Core", .is_marked = is_megatron, .stacked = "decoder.layers.",                              \
    .add_dimensions = add_dimensions

const struct spelling megatron_spelling = {MEGATRON, .model_types = dense_types, .relation = {rows}};
const struct spelling megatron_mixtral_spelling = {MEGATRON, .model_types = mixtral_types,
                                                   .relation = {rows, mixtral_rows}};
const struct spelling megatron_qwen_spelling = {MEGATRON, .model_types = qwen_types, .relation = {rows, qwen_rows}};
