/* dots.ocr: vision encoder. conversion/dotsocr.py. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"vision_tower.patch_embed.patchifier.proj", "v.patch_embd"},
    {"vision_tower.patch_embed.patchifier.norm", "v.pre_ln"},
    {"vision_tower.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"},
    {"vision_tower.blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {"vision_tower.blocks.{}.norm1", "v.blk.{}.ln1"},
    {"vision_tower.blocks.{}.norm2", "v.blk.{}.ln2"},
    {"vision_tower.blocks.{}.mlp.fc1", "v.blk.{}.ffn_gate"},
    {"vision_tower.blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"vision_tower.blocks.{}.mlp.fc3", "v.blk.{}.ffn_up"},
    {"vision_tower.post_trunk_norm", "mm.post_norm"},
    {"vision_tower.merger.ln_q", "mm.input_norm"},
    {"vision_tower.merger.mlp.{}", "mm.{}"},
    {0},
};

/* Sets image_size, a required key, to 0: images have any size. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "image_size", 0, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("dots_ocr"),
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, REQUIRED, "spatial_merge_size"},
    FLAG("use_silu"),
    {0},
};

const struct family dots_ocr_projector = {
    .name = "dots_ocr",
    .summary = "dots.ocr (vision encoder)",
    .hf = FAMILY_NAMES({"DotsOCRForCausalLM"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("vision_tower.")),
    .adjust = adjust,
};
