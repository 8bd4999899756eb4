/* PLaMo 1 orders queries by their number for a key head first, llama.cpp by the key head. conversion/plamo.py has the
 * sizes of 13B, the only model, as constants; here they follow from config.json. */
#include "models/families/shared.h"

#define LAYER "model.layers.layers.{}."

static const struct relation_row tensors[] = {
    {LAYER "norm", "blk.{}.attn_norm"},
    {LAYER "self_attn.q_proj.weight", "blk.{}.attn_q.weight", "(query kv_head d) c -> (kv_head query d) c",
     "kv_head/query"},
    {LAYER "self_attn.k_proj", "blk.{}.attn_k", "(kv_head d) ...", "kv_head"},
    {LAYER "self_attn.v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {LAYER "self_attn.o_proj.weight", "blk.{}.attn_output.weight", "c (query kv_head d) -> c (kv_head query d)",
     "kv_head/query"},
    {LAYER "mlp.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {LAYER "mlp.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {LAYER "mlp.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

static bool compute_kv_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = (double)dimensions_get(&builder->dimensions, "kv_head");
    return *ret_value > 0 ||
           error_set(error, "config.json: num_attention_heads is missing, or less than n_shared_head");
}

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = 4096},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, .compute = compute_kv_heads},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    FILE_TYPE_KEY,
    {.emit = note_lost_rope},
    {0},
};

/* Corrects config.json's wrong num_key_value_heads. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    enum { N_SHARED = 8, MAX_SHARED = 1 << 16 };
    struct error unused;
    uint64_t n_shared;
    if (!hparams_count(hparams, "n_shared_head", 1, MAX_SHARED, &n_shared, &unused))
        n_shared = N_SHARED;
    dimensions_set(dimensions, "query", n_shared);
    dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head") / n_shared);
}

const struct family plamo_family = {
    .name = "plamo",
    .summary = "PLaMo 1",
    .hf = FAMILY_NAMES({"PlamoForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {keys},
    .vocabs = {&spm_vocab},
    .add_dimensions = add_dimensions,
};
