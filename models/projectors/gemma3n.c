/* Gemma 3n: a MobileNet as vision encoder, a conformer as audio encoder. conversion/gemma.py, Gemma3nVisionAudioModel.
 */
#include "models/projectors/projector.h"

/* A block of the MobileNet: its stage and its number in the stage. */
#define BLOCK(name)                                                                                                    \
    {                                                                                                                  \
        "vision_tower.timm_model.blocks.{}.{}." name, "v.blk.{}.{}." name                                              \
    }

static const struct relation_row vision_tensors[] = {
    {"vision_tower.timm_model.conv_stem.conv.weight", "v.conv_stem.conv.weight"},
    {"vision_tower.timm_model.conv_stem.conv.bias", "v.conv_stem.conv.bias", "c -> 1 c 1 1"},
    {"vision_tower.timm_model.conv_stem.bn", "v.conv_stem.bn"},
    BLOCK("conv_exp"),
    BLOCK("bn1"),
    BLOCK("conv_pwl"),
    BLOCK("bn2"),
    BLOCK("dw_start.conv"),
    BLOCK("dw_start.bn"),
    BLOCK("dw_mid.conv"),
    BLOCK("dw_mid.bn"),
    BLOCK("pw_exp.conv"),
    BLOCK("pw_exp.bn"),
    BLOCK("pw_proj.conv"),
    BLOCK("pw_proj.bn"),
    BLOCK("layer_scale.gamma"),
    BLOCK("norm"),
    BLOCK("attn.query.proj"),
    BLOCK("attn.key.proj"),
    BLOCK("attn.key.down_conv"),
    BLOCK("attn.key.norm"),
    BLOCK("attn.value.proj"),
    BLOCK("attn.value.down_conv"),
    BLOCK("attn.value.norm"),
    BLOCK("attn.output.proj"),
    {"vision_tower.timm_model.msfa.ffn.pw_exp.conv", "v.msfa.ffn.pw_exp.conv"},
    {"vision_tower.timm_model.msfa.ffn.pw_exp.bn", "v.msfa.ffn.pw_exp.bn"},
    {"vision_tower.timm_model.msfa.ffn.pw_proj.conv", "v.msfa.ffn.pw_proj.conv"},
    {"vision_tower.timm_model.msfa.ffn.pw_proj.bn", "v.msfa.ffn.pw_proj.bn"},
    {"vision_tower.timm_model.msfa.norm", "v.msfa.norm"},
    {"embed_vision.embedding", "mm.embedding"},
    {"embed_vision.hard_embedding_norm", "mm.hard_emb_norm"},
    {"embed_vision.soft_embedding_norm", "mm.soft_emb_norm"},
    {"embed_vision.embedding_projection", "mm.input_projection"},
    {0},
};

static const struct relation_row audio_tensors[] = {
    {"audio_tower.subsample_conv_projection.conv_{}.conv", "a.conv1d.{}"},
    {"audio_tower.subsample_conv_projection.conv_{}.norm", "a.conv1d.{}.norm"},
    {"audio_tower.subsample_conv_projection.input_proj_linear", "a.pre_encode.out"},
    {"audio_tower.conformer.{}.ffw_layer_start.pre_layer_norm", "a.blk.{}.ffn_norm"},
    {"audio_tower.conformer.{}.ffw_layer_start.post_layer_norm", "a.blk.{}.ffn_post_norm"},
    {"audio_tower.conformer.{}.ffw_layer_start.post_layer_scale", "a.blk.{}.ffn_scale"},
    {"audio_tower.conformer.{}.ffw_layer_start.ffw_layer_1", "a.blk.{}.ffn_up"},
    {"audio_tower.conformer.{}.ffw_layer_start.ffw_layer_2", "a.blk.{}.ffn_down"},
    {"audio_tower.conformer.{}.ffw_layer_end.pre_layer_norm", "a.blk.{}.ffn_norm_1"},
    {"audio_tower.conformer.{}.ffw_layer_end.post_layer_norm", "a.blk.{}.ffn_post_norm_1"},
    {"audio_tower.conformer.{}.ffw_layer_end.post_layer_scale", "a.blk.{}.ffn_scale_1"},
    {"audio_tower.conformer.{}.ffw_layer_end.ffw_layer_1", "a.blk.{}.ffn_up_1"},
    {"audio_tower.conformer.{}.ffw_layer_end.ffw_layer_2", "a.blk.{}.ffn_down_1"},
    {"audio_tower.conformer.{}.attention.pre_attn_norm", "a.blk.{}.ln1"},
    {"audio_tower.conformer.{}.attention.attn.q_proj", "a.blk.{}.attn_q"},
    {"audio_tower.conformer.{}.attention.attn.k_proj", "a.blk.{}.attn_k"},
    {"audio_tower.conformer.{}.attention.attn.v_proj", "a.blk.{}.attn_v"},
    {"audio_tower.conformer.{}.attention.attn.per_dim_scale", "a.blk.{}.per_dim_scale"},
    {"audio_tower.conformer.{}.attention.attn.relative_position_embedding.pos_proj", "a.blk.{}.linear_pos"},
    {"audio_tower.conformer.{}.attention.post", "a.blk.{}.attn_out"},
    {"audio_tower.conformer.{}.attention.post_norm", "a.blk.{}.ln2"},
    {"audio_tower.conformer.{}.lconv1d.pre_layer_norm", "a.blk.{}.conv_norm"},
    {"audio_tower.conformer.{}.lconv1d.linear_start", "a.blk.{}.conv_pw1"},
    {"audio_tower.conformer.{}.lconv1d.depthwise_conv1d", "a.blk.{}.conv_dw"},
    {"audio_tower.conformer.{}.lconv1d.conv_norm", "a.blk.{}.norm_conv"},
    {"audio_tower.conformer.{}.lconv1d.linear_end", "a.blk.{}.conv_pw2"},
    {"audio_tower.conformer.{}.norm", "a.blk.{}.layer_pre_norm"},
    {"embed_audio.embedding", "mm.a.embedding"},
    {"embed_audio.hard_embedding_norm", "mm.a.hard_emb_norm"},
    {"embed_audio.soft_embedding_norm", "mm.a.soft_emb_norm"},
    {"embed_audio.embedding_projection", "mm.a.input_projection"},
    {0},
};

