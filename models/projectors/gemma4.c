/* Gemma 4: vision and audio encoders. conversion/gemma.py, Gemma4VisionAudioModel. */
#include "models/projectors/projector.h"

/* A linear layer that may limit its inputs and outputs. */
#define LINEAR(here, there)                                                                                            \
    {here ".linear.weight", there ".weight"}, {here ".weight", there ".weight", .forward_only = true},                 \
        {here ".input_min", there ".input_min"}, {here ".input_max", there ".input_max"},                              \
        {here ".output_min", there ".output_min"},                                                                     \
    {                                                                                                                  \
        here ".output_max", there ".output_max"                                                                        \
    }

/* A patch is a row of pixels, each with its colours; ggml needs planes. */
static const struct relation_row vision_tensors[] = {
    {"vision_tower.patch_embedder.input_proj.weight", "v.patch_embd.weight", "o (y x c) -> o c y x"},
    {"vision_tower.patch_embedder.position_embedding_table", "v.position_embd.weight"},
    {"vision_tower.std_bias", "v.std_bias"},
    {"vision_tower.std_scale", "v.std_scale"},
    {"embed_vision.embedding_projection", "mm.input_projection"},
    {"vision_tower.encoder.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"vision_tower.encoder.layers.{}.post_attention_layernorm", "v.blk.{}.attn_post_norm"},
    {"vision_tower.encoder.layers.{}.pre_feedforward_layernorm", "v.blk.{}.ln2"},
    {"vision_tower.encoder.layers.{}.post_feedforward_layernorm", "v.blk.{}.ffn_post_norm"},
    {"vision_tower.encoder.layers.{}.layer_scalar", "v.blk.{}.out_scale.weight"},
    {"vision_tower.encoder.layers.{}.self_attn.q_norm", "v.blk.{}.attn_q_norm"},
    {"vision_tower.encoder.layers.{}.self_attn.k_norm", "v.blk.{}.attn_k_norm"},
    LINEAR("vision_tower.encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"),
    LINEAR("vision_tower.encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"),
    LINEAR("vision_tower.encoder.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"),
    LINEAR("vision_tower.encoder.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"),
    LINEAR("vision_tower.encoder.layers.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"),
    LINEAR("vision_tower.encoder.layers.{}.mlp.up_proj", "v.blk.{}.ffn_up"),
    LINEAR("vision_tower.encoder.layers.{}.mlp.down_proj", "v.blk.{}.ffn_down"),
    {0},
};

/* The audio encoder, a conformer. */
static const struct relation_row audio_tensors[] = {
    {"audio_tower.subsample_conv_projection.layer0.conv", "a.conv1d.0"},
    {"audio_tower.subsample_conv_projection.layer0.norm", "a.conv1d.0.norm"},
    {"audio_tower.subsample_conv_projection.layer1.conv", "a.conv1d.1"},
    {"audio_tower.subsample_conv_projection.layer1.norm", "a.conv1d.1.norm"},
    {"audio_tower.subsample_conv_projection.input_proj_linear", "a.input_projection"},
    {"audio_tower.output_proj", "a.pre_encode.out"},
    {"embed_audio.embedding_projection", "mm.a.input_projection"},
    {"audio_tower.layers.{}.feed_forward1.pre_layer_norm", "a.blk.{}.ffn_norm"},
    {"audio_tower.layers.{}.feed_forward1.post_layer_norm", "a.blk.{}.ffn_post_norm"},
    LINEAR("audio_tower.layers.{}.feed_forward1.ffw_layer_1", "a.blk.{}.ffn_up"),
    LINEAR("audio_tower.layers.{}.feed_forward1.ffw_layer_2", "a.blk.{}.ffn_down"),
    {"audio_tower.layers.{}.feed_forward2.pre_layer_norm", "a.blk.{}.ffn_norm_1"},
    {"audio_tower.layers.{}.feed_forward2.post_layer_norm", "a.blk.{}.ffn_post_norm_1"},
    LINEAR("audio_tower.layers.{}.feed_forward2.ffw_layer_1", "a.blk.{}.ffn_up_1"),
    LINEAR("audio_tower.layers.{}.feed_forward2.ffw_layer_2", "a.blk.{}.ffn_down_1"),
    {"audio_tower.layers.{}.norm_pre_attn", "a.blk.{}.attn_pre_norm"},
    {"audio_tower.layers.{}.norm_post_attn", "a.blk.{}.attn_post_norm"},
    {"audio_tower.layers.{}.norm_out", "a.blk.{}.ln2"},
    LINEAR("audio_tower.layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"),
    LINEAR("audio_tower.layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"),
    LINEAR("audio_tower.layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"),
    LINEAR("audio_tower.layers.{}.self_attn.post", "a.blk.{}.attn_out"),
    {"audio_tower.layers.{}.self_attn.relative_k_proj", "a.blk.{}.attn_k_rel"},
    {"audio_tower.layers.{}.self_attn.per_dim_scale", "a.blk.{}.per_dim_scale.weight", .map = &softplus},
    {"audio_tower.layers.{}.lconv1d.pre_layer_norm", "a.blk.{}.conv_norm"},
    {"audio_tower.layers.{}.lconv1d.conv_norm", "a.blk.{}.norm_conv"},
    {"audio_tower.layers.{}.lconv1d.depthwise_conv1d.weight", "a.blk.{}.conv_dw.weight", "c 1 k -> c k"},
    LINEAR("audio_tower.layers.{}.lconv1d.linear_start", "a.blk.{}.conv_pw1"),
    LINEAR("audio_tower.layers.{}.lconv1d.linear_end", "a.blk.{}.conv_pw2"),
    {0},
};

enum { PATCH_SIZE = 16, AUDIO_LAYERS = 12 };

static bool hears(const struct model_builder *builder)
{
    return json_count_members(hparams_get(builder->model->hparams, "outer.audio_config")) > 0;
}

static void count_layers(struct model_builder *builder)
{
    const struct hparams *hparams = builder->model->hparams;
    bool is_silent = hears(builder) && hparams_find(hparams, AUDIO_BLOCK_COUNT) == NULL;
    tower_count_layers(&builder->dimensions, hparams);
    if (is_silent && builder->dimensions.n_layers < AUDIO_LAYERS)
        builder->dimensions.n_layers = AUDIO_LAYERS;
}

/* Sets sizes: defaults are those of transformers' Gemma4VisionConfig and Gemma4AudioConfig, which the converter reads
 * if transformers has these classes. image_size is a required key, but images have any size. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    if (!hparams_override(builder->model->hparams, "image_size", 224, error) ||
        !hparams_default(builder->model->hparams,
                         "{'hidden_size': 768, 'intermediate_size': 3072, 'num_hidden_layers': 16,"
                         " 'num_attention_heads': 12, 'patch_size': 16}",
                         error))
        return false;
    count_layers(builder);
    return true;
}

/* Sets image_mean and image_std: without a processor's numbers pixels stay between 0 and 1. */
static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    static const double zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    return emit_normalization_or(builder, zero, one, error);
}

