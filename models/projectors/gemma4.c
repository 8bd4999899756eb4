/* Gemma 4: what sees and what hears. conversion/gemma.py, Gemma4VisionAudioModel. */
#include "models/projectors/projector.h"

static const struct family_name names[] = {{"Gemma4ForConditionalGeneration"}, {0}};

/* A linear layer that may keep what goes in and comes out within limits. */
#define LINEAR(here, there)                                                                                            \
    {here ".linear.weight", there ".weight"}, {here ".weight", there ".weight", .forward_only = true},                 \
        {here ".input_min", there ".input_min"}, {here ".input_max", there ".input_max"},                              \
        {here ".output_min", there ".output_min"},                                                                     \
    {                                                                                                                  \
        here ".output_max", there ".output_max"                                                                        \
    }

/* A patch is a row of pixels with their colours, where ggml wants planes. */
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

/* A conformer. */
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

static const struct stored_type stored_types[] = {
    {"a.conv1d.{}.weight", &f32_dtype},
    {"a.input_projection.weight", &f32_dtype},
    {"a.blk.{}.conv_dw.weight", &f32_dtype},
    {0},
};

static void add_facts(struct facts *facts, const struct hparams *hparams)
{
    struct error unused;
    uint64_t patch;
    if (!hparams_count(hparams, "patch_size", 1, 1 << 16, &patch, &unused))
        return;
    facts_set(facts, "y", patch);
    facts_set(facts, "x", patch);
}

/* Its images are of any size; the key must be there. */
static bool adjust(struct draft *draft, struct error *error)
{
    return hparams_override(draft->model->hparams, "image_size", 224, error);
}

static bool hears(const struct draft *draft)
{
    return json_count(hparams_get(draft->model->hparams, "outer.audio_config")) > 0;
}

static bool emit_hearing(struct draft *draft, struct error *error)
{
    static const struct key_row rows[] = {
        FLAG("has_audio_encoder"),
        {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size"},
        {"audio.embedding_length", GGUF_U32, REQUIRED, "audio.hidden_size"},
        {"audio.feed_forward_length", GGUF_U32, REQUIRED, "audio.hidden_size", .times = 4},
        {"audio.block_count", GGUF_U32, REQUIRED, AUDIO_BLOCK_COUNT},
        {"audio.attention.head_count", GGUF_U32, REQUIRED, "audio.num_attention_heads"},
        {0},
    };
    return !hears(draft) || draft_emit(draft, rows, error);
}

static bool emit_sound(struct draft *draft, struct error *error)
{
    static const struct key_row rows[] = {
        {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "gemma4a"},
        {"audio.num_mel_bins", GGUF_U32, OR_DEFAULT, "audio.input_feat_size", 128},
        {"audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "audio.layer_norm_eps", 1e-6},
        {0},
    };
    return !hears(draft) || draft_emit(draft, rows, error);
}

static const struct key_row keys[] = {
    {.emit = emit_hearing},
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "gemma4v"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {.emit = emit_sound},
    {0},
};

static const char *const parts[] = {"model.vision_tower.", "model.audio_tower.", "model.embed_vision.",
                                    "model.embed_audio.", NULL};
static const char *const dropped_prefixes[] = {"model.", NULL};
static const struct tower tower = {
    .config = {.vision = "vision_config", .audio = "audio_config"}, .parts = parts, .stored_types = stored_types};

const struct family gemma4_projector = {
    .name = "gemma4v",
    .architecture = "clip",
    .summary = "the vision and audio towers of Gemma 4",
    .hf = names,
    .tensors = {vision_tensors, audio_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
    .add_facts = add_facts,
    .adjust = adjust,
};