static void note_norms(const struct checkpoint *checkpoint)
{
    if (tensor_set_find_text(checkpoint->tensors, "model.audio_tower.subsample_conv_projection.conv_0.norm.weight"))
        checkpoint_note(checkpoint, SUBJECT_PROJECTOR,
                        "the norms after the first audio convolutions get the names that Gemma 4's have; the "
                        "converter fails here");
}

enum { N_LAYERS = 128 }; /* the converter's count for a model with two towers */

/* Sets the sizes of a transformer, which are required keys, although the vision encoder is none. A preprocessor whose
 * image_seq_length is 256 makes images 16 tokens wide; the converter divides by 256. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    double image, n_tokens, inner;
    if (!builder_number(builder, "preprocessor.size.height", 768, &image, error) ||
        !builder_number(builder, "preprocessor.image_seq_length", 256, &n_tokens, error) ||
        !builder_number(builder, "intermediate_size", 2048, &inner, error))
        return false;
    if (!(image >= 0 && image <= UINT32_MAX && n_tokens >= 1 && inner >= 0 && inner <= UINT32_MAX / 4))
        return error_set(error, "the size of images, their image_seq_length or intermediate_size is out of range");
    builder->dimensions.n_layers = N_LAYERS;
    note_norms(builder->model->checkpoint);
    return hparams_override(hparams, "image_size", (uint64_t)image, error) &&
           hparams_override(hparams, "patch_size", (uint64_t)(image / n_tokens), error) &&
           hparams_override(hparams, "intermediate_size", (uint64_t)inner * 4, error) &&
           hparams_override(hparams, "n_layers", N_LAYERS, error) &&
           hparams_default(hparams, "{'num_attention_heads': 8}", error);
}

static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    static const double mean[] = {0, 0, 0}, deviation[] = {1, 1, 1};
    set_normalization(builder, mean, deviation);
    return true;
}

static const struct key_row keys[] = {
    {.emit = emit_normalization},
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "audio.hidden_size"},
    {"audio.feed_forward_length", GGUF_U32, OR_DEFAULT, "audio.intermediate_size", 6144},
    {"audio.block_count", GGUF_U32, REQUIRED, "audio.conf_num_hidden_layers"},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "audio.conf_num_attention_heads"},
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "gemma3nv"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "gemma3na"},
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "audio.input_feat_size"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {0},
};

const struct family gemma3n_projector = {
    .name = "gemma3nv",
    .summary = "Gemma 3n (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Gemma3nForConditionalGeneration"}),
    .tensors = {vision_tensors, audio_tensors},
    .keys = {tower_keys, vision_size_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower =
        TOWER(.config = {.vision = "vision_config", .audio = "audio_config"},
              .parts = TEXTS("model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio.")),
    .stored_types = STORED_TYPES({"v.conv_stem.conv.weight", &f32_dtype}, {"v.conv_stem.conv.bias", &f32_dtype},
                                 {"a.pre_encode.out.weight", &f16_dtype}, {"a.conv1d.{}.weight", &f32_dtype},
                                 {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .adjust = adjust,
};
