/* The encoders of GLM, and CogVLM's. */
#include "models/projectors/projector.h"

#include <math.h>
#include <string.h>

/* GLM-4.1V, GLM-4.5V, GLM-OCR, GLM-5.3 Flash: vision encoders. conversion/qwen3vl.py, Glm4VVisionModel,
 * Glm5NextVisionModel. */

static const struct relation_row glm4v_tensors[] = {
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
    .tensors = {glm4v_tensors},
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
    .tensors = {glm4v_tensors},
    .keys = {tower_keys, vision_keys,
             KEYS(PROJECTOR_TYPE("glm5v"), {.emit = emit_known_activation},
                  {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-5},
                  {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "spatial_merge_size", 2},
                  {"vision.swiglu_clamp", GGUF_F32, IF_PRESENT, "swiglu_limit"}, {.emit = emit_pixels})},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .adjust = adjust_image_of_positions,
};

/* GLM-ASR: audio encoder, Whisper's. conversion/ultravox.py, GlmASRWhisperEncoderModel. */

/* Leaves out a matrix that only training uses, as the converter intends to, but fails. */
static const struct relation_row glm_asr_tensors[] = {
    {"audio_encoder.layer_norm", "mm.a.norm_pre"},
    {"audio_encoder.adapting.layer_norm", "mm.a.norm_pre", .forward_only = true},
    {"audio_encoder.adapting.0", "mm.a.mlp.1"},
    {"audio_encoder.adapting.2", "mm.a.mlp.2"},
    {"audio_encoder.audio_bos_eos_token.weight", "v.boi, v.eoi", "(even + odd) c -> (even c), (odd c)"},
    {"audio_encoder.proj.*", NULL},
    {"audio_encoder.adapting.proj.*", NULL},
    {0},
};

static const char *rename_encoder(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    return rename_whisper(arena, direction, name, "audio_encoder.whisper.");
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    if (tensor_set_find_text(builder->model->checkpoint->tensors, "audio_encoder.proj.weight") != NULL)
        checkpoint_note(builder->model->checkpoint, SUBJECT_PROJECTOR,
                        "audio_encoder.proj is left out, where the converter "
                        "fails");
    return true;
}

static const struct key_row keys[] = {
    WHISPER_KEYS("glma"),
    {"audio.projector.stack_factor", GGUF_U32, REQUIRED, "outer.merge_factor"},
    {0},
};

const struct family glm_asr_projector = {
    .name = "glma",
    .summary = "GLM-ASR (audio encoder)",
    .hf = FAMILY_NAMES({"GlmasrModel"}),
    .tensors = {glm_asr_tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, keys},
    .tower = TOWER(.config = {.audio = "whisper_config|audio_config"}, .parts = TEXTS("audio_encoder.")),
    .stored_types = whisper_stored_types,
    .rename = rename_encoder,
    .adjust = adjust,
};

/* CogVLM: vision encoder. conversion/cogvlm.py, CogVLMVisionModel. */

static const struct relation_row cogvlm_tensors[] = {
    {"^patch_embedding.cls_embedding", "v.class_embd"},
    {"^patch_embedding.proj", "v.patch_embd"},
    {"^patch_embedding.position_embedding", "v.position_embd"},
    {"^transformer.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"^transformer.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"},
    {"^transformer.layers.{}.attention.query_key_value", "v.blk.{}.attn_qkv"},
    {"^transformer.layers.{}.attention.dense", "v.blk.{}.attn_out"},
    {"^transformer.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"^transformer.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"^linear_proj.linear_proj", "mm.model.fc"},
    {"^linear_proj.norm1", "mm.post_fc_norm"},
    {"^linear_proj.gate_proj", "mm.gate"},
    {"^linear_proj.dense_h_to_4h", "mm.up"},
    {"^linear_proj.dense_4h_to_h", "mm.down"},
    {"^boi", "v.boi"},
    {"^eoi", "v.eoi"},
    {0},
};

const struct family cogvlm_projector = {
    .name = "cogvlm",
    .summary = "CogVLM (vision encoder)",
    .hf = FAMILY_NAMES({"CogVLMForCausalLM"}),
    .tensors = {cogvlm_tensors},
    .keys = {tower_keys, vision_keys,
             KEYS({"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
                  PROJECTOR_TYPE("cogvlm"))},
    .prefix = "model.vision.",
    .dropped_prefixes = TEXTS("model.vision."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision.")),
};
