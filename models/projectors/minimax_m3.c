/* MiniMax M3: vision encoder. conversion/minimax.py, MiniMaxM3VisionModel. */
#include "models/projectors/projector.h"

/* In each head, all first halves of the rotary pairs of time, height and width precede the second ones: puts both
 * halves of each axis together, before the elements that do not rotate. */
#define PAIRS_OF_AXES "(head (half part n + rest)) ... -> (head (part half n + rest)) ..."

static const struct relation_row tensors[] = {
    {"^embeddings.patch_embedding.weight", "v.patch_embd.weight, v.patch_embd.weight.1", TWO_FRAMES},
    {"^pre_layrnorm", "v.pre_ln"},
    {"^encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q", PAIRS_OF_AXES},
    {"^encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k", PAIRS_OF_AXES},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {"patch_merge_mlp.linear_1", "mm.merger.fc1"},
    {"patch_merge_mlp.linear_2", "mm.merger.fc2"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    struct error unused;
    uint64_t width, n_heads;
    if (!hparams_count(hparams, "hidden_size", 1, UINT32_MAX, &width, &unused) ||
        !hparams_count(hparams, "num_attention_heads", 1, UINT32_MAX, &n_heads, &unused))
        return;
    uint64_t head_dim = width / n_heads, n_pairs = 2 * (head_dim / 2) / 3 / 2;
    dimensions_set(dimensions, "head", n_heads);
    dimensions_set(dimensions, "n", n_pairs);
    dimensions_set(dimensions, "rest", head_dim - 6 * n_pairs);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("minimax_m3"),
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "img_token_compression_config.spatial_merge_size", 2},
    {0},
};

const struct family minimax_m3_projector = {
    .name = "minimax_m3",
    .summary = "MiniMax M3 (vision encoder)",
    .hf = FAMILY_NAMES({"MiniMaxM3SparseForConditionalGeneration"}, {"MiniMaxM3VLForConditionalGeneration"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("vision_tower.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("vision_tower.", "multi_modal_projector.", "patch_merge_mlp.")),
    .add_dimensions = add_dimensions,
};
