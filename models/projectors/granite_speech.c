/* Granite Speech: audio encoder, a conformer, and a Q-Former. conversion/granite.py, GraniteSpeechMmprojModel. */
#include "models/projectors/projector.h"

#include <inttypes.h>

static const struct family_name names[] = {
    {"GraniteSpeechForConditionalGeneration"}, {"GraniteSpeechPlusForConditionalGeneration"}, {0}};

/* The converter names the folded norm conv_norm_var, after another model's statistics. */
static const struct relation_row tensors[] = {
    {"encoder.input_linear", "a.input_projection"},
    {"encoder.out", "a.enc_ctc_out"},
    {"encoder.out_mid", "a.enc_ctc_out_mid"},
    {"encoder.layers.{}.ff1.pre_norm", "a.blk.{}.ffn_norm"},
    {"encoder.layers.{}.ff1.up_proj", "a.blk.{}.ffn_up"},
    {"encoder.layers.{}.ff1.down_proj", "a.blk.{}.ffn_down"},
    {"encoder.layers.{}.ff2.pre_norm", "a.blk.{}.ffn_norm_1"},
    {"encoder.layers.{}.ff2.up_proj", "a.blk.{}.ffn_up_1"},
    {"encoder.layers.{}.ff2.down_proj", "a.blk.{}.ffn_down_1"},
    {"encoder.layers.{}.attn.pre_norm", "a.blk.{}.ln1"},
    {"encoder.layers.{}.attn.to_q", "a.blk.{}.attn_q"},
    {"encoder.layers.{}.attn.to_kv", "a.blk.{}.attn_k, a.blk.{}.attn_v", "(k + v) ... -> k ..., v ..."},
    {"encoder.layers.{}.attn.to_out", "a.blk.{}.attn_out"},
    {"encoder.layers.{}.attn.rel_pos_emb.weight", "a.blk.{}.attn_rel_pos_emb"},
    {"encoder.layers.{}.conv.norm", "a.blk.{}.norm_conv"},
    {"encoder.layers.{}.conv.up_conv.weight", "a.blk.{}.conv_pw1.weight", "o i 1 -> o i"},
    {"encoder.layers.{}.conv.up_conv.bias", "a.blk.{}.conv_pw1.bias"},
    {"encoder.layers.{}.conv.depth_conv.conv.weight", "a.blk.{}.conv_dw.weight", "c 1 k -> c k"},
    BATCH_NORM("encoder.layers.{}.conv.batch_norm"),
    {"encoder.layers.{}.conv.down_conv.weight", "a.blk.{}.conv_pw2.weight", "o i 1 -> o i"},
    {"encoder.layers.{}.conv.down_conv.bias", "a.blk.{}.conv_pw2.bias"},
    {"encoder.layers.{}.post_norm", "a.blk.{}.ln2"},
    {"encoder.layers.{}.attn.attention_dists", NULL},
    {"encoder.attention_dists", NULL},
    {"projector.query", "a.proj_query"},
    {"projector.linear", "a.proj_linear"},
    {"projector.qformer.layernorm", "a.proj_norm"},
    {"projector.qformer.encoder.layer.{}.attention.attention.query", "a.proj_blk.{}.self_attn_q"},
    {"projector.qformer.encoder.layer.{}.attention.attention.key", "a.proj_blk.{}.self_attn_k"},
    {"projector.qformer.encoder.layer.{}.attention.attention.value", "a.proj_blk.{}.self_attn_v"},
    {"projector.qformer.encoder.layer.{}.attention.output.dense", "a.proj_blk.{}.self_attn_out"},
    {"projector.qformer.encoder.layer.{}.attention.output.LayerNorm", "a.proj_blk.{}.self_attn_norm"},
    {"projector.qformer.encoder.layer.{}.crossattention.attention.query", "a.proj_blk.{}.cross_attn_q"},
    {"projector.qformer.encoder.layer.{}.crossattention.attention.key", "a.proj_blk.{}.cross_attn_k"},
    {"projector.qformer.encoder.layer.{}.crossattention.attention.value", "a.proj_blk.{}.cross_attn_v"},
    {"projector.qformer.encoder.layer.{}.crossattention.output.dense", "a.proj_blk.{}.cross_attn_out"},
    {"projector.qformer.encoder.layer.{}.crossattention.output.LayerNorm", "a.proj_blk.{}.cross_attn_norm"},
    {"projector.qformer.encoder.layer.{}.intermediate_query.dense", "a.proj_blk.{}.ffn_up"},
    {"projector.qformer.encoder.layer.{}.output_query.dense", "a.proj_blk.{}.ffn_down"},
    {"projector.qformer.encoder.layer.{}.output_query.LayerNorm", "a.proj_blk.{}.ffn_norm"},
    {0},
};

