/* The encoders of Gemma 3, 3n and 4. conversion/gemma.py. */
#include "models/projectors/projector.h"

#include <math.h>

/* Gemma 3: vision encoder, a SigLIP. conversion/gemma.py, Gemma3VisionModel. */

/* Sets the scale factor of smaller models, which pool images differently. */
static bool emit_scale_factor(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    uint64_t image, patch, n_tokens = 256;
    if (!hparams_count(hparams, "image_size", 1, UINT32_MAX, &image, error) ||
        !hparams_count(hparams, "patch_size", 1, UINT32_MAX, &patch, error))
        return false;
    if (hparams_get(hparams, "preprocessor.image_seq_length") != NULL &&
        !hparams_count(hparams, "preprocessor.image_seq_length", 1, UINT32_MAX, &n_tokens, error))
        return false;
    uint64_t factor = image / patch / (uint64_t)sqrt((double)n_tokens);
    if (factor > 0 && factor != 4)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "vision.projector.scale_factor"), (uint32_t)factor);
    return true;
}

static const struct key_row gemma3_keys[] = {
    PROJECTOR_TYPE("gemma3"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    FLAG("use_gelu"),
    {.emit = emit_scale_factor},
    {0},
};

const struct family gemma3_projector = {
    .name = "gemma3",
    .summary = "Gemma 3 (vision encoder)",
    .hf = FAMILY_NAMES({"Gemma3ForConditionalGeneration"}),
    .tensors = {TENSORS({"multi_modal_projector.mm_input_projection_weight", "mm.input_projection.weight"},
                        {"multi_modal_projector.mm_soft_emb_norm", "mm.soft_emb_norm", .map = &plus_one},
                        {"^head.*", NULL}),
                siglip_tensors},
    .keys = {tower_keys, vision_keys, gemma3_keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = SIGLIP_PREFIXES,
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("multi_modal_projector.", "vision_tower.", "model.multi_modal_projector.",
                                  "model.vision_tower.")),
    .stored_types = STORED_TYPES({"mm.input_projection.weight", &f16_dtype}, {"v.patch_embd.weight", &f32_dtype}),
};

/* Gemma 3n: a MobileNet as vision encoder, a conformer as audio encoder. conversion/gemma.py, Gemma3nVisionAudioModel.
 */

/* A block of the MobileNet: its stage and its number in the stage. */
#define BLOCK(name)                                                                                                    \
    {                                                                                                                  \
        "vision_tower.timm_model.blocks.{}.{}." name, "v.blk.{}.{}." name                                              \
    }

static const struct relation_row gemma3n_vision_tensors[] = {
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

static const struct relation_row gemma3n_audio_tensors[] = {
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
static bool gemma3n_adjust(struct model_builder *builder, struct error *error)
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

static bool gemma3n_emit_normalization(struct model_builder *builder, struct error *error)
{
    static const double mean[] = {0, 0, 0}, deviation[] = {1, 1, 1};
    set_normalization(builder, mean, deviation);
    return true;
}

static const struct key_row gemma3n_keys[] = {
    {.emit = gemma3n_emit_normalization},
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
    .tensors = {gemma3n_vision_tensors, gemma3n_audio_tensors},
    .keys = {tower_keys, vision_size_keys, gemma3n_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower =
        TOWER(.config = {.vision = "vision_config", .audio = "audio_config"},
              .parts = TEXTS("model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio.")),
    .stored_types = STORED_TYPES({"v.conv_stem.conv.weight", &f32_dtype}, {"v.conv_stem.conv.bias", &f32_dtype},
                                 {"a.pre_encode.out.weight", &f16_dtype}, {"a.conv1d.{}.weight", &f32_dtype},
                                 {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .adjust = gemma3n_adjust,
};

/* Gemma 4: vision and audio encoders. conversion/gemma.py, Gemma4VisionAudioModel. */

/* A linear layer that may limit its inputs and outputs. */
#define LINEAR(here, there)                                                                                            \
    {here ".linear.weight", there ".weight"}, {here ".weight", there ".weight", .forward_only = true},                 \
        {here ".input_min", there ".input_min"}, {here ".input_max", there ".input_max"},                              \
        {here ".output_min", there ".output_min"},                                                                     \
    {                                                                                                                  \
        here ".output_max", there ".output_max"                                                                        \
    }

/* A patch is a row of pixels, each with its colours; ggml needs planes. */
static const struct relation_row gemma4_vision_tensors[] = {
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
static const struct relation_row gemma4_audio_tensors[] = {
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
static bool gemma4_adjust(struct model_builder *builder, struct error *error)
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
static bool gemma4_emit_normalization(struct model_builder *builder, struct error *error)
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

static const struct key_row gemma4_keys[] = {
    {.emit = gemma4_emit_normalization},
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
    .tensors = {gemma4_vision_tensors, gemma4_audio_tensors},
    .keys = {tower_keys, vision_size_keys, gemma4_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower =
        TOWER(.config = {.vision = "vision_config", .audio = "audio_config"},
              .parts = TEXTS("model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio.",
                             "vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.")),
    .stored_types = STORED_TYPES({"a.conv1d.{}.weight", &f32_dtype}, {"a.input_projection.weight", &f32_dtype},
                                 {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .dimensions = {DIMENSIONS({"y", "patch_size", PATCH_SIZE}, {"x", "patch_size", PATCH_SIZE})},
    .adjust = gemma4_adjust,
};

/* Gemma 4 Unified: image and audio patches enter the text model without a tower of layers. conversion/gemma.py,
 * Gemma4UnifiedVisionAudioModel. */

/* A patch is a row of pixels, each with its colours; ggml needs planes. */
static const struct relation_row tensors[] = {
    {"vision_embedder.patch_dense.weight", "v.patch_embd.weight", "o (y x c) -> o (c y x)"},
    {"vision_embedder.patch_dense.bias", "v.patch_embd.bias"},
    {"vision_embedder.patch_ln1", "v.patch_norm.1", "(y x c) -> (c y x)"},
    {"vision_embedder.patch_ln2", "v.patch_norm.2"},
    {"vision_embedder.pos_norm", "v.patch_norm.3"},
    {"vision_embedder.pos_embedding", "v.position_embd.weight", "row column c -> column row c"},
    {"embed_vision.embedding_projection", "mm.input_projection"},
    {"embed_audio.embedding_projection", "mm.a.input_projection"},
    {0},
};

enum { IMAGE = 224, MOST_PIXELS = 1 << 16 };

static bool find_patch(const struct hparams *hparams, uint64_t *ret_patch, struct error *error)
{
    uint64_t patch, pooled;
    if (hparams_get(hparams, "model_patch_size") != NULL)
        return hparams_count(hparams, "model_patch_size", 1, MOST_PIXELS, ret_patch, error);
    if (!hparams_count(hparams, "patch_size", 1, MOST_PIXELS, &patch, error) ||
        !hparams_count(hparams, "pooling_kernel_size", 1, MOST_PIXELS, &pooled, error))
        return false;
    *ret_patch = patch * pooled;
    return true;
}

/* Sets the sizes of a tower of layers, which are required keys, to 0: the model has no such tower. */
static bool gemma4_unified_adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t width, patch;
    if (!hparams_count(hparams, "mm_embed_dim", 1, UINT32_MAX, &width, error) || !find_patch(hparams, &patch, error))
        return false;
    dimensions_set(&builder->dimensions, "y", patch);
    dimensions_set(&builder->dimensions, "x", patch);
    return hparams_override(hparams, "image_size", IMAGE, error) &&
           hparams_override(hparams, "hidden_size", width, error) &&
           hparams_override(hparams, "intermediate_size", 0, error) &&
           hparams_override(hparams, "num_layers", 0, error) &&
           hparams_override(hparams, "num_attention_heads", 0, error);
}

static const struct key_row gemma4_unified_keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "audio.audio_embed_dim"},
    {"audio.feed_forward_length", GGUF_U32, ALWAYS, .value = 0},
    {"audio.block_count", GGUF_U32, OR_DEFAULT, "audio.n_layers|audio.num_hidden_layers|audio.n_layer", 0},
    {"audio.attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "gemma4uv"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "gemma4ua"},
    {"audio.num_mel_bins", GGUF_U32, OR_DEFAULT, "audio.input_feat_size", 128},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "audio.layer_norm_eps", 1e-6},
    {0},
};

const struct family gemma4_unified_projector = {
    .name = "gemma4uv",
    .summary = "Gemma 4 Unified (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Gemma4UnifiedForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, gemma4_unified_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config", .audio = "audio_config"},
                   .parts = TEXTS("model.vision_embedder.", "model.embed_vision.", "model.embed_audio.")),
    .adjust = gemma4_unified_adjust,
};
