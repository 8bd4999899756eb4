/* GroveMoE: Qwen 3 with experts; each two experts share a smaller one in parallel. conversion/grovemoe.py. */
#include "models/families/qwen/qwen.h"

enum { EXPERTS_PER_GROUP = 2 };

static const struct relation_row tensors[] = {
    {"model.layers.{}.mlp.gate.expert_bias", NULL},
    {"model.layers.{}.mlp.expert_bias", NULL},
    {"model.layers.{}.mlp.chunk_experts.{group}.down_proj", "blk.{}.ffn_down_chexps", .parallel = "column"},
    {"model.layers.{}.mlp.chunk_experts.{group}.gate_proj", "blk.{}.ffn_gate_chexps", .parallel = "row"},
    {"model.layers.{}.mlp.chunk_experts.{group}.up_proj", "blk.{}.ffn_up_chexps", .parallel = "row"},
    {0},
};

/* The converter uses the size of a head as the width of these experts. */
static const struct key_row keys[] = {
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"expert_chunk_feed_forward_length", GGUF_U32, ALWAYS, .value = 128},
    {"expert_chunk_feed_forward_length", GGUF_U32, IF_TRUE, "head_dim"},
    {"experts_per_group", GGUF_U32, ALWAYS, .value = EXPERTS_PER_GROUP},
    {"expert_group_scale", GGUF_F32, ALWAYS, .value = 0.05},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    dimensions_set(dimensions, "group", dimensions_get(dimensions, "expert") / EXPERTS_PER_GROUP);
}

const struct family grovemoe_family = {
    .name = "grovemoe",
    .summary = "GroveMoE",
    .hf = FAMILY_NAMES({"GroveMoeForCausalLM"}, {"modeling_grove_moe.GroveMoeForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = add_dimensions,
};