static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t width, times;
    if (!hparams_count(builder->model->hparams, "hidden_dim", 0, UINT32_MAX, &width, error) ||
        !hparams_count(builder->model->hparams, "feedforward_mult", 0, UINT32_MAX, &times, error))
        return false;
    *ret_value = (double)width * (double)times;
    return true;
}

static bool is_plus(const struct model_builder *builder)
{
    return builder->hf == &names[1];
}

/* Granite Speech Plus: sets the layers whose results the projector gets in addition to the last layer's. */
static bool emit_feature_layers(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"audio.feature_layer", GGUF_U32, IF_PRESENT, "cat_hidden_layers"}, {0}};
    const struct hparams *hparams = builder->model->hparams;
    const struct json *layers = hparams_get(hparams, "cat_hidden_layers");
    uint64_t width, projected;
    if (!is_plus(builder) || json_count(layers) == 0)
        return true;
    if (!hparams_count(hparams, "hidden_dim", 0, UINT32_MAX, &width, error) ||
        !hparams_count(hparams, "outer.projector_config.encoder_hidden_size", 0, UINT32_MAX, &projected, error))
        return false;
    uint64_t joined = width * (json_count(layers) + 1);
    if (projected != joined)
        return error_set(error,
                         "config.json: the projector's encoder_hidden_size is %" PRIu64
                         ", but its input layers have a width of %" PRIu64,
                         projected, joined);
    return builder_emit(builder, rows, error);
}

static const struct key_row keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "hidden_dim"},
    {"audio.feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {"audio.block_count", GGUF_U32, REQUIRED, "num_layers"},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "num_heads"},
    PROJECTOR_TYPE("granite_speech"),
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "input_dim"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {"audio.chunk_size", GGUF_U32, REQUIRED, "context_size"},
    {"audio.conv_kernel_size", GGUF_U32, REQUIRED, "conv_kernel_size"},
    {"audio.max_pos_emb", GGUF_U32, REQUIRED, "max_pos_emb"},
    {"audio.projector.window_size", GGUF_U32, REQUIRED, "outer.window_size"},
    {"audio.projector.downsample_rate", GGUF_U32, REQUIRED, "outer.downsample_rate"},
    {"audio.projector.head_count", GGUF_U32, OR_DEFAULT, "outer.projector_config.num_attention_heads", 12},
    {.emit = emit_feature_layers},
    {0},
};

const struct family granite_speech_projector = {
    .name = "granite_speech",
    .summary = "Granite Speech (audio encoder)",
    .hf = names,
    .tensors = {tensors},
    .keys = {tower_keys, keys},
    .tower = TOWER(.config = {.audio = "encoder_config"}, .parts = TEXTS("encoder.", "projector.")),
    .stored_types = STORED_TYPES({"a.blk.{}.conv_pw1.weight", &f32_dtype}, {"a.blk.{}.conv_pw2.weight", &f32_dtype},
                                 {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .note =
        "the norms of convolutions have the name that llama.cpp reads, conv_norm; the converter writes conv_norm_var",
    .arrange = fold_batch_norms,
};
