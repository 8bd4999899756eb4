/* GLM-4.1V, GLM-4.5V, GLM-OCR, GLM-5.3 Flash: vision encoders. conversion/qwen3vl.py, Glm4VVisionModel,
 * Glm5NextVisionModel. */
#include "models/projectors/projector.h"

#include <math.h>
#include <string.h>

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

/* Computes a number of pixels from the preprocessor's number of tokens; NAN: it has none. */
static bool compute_pixels(const struct model_builder *builder, const char *from, double *ret_value,
                           struct error *error)
{
    double patch, merge, tokens;
    if (!builder_number(builder, "preprocessor.patch_size", 14, &patch, error) ||
        !builder_number(builder, "preprocessor.merge_size", 2, &merge, error) ||
        !builder_number(builder, from, NAN, &tokens, error))
        return false;
    *ret_value = trunc(tokens) * trunc(patch) * trunc(merge) * trunc(patch) * trunc(merge);
    return true;
}

static bool emit_pixels(struct model_builder *builder, struct error *error)
{
    static const char *const rows[][2] = {{"vision.image_min_pixels", "preprocessor.min_image_tokens"},
                                          {"vision.image_max_pixels", "preprocessor.max_image_tokens"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double pixels;
        if (!compute_pixels(builder, rows[i][1], &pixels, error))
            return false;
        if (isnan(pixels))
            continue;
        if (!(pixels >= 0 && pixels <= UINT32_MAX))
            return error_set(error, "preprocessor_config.json: %s is %g pixels, which is not a number of 32 bits",
                             rows[i][1] + strlen("preprocessor."), pixels);
        gguf_set_u32(&builder->model->kvs, builder_key(builder, rows[i][0]), (uint32_t)pixels);
    }
    return true;
}

const struct family glm5v_projector = {
    .name = "glm5v",
    .summary = "GLM-5.3 Flash (vision encoder)",
    .since = 11292,
    .hf = FAMILY_NAMES({"Glm5NextForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys,
             KEYS(PROJECTOR_TYPE("glm5v"), {.emit = emit_known_activation},
                  {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-5},
                  {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "spatial_merge_size", 2},
                  {"vision.swiglu_clamp", GGUF_F32, IF_PRESENT, "swiglu_limit"}, {.emit = emit_pixels})},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .adjust = adjust_image_of_positions,
};
