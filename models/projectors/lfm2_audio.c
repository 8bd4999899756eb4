/* LFM2-Audio: what hears, a conformer. What speaks is left out. conversion/lfm2.py, LFM2AudioModel. */
#include "models/projectors/projector.h"

static const struct family_name names[] = {{"Lfm2AudioForConditionalGeneration"}, {0}};

static const struct relation_row tensors[] = {
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

static const struct stored_type stored_types[] = {
    {"a.conv1d.{}.weight", &f32_dtype},
    {"a.blk.{}.conv_pw1.weight", &f32_dtype},
    {"a.blk.{}.conv_pw2.weight", &f32_dtype},
    {"a.blk.{}.conv_dw.weight", &f32_dtype},
    {0},
};

static const struct key_row keys[] = {
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

static const char *const parts[] = {"conformer.", "audio_adapter.", "audio_embedding.", NULL};
static const struct tower tower = {.config = {.audio = "encoder"}, .parts = parts, .stored_types = stored_types};

const struct family lfm2_audio_projector = {
    .name = "lfm2a",
    .architecture = "clip",
    .summary = "the audio tower of LFM2-Audio",
    .hf = names,
    .tensors = {tensors},
    .keys = {tower_keys, keys},
    .tower = &tower,
    .arrange = fold_batch_norms,
};
