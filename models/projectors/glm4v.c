/* GLM-4.1V, GLM-4.5V, GLM-OCR: vision encoder. conversion/qwen3vl.py, Glm4VVisionModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"visual.patch_embed.proj.weight", "v.patch_embd.weight, v.patch_embd.weight.1", TWO_FRAMES},
    {"visual.patch_embed.proj.bias", "v.patch_embd.bias"},
    {"visual.embeddings.position_embedding", "v.position_embd"},
    {"visual.post_conv_layernorm", "v.norm_embd"},
    {"visual.post_layernorm", "v.post_ln"},
    {"visual.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"},
    {"visual.blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {"visual.blocks.{}.attn.q_norm", "v.blk.{}.attn_q_norm"},
    {"visual.blocks.{}.attn.k_norm", "v.blk.{}.attn_k_norm"},
    {"visual.blocks.{}.norm1", "v.blk.{}.ln1"},
    {"visual.blocks.{}.norm2", "v.blk.{}.ln2"},
    {"visual.blocks.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"},
    {"visual.blocks.{}.mlp.up_proj", "v.blk.{}.ffn_up"},
    {"visual.blocks.{}.mlp.down_proj", "v.blk.{}.ffn_down"},
    {"visual.downsample", "mm.patch_merger"},
    {"visual.merger.proj", "mm.model.fc"},
    {"visual.merger.gate_proj", "mm.gate"},
    {"visual.merger.up_proj", "mm.up"},
    {"visual.merger.down_proj", "mm.down"},
    {"visual.merger.post_projection_norm", "mm.post_norm"},
    {0},
};

const struct family glm4v_projector = {
    .name = "glm4v",
    .summary = "GLM-4.1V, GLM-4.5V and GLM-OCR (vision encoder)",
    .hf = FAMILY_NAMES({"Glm4vForConditionalGeneration"}, {"Glm4vMoeForConditionalGeneration"},
                       {"GlmOcrForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys,
             KEYS(PROJECTOR_TYPE("glm4v"), {.emit = emit_known_activation},
                  {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-5})},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .adjust = adjust_image_of_positions,
};