static bool emit_hearing(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {
        FLAG("has_audio_encoder"),
        {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size"},
        {"audio.embedding_length", GGUF_U32, OR_DEFAULT, "audio.hidden_size", 1024},
        {"audio.feed_forward_length", GGUF_U32, OR_DEFAULT, "audio.hidden_size", 1024, 4},
        {"audio.block_count", GGUF_U32, OR_DEFAULT, AUDIO_BLOCK_COUNT, AUDIO_LAYERS},
        {"audio.attention.head_count", GGUF_U32, OR_DEFAULT, "audio.num_attention_heads", 8},
        {0},
    };
    return !hears(builder) || builder_emit(builder, rows, error);
}

static bool emit_sound(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {
        {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "gemma4a"},
        {"audio.num_mel_bins", GGUF_U32, OR_DEFAULT, "audio.input_feat_size", 128},
        {"audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "audio.layer_norm_eps", 1e-6},
        {0},
    };
    return !hears(builder) || builder_emit(builder, rows, error);
}

static const struct key_row keys[] = {
    {.emit = emit_normalization},
    {.emit = emit_hearing},
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "gemma4v"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {.emit = emit_sound},
    {0},
};

const struct family gemma4_projector = {
    .name = "gemma4v",
    .summary = "Gemma 4 (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Gemma4ForConditionalGeneration"}, {"EmbeddingGemma2Model", .since = 11549}),
    .tensors = {vision_tensors, audio_tensors},
    .keys = {tower_keys, vision_size_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower =
        TOWER(.config = {.vision = "vision_config", .audio = "audio_config"},
              .parts = TEXTS("model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio.",
                             "vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.")),
    .stored_types = STORED_TYPES({"a.conv1d.{}.weight", &f32_dtype}, {"a.input_projection.weight", &f32_dtype},
                                 {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .dimensions = {DIMENSIONS({"y", "patch_size", PATCH_SIZE}, {"x", "patch_size", PATCH_SIZE})},
    .adjust = adjust,
};
