/* The encoders of LFM2. conversion/lfm2.py. */
#include "models/projectors/projector.h"

/* LFM2-VL: vision encoder, a SigLIP 2. conversion/lfm2.py, LFM2VLModel. */

enum { PATCH = 16, IMAGE = 256 };

/* A patch is a row of pixels, each with its colours; ggml needs planes. */
static const struct relation_row lfm2vl_tensors[] = {
    {"^embeddings.patch_embedding.weight", "v.patch_embd.weight", "o (y x c) -> o c y x"},
    {"multi_modal_projector.layer_norm", "mm.input_norm"},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {"^head.*", NULL},
    {0},
};

/* Sets image_size, a required key, although images have any size. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "image_size", IMAGE, error);
}

/* Counts the used layers: vision_feature_layer is the last one, counted from the end. */
static bool compute_used_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double n_layers, last;
    if (!builder_number(builder, VISION_BLOCK_COUNT, 0, &n_layers, error) ||
        !builder_number(builder, "outer.vision_feature_layer", -1, &last, error))
        return false;
    *ret_value = n_layers + last + 1;
    return true;
}

/* Names the preprocessor's `resample`, a number of PIL. */
static bool emit_resize_algorithm(struct model_builder *builder, struct error *error)
{
    static const char *const names[] = {NULL, "lanczos", "bilinear", "bicubic"};
    uint64_t number;
    const struct json *value = hparams_get(builder->model->hparams, "preprocessor.resample");
    if (value == NULL || json_is(value, JSON_NULL))
        return true;
    if (!json_u64(value, &number) || number == 0 || number >= sizeof names / sizeof *names)
        return error_set(error, "preprocessor_config.json: resample is not 1, 2 or 3");
    gguf_set_text(&builder->model->kvs, "clip.vision.image_resize_algo", names[number]);
    return true;
}

static const struct key_row lfm2vl_keys[] = {
    PROJECTOR_TYPE("lfm2"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, OR_DEFAULT, "outer.downsample_factor", 2},
    FLAG("use_gelu"),
    {"vision.block_count", GGUF_U32, .compute = compute_used_layers},
    {.emit = emit_resize_algorithm, .since = RESIZE_ALGORITHM},
    {0},
};

const struct family lfm2vl_projector = {
    .name = "lfm2",
    .summary = "LFM2-VL (vision encoder)",
    .hf = FAMILY_NAMES({"Lfm2VlForConditionalGeneration"}),
    .tensors = {lfm2vl_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, lfm2vl_keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = SIGLIP_PREFIXES,
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.multi_modal_projector.", "vision_tower.",
                                  "multi_modal_projector.")),
    .dimensions = {DIMENSIONS({"y", NULL, PATCH}, {"x", NULL, PATCH})},
    .adjust = adjust,
};

/* LFM2-Audio: audio encoder, a conformer, without the audio output. conversion/lfm2.py, LFM2AudioModel. */

static const struct relation_row lfm2_audio_tensors[] = {
    {"conformer.pre_encode.conv.{}.weight", "a.conv1d.{}.weight"},
    {"conformer.pre_encode.conv.{}.bias", "a.conv1d.{}.bias", "c -> c 1 1"},
    {"conformer.pre_encode.out", "a.pre_encode.out"},
    {"conformer.layers.{}.norm_feed_forward1", "a.blk.{}.ffn_norm"},
    {"conformer.layers.{}.feed_forward1.linear1", "a.blk.{}.ffn_up"},
    {"conformer.layers.{}.feed_forward1.linear2", "a.blk.{}.ffn_down"},
    {"conformer.layers.{}.norm_feed_forward2", "a.blk.{}.ffn_norm_1"},
    {"conformer.layers.{}.feed_forward2.linear1", "a.blk.{}.ffn_up_1"},
    {"conformer.layers.{}.feed_forward2.linear2", "a.blk.{}.ffn_down_1"},
    {"conformer.layers.{}.norm_self_att", "a.blk.{}.ln1"},
    {"conformer.layers.{}.self_attn.linear_q", "a.blk.{}.attn_q"},
    {"conformer.layers.{}.self_attn.linear_k", "a.blk.{}.attn_k"},
    {"conformer.layers.{}.self_attn.linear_v", "a.blk.{}.attn_v"},
    {"conformer.layers.{}.self_attn.linear_out", "a.blk.{}.attn_out"},
    {"conformer.layers.{}.self_attn.linear_pos", "a.blk.{}.linear_pos"},
    {"conformer.layers.{}.self_attn.pos_bias_u", "a.blk.{}.pos_bias_u"},
    {"conformer.layers.{}.self_attn.pos_bias_v", "a.blk.{}.pos_bias_v"},
    {"conformer.layers.{}.norm_conv", "a.blk.{}.norm_conv"},
    {"conformer.layers.{}.conv.pointwise_conv1.weight", "a.blk.{}.conv_pw1.weight", "o i 1 -> o i"},
    {"conformer.layers.{}.conv.pointwise_conv1.bias", "a.blk.{}.conv_pw1.bias"},
    {"conformer.layers.{}.conv.depthwise_conv.weight", "a.blk.{}.conv_dw.weight", "c 1 k -> c k"},
    {"conformer.layers.{}.conv.depthwise_conv.bias", "a.blk.{}.conv_dw.bias"},
    BATCH_NORM("conformer.layers.{}.conv.batch_norm"),
    {"conformer.layers.{}.conv.pointwise_conv2.weight", "a.blk.{}.conv_pw2.weight", "o i 1 -> o i"},
    {"conformer.layers.{}.conv.pointwise_conv2.bias", "a.blk.{}.conv_pw2.bias"},
    {"conformer.layers.{}.norm_out", "a.blk.{}.ln2"},
    {"audio_adapter.model.{}", "mm.a.mlp.{}"},
    {"audio_embedding.embedding", "a.position_embd"},
    {"audio_embedding.embedding_norm", "a.position_embd_norm"},
    {"audio_embedding.to_logits", "a.embd_to_logits"},
    {0},
};

static const struct key_row lfm2_audio_keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "d_model"},
    {"audio.feed_forward_length", GGUF_U32, REQUIRED, "d_model"},
    {"audio.block_count", GGUF_U32, REQUIRED, AUDIO_BLOCK_COUNT},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "n_heads"},
    PROJECTOR_TYPE("lfm2a"),
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "feat_in"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {0},
};

const struct family lfm2_audio_projector = {
    .name = "lfm2a",
    .summary = "LFM2-Audio (audio encoder)",
    .hf = FAMILY_NAMES({"Lfm2AudioForConditionalGeneration"}),
    .tensors = {lfm2_audio_tensors},
    .keys = {tower_keys, lfm2_audio_keys},
    .tower = TOWER(.config = {.audio = "encoder"}, .parts = TEXTS("conformer.", "audio_adapter.", "audio_embedding.")),
    .stored_types = STORED_TYPES({"a.conv1d.{}.weight", &f32_dtype}, {"a.blk.{}.conv_pw1.weight", &f32_dtype},
                                 {"a.blk.{}.conv_pw2.weight", &f32_dtype}, {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .arrange = fold_batch_norms,
};
