/* Nemotron Nano VL: vision encoder, a RADIO, and the audio encoder of some models, a Parakeet. conversion/nemotron.py,
 * NemotronNanoV2VLModel. */
#include "models/projectors/projector.h"
#include "quant/views/positions.h"

#include <math.h>

/* Sizes of RADIO v2.5-h, which config.json lacks. */
enum { WIDTH = 1280, INNER_WIDTH = 5120, N_LAYERS = 32, N_HEADS = 16, MOST_SIDE = 4096 };

/* Resizes the positions of the largest image to the one size in use. */
static const struct view *resize(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const struct view *view)
{
    uint64_t side = dimensions != NULL ? dimensions_get(dimensions, "side") : 0;
    if (direction == BACKWARD || side == 0 || view->rank != 3 || view->shape[1] == side * side)
        return view;
    const struct view *resized = view_bilinear(arena, view, side);
    return resized != NULL ? resized : view;
}

static const struct elementwise resized = {
    .forward_text = "resized",
    .backward_text = "x",
    .apply = resize,
    .is_one_way = true,
    .exactness = "positions of other sizes do not come back",
};

#define RADIO "vision_model.radio_model.model."

static const struct relation_row vision_tensors[] = {
    {RADIO "patch_generator.cls_token.token", "v.class_embd"},
    {RADIO "patch_generator.embedder.weight", "v.patch_embd.weight", "o (c y x) -> o c y x"},
    {RADIO "patch_generator.pos_embed", "v.position_embd.weight", .map = &resized},
    {RADIO "patch_generator.pos_embed.weight", "v.position_embd.weight", .map = &resized, .forward_only = true},
    {RADIO "patch_generator.video_embedder.*", NULL},
    {RADIO "blocks.{}.norm1", "v.blk.{}.ln1"},
    {RADIO "blocks.{}.norm2", "v.blk.{}.ln2"},
    {RADIO "blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"},
    {RADIO "blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {RADIO "blocks.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {RADIO "blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"mlp1.{}", "mm.model.mlp.{}"},
    {0},
};

#define SOUND "sound_encoder.encoder."

static const struct relation_row audio_tensors[] = {
    {SOUND "feature_extractor.featurizer.fb", "a.mel_filters"},
    {SOUND "feature_extractor.featurizer.window", "a.window"},
    {SOUND "subsampling.layers.{}.weight", "a.conv1d.{}.weight"},
    {SOUND "subsampling.layers.{}.bias", "a.conv1d.{}.bias", "c -> 1 c 1 1"},
    {SOUND "subsampling.linear", "a.pre_encode.out"},
    {SOUND "layers.{}.norm_feed_forward1", "a.blk.{}.ffn_norm"},
    {SOUND "layers.{}.feed_forward1.linear1", "a.blk.{}.ffn_up"},
    {SOUND "layers.{}.feed_forward1.linear2", "a.blk.{}.ffn_down"},
    {SOUND "layers.{}.norm_feed_forward2", "a.blk.{}.ffn_norm_1"},
    {SOUND "layers.{}.feed_forward2.linear1", "a.blk.{}.ffn_up_1"},
    {SOUND "layers.{}.feed_forward2.linear2", "a.blk.{}.ffn_down_1"},
    {SOUND "layers.{}.norm_self_att", "a.blk.{}.ln1"},
    {SOUND "layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"},
    {SOUND "layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"},
    {SOUND "layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"},
    {SOUND "layers.{}.self_attn.o_proj", "a.blk.{}.attn_out"},
    {SOUND "layers.{}.self_attn.relative_k_proj", "a.blk.{}.linear_pos"},
    {SOUND "layers.{}.self_attn.bias_u", "a.blk.{}.pos_bias_u"},
    {SOUND "layers.{}.self_attn.bias_v", "a.blk.{}.pos_bias_v"},
    {SOUND "layers.{}.norm_conv", "a.blk.{}.norm_conv"},
    {SOUND "layers.{}.conv.pointwise_conv1.weight", "a.blk.{}.conv_pw1.weight", "o i 1 -> o i"},
    {SOUND "layers.{}.conv.pointwise_conv1.bias", "a.blk.{}.conv_pw1.bias", "c -> 1 c 1 1"},
    {SOUND "layers.{}.conv.depthwise_conv.weight", "a.blk.{}.conv_dw.weight", "c 1 k -> 1 1 c k"},
    {SOUND "layers.{}.conv.depthwise_conv.bias", "a.blk.{}.conv_dw.bias"},
    {SOUND "layers.{}.conv.norm", "a.blk.{}.conv_norm"},
    {SOUND "layers.{}.conv.norm.running_mean", "a.blk.{}.conv_norm_mean"},
    {SOUND "layers.{}.conv.norm.running_var", "a.blk.{}.conv_norm_var"},
    {SOUND "layers.{}.conv.norm.num_batches_tracked", NULL},
    {SOUND "layers.{}.conv.pointwise_conv2.weight", "a.blk.{}.conv_pw2.weight", "o i 1 -> o i"},
    {SOUND "layers.{}.conv.pointwise_conv2.bias", "a.blk.{}.conv_pw2.bias", "c -> 1 c 1 1"},
    {SOUND "layers.{}.norm_out", "a.blk.{}.ln2"},
    {"sound_projection.norm", "mm.a.norm_pre"},
    {"sound_projection.linear{}", "mm.a.mlp.{}"},
    {0},
};

/* Reports whether the positions form a square. */
static bool has_square(const struct tensor_set *set, struct error *error)
{
    static const char *const positions[] = {RADIO "patch_generator.pos_embed",
                                            RADIO "patch_generator.pos_embed.weight"};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        const struct tensor *tensor = tensor_set_find_text(set, positions[i]);
        if (tensor != NULL && bilinear_side(tensor->rank, tensor->shape) == 0)
            return error_set(error, "the number of positions of tensor '%s' is not a square", positions[i]);
    }
    return true;
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    double image;
    uint64_t patch;
    if (!builder_number(builder, "outer.force_image_size", 512, &image, error) ||
        !hparams_count(hparams, "patch_size", 1, MOST_SIDE, &patch, error))
        return false;
    if (!(image >= (double)patch && image <= (double)patch * MOST_SIDE))
        return error_set(error, "config.json: force_image_size is %g, with patches of %g", image, (double)patch);
    dimensions_set(&builder->dimensions, "y", patch);
    dimensions_set(&builder->dimensions, "x", patch);
    dimensions_set(&builder->dimensions, "side", (uint64_t)image / patch);
    builder->dimensions.n_layers = N_LAYERS;
    return has_square(builder->model->checkpoint->tensors, error) &&
           hparams_override(hparams, "hidden_size", WIDTH, error) &&
           hparams_override(hparams, "intermediate_size", INNER_WIDTH, error) &&
           hparams_override(hparams, "num_hidden_layers", N_LAYERS, error) &&
           hparams_override(hparams, "num_attention_heads", N_HEADS, error) &&
           hparams_override(hparams, "image_size", (uint64_t)image, error);
}

static bool hears(const struct model_builder *builder)
{
    return json_is(hparams_get(builder->model->hparams, "outer.sound_config"), JSON_OBJECT);
}

static bool emit_types(struct model_builder *builder, struct error *error)
{
    static const struct key_row both[] = {
        {"audio.num_mel_bins", GGUF_U32, REQUIRED, "audio.num_mel_bins"},
        {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
        {"audio.subsampling_factor", GGUF_U32, REQUIRED, "audio.subsampling_factor"},
        {"audio.conv_kernel_size", GGUF_U32, REQUIRED, "audio.conv_kernel_size"},
        {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "parakeet"},
        {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "nemotron_v2_vl"},
        {0},
    };
    static const struct key_row one[] = {PROJECTOR_TYPE("nemotron_v2_vl"), {0}};
    return builder_emit(builder, hears(builder) ? both : one, error);
}

static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
    const struct hparams *hparams = builder->model->hparams;
    if (hparams_get(hparams, "preprocessor.image_mean") != NULL || hparams_get(hparams, "preprocessor.image_std"))
        return builder_emit(builder, normalization_keys, error);
    set_normalization(builder, mean, deviation);
    return true;
}

static bool emit_hearing(struct model_builder *builder, struct error *error)
{
    return !hears(builder) || builder_emit(builder, audio_keys, error);
}

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double ratio;
    if (!builder_number(builder, "outer.downsample_ratio", 0.5, &ratio, error))
        return false;
    if (!(ratio > 0))
        return error_set(error, "config.json: downsample_ratio is not above 0");
    *ret_value = trunc(1.0 / ratio);
    return true;
}

static const struct key_row keys[] = {
    {.emit = emit_normalization},
    {.emit = emit_hearing},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    FLAG("use_gelu"),
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {0},
};

const struct family nemotron_vl_projector = {
    .name = "nemotron_v2_vl",
    .summary = "Nemotron Nano VL (vision and audio encoders)",
    .hf = FAMILY_NAMES({"NemotronH_Nano_VL_V2"}, {"RADIOModel"}),
    .tensors = {vision_tensors, audio_tensors},
    .keys = {KEYS({.emit = emit_types}), tower_keys, vision_size_keys, keys},
    .tower = TOWER(.config = {.vision = "vision_config", .audio = "sound_config"},
                   .parts = TEXTS(RADIO, "mlp1.", "sound_encoder.", "sound_projection.")),
    .stored_types = STORED_TYPES({"a.conv1d.{}.weight", &f32_dtype}, {"a.blk.{}.conv_pw1.weight", &f32_dtype},
                                 {"a.blk.{}.conv_pw2.weight", &f32_dtype}, {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .adjust = adjust,
};
