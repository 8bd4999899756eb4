/* Gemma 4 Unified: image and audio patches enter the text model without a tower of layers. conversion/gemma.py,
 * Gemma4UnifiedVisionAudioModel. */
#include "models/projectors/projector.h"

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
static bool adjust(struct model_builder *builder, struct error *error)
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

static const struct key_row keys[] = {
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
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config", .audio = "audio_config"},
                   .parts = TEXTS("model.vision_embedder.", "model.embed_vision.", "model.embed_audio.")),
    .adjust = adjust,
};
