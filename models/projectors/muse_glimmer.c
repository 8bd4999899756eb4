/* Muse Glimmer: vision encoder. conversion/muse_glimmer.py, MuseGlimmerVisionModel. */
#include "models/projectors/projector.h"
#include "quant/views/unpack.h"

#include <string.h>

#define LAYER "vision_tower.layers.{}."

/* A patch has the same colours in several frames, whose kernels are added up: see add_frames(). */
static const struct relation_row tensors[] = {
    {"vision_tower.patch_embedder.patch_embedding.weight", "v.patch_embd.weight", "o (k part y x) -> o k part y x"},
    {"vision_tower.patch_embedder.patch_embedding.bias", "v.patch_embd.bias"},
    {"vision_tower.patch_embedder.position_embedding_table", "v.position_embd"},
    {"vision_tower.ln_pre", "v.pre_ln"},
    {"vision_tower.ln_post", "v.post_ln"},
    {LAYER "attn.q_proj", "v.blk.{}.attn_q", QUERY_ROTARY},
    {LAYER "attn.k_proj", "v.blk.{}.attn_k", QUERY_ROTARY},
    {LAYER "attn.v_proj", "v.blk.{}.attn_v"},
    {LAYER "attn.proj", "v.blk.{}.attn_out"},
    {LAYER "norm1", "v.blk.{}.ln1"},
    {LAYER "norm2", "v.blk.{}.ln2"},
    {LAYER "mlp.fc1", "v.blk.{}.ffn_up"},
    {LAYER "mlp.fc2", "v.blk.{}.ffn_down"},
    {"vision_adapter.fc1", "mm.0"},
    {"vision_adapter.fc2", "mm.1"},
    {"vision_projection", "mm.2"},
    {0},
};

/* Sets image_size, a required key, to that of the table of positions: images have any size. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t n_rows, patch, merge;
    if (!hparams_count(hparams, "pos_emb_height", 1, UINT16_MAX, &n_rows, error) ||
        !hparams_count(hparams, "patch_size", 1, UINT16_MAX, &patch, error) ||
        !hparams_count(hparams, "merge_size", 1, UINT16_MAX, &merge, error))
        return false;
    return n_rows * patch * merge <= UINT32_MAX
               ? hparams_override(hparams, "image_size", n_rows * patch * merge, error)
               : error_set(error, "config.json: pos_emb_height, patch_size and merge_size make no image size");
}

/* Replaces the patch's kernel for each frame by the sum of all. */
static void add_frames(struct model_builder *builder)
{
    struct arena *arena = builder->model->arena;
    struct tensor_set *set = builder->model->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor *tensor = &tensor_set_edit(set)[i];
        if (strcmp(tensor->name, "v.patch_embd.weight") != 0 || tensor->rank != 5)
            continue;
        const struct view *frames = view_convert(arena, tensor_view(tensor, arena), &f32_dtype);
        const uint64_t *full = frames->shape, shape[4] = {full[0], full[2], full[3], full[4]};
        const struct sharing each = {1, 1, NULL};
        const struct view *sum = NULL;
        for (uint64_t frame = 0; frame < full[1]; frame++) {
            const struct view *one = view_reshape(arena, view_slice(arena, frames, 1, frame, 1, 1), 4, shape);
            sum = sum == NULL ? one : view_combine(arena, sum, ADD, one, &each);
        }
        if (tensor->dtype == &f16_dtype)
            sum = view_convert(arena, sum, &f16_dtype);
        *tensor = tensor_of_view(tensor->name, sum);
    }
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("muse-glimmer"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {"vision.spatial_merge_size", GGUF_U32, REQUIRED, "merge_size"},
    {0},
};

const struct family muse_glimmer_projector = {
    .name = "muse-glimmer",
    .summary = "Muse Glimmer (vision encoder)",
    .hf = FAMILY_NAMES({"MuseGlimmerForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.vision_adapter.", "model.vision_projection.")),
    .dimensions = {DIMENSIONS({"k", "patch_temporal"}, {"y", "patch_size"}, {"x", "patch_size"},
                              {"head", "num_attention_heads"})},
    .adjust = adjust,
    .arrange = add_frames,
};
