/* Pocket TTS: the encoder of a voice (Mimi's encoder), the network that makes vectors of sound, and the decoder of
 * these (Mimi's decoder). conversion/pockettts.py, PocketTTSMmprojModel. */
#include "models/projectors/projector.h"

#define FLOW "flow_lm.flow_net."
#define TIME FLOW "time_embed.{}."
#define RES  FLOW "res_blocks.{}."

/* Mimi's transformer before or after the convolutions. */
#define TRANSFORMER(here, there)                                                                                       \
    {here "norm1", there "ln1"}, {here "norm2", there "ln2"},                                                          \
        {here "self_attn.in_proj", there "attn_q, " there "attn_k, " there "attn_v", THIRDS},                          \
        {here "self_attn.out_proj", there "attn_out"}, {here "linear1", there "ffn_up"},                               \
        {here "linear2", there "ffn_down"}, {here "layer_scale_1.scale", there "ls1.weight"},                          \
    {                                                                                                                  \
        here "layer_scale_2.scale", there "ls2.weight"                                                                 \
    }

/* A stage of convolutions: a residual block, and a convolution that changes the rate. */
#define STAGE(here, residual, scale, there)                                                                            \
    {here residual ".block.1.conv", there "res_conv1"}, {here residual ".block.3.conv", there "res_conv2"},            \
    {                                                                                                                  \
        here scale, there "scale_conv"                                                                                 \
    }

#define IN  "mimi.encoder.model."
#define OUT "mimi.decoder.model."

static const struct relation_row tensors[] = {
    {"flow_lm.speaker_proj_weight", "a.speaker_proj.weight"},
    {"flow_lm.input_linear", "a.gen.input_linear"},
    {"flow_lm.emb_mean", "a.gen.emb_mean"},
    {"flow_lm.emb_std", "a.gen.emb_std"},
    {"flow_lm.out_eos", "a.gen.out_eos"},
    {FLOW "input_proj", "a.gen.flow.input_proj"},
    {FLOW "cond_embed", "a.gen.flow.cond_embd"},
    {FLOW "final_layer.linear", "a.gen.flow.final.proj"},
    {FLOW "final_layer.adaLN_modulation.1", "a.gen.flow.final.ada"},
    {TIME "freqs", "a.gen.flow.time.{}.freqs"},
    {TIME "mlp.0", "a.gen.flow.time.{}.up"},
    {TIME "mlp.2", "a.gen.flow.time.{}.down"},
    {TIME "mlp.3.alpha", "a.gen.flow.time.{}.norm"},
    {RES "in_ln", "a.gen.flow.blk.{}.norm"},
    {RES "mlp.0", "a.gen.flow.blk.{}.up"},
    {RES "mlp.2", "a.gen.flow.blk.{}.down"},
    {RES "adaLN_modulation.1", "a.gen.flow.blk.{}.ada"},
    {"mimi.downsample.conv.conv.weight", "a.downsample.conv.weight"},
    {"mimi.upsample.convtr.convtr.weight", "a.gen.wav.upsample.weight"},
    {"mimi.quantizer.output_proj.weight", "a.gen.wav.quant_out.weight", "o i 1 -> o i"},
    TRANSFORMER("mimi.encoder_transformer.transformer.layers.{}.", "a.blk.{}."),
    TRANSFORMER("mimi.decoder_transformer.transformer.layers.{}.", "a.gen.wav.tfm.blk.{}."),
    {IN "0.conv", "a.seanet.conv_in"},
    {IN "11.conv", "a.seanet.conv_out"},
    STAGE(IN, "1", "3.conv", "a.seanet.blk.0."),
    STAGE(IN, "4", "6.conv", "a.seanet.blk.1."),
    STAGE(IN, "7", "9.conv", "a.seanet.blk.2."),
    {OUT "0.conv", "a.gen.wav.seanet.conv_in"},
    {OUT "11.conv", "a.gen.wav.seanet.conv_out"},
    STAGE(OUT, "3", "2.convtr", "a.gen.wav.seanet.blk.0."),
    STAGE(OUT, "6", "5.convtr", "a.gen.wav.seanet.blk.1."),
    STAGE(OUT, "9", "8.convtr", "a.gen.wav.seanet.blk.2."),
    {"mimi.*", NULL},
    {FLOW "*", NULL},
    {0},
};

enum { N_LAYERS = 128 }; /* more than a part has */

static bool adjust(struct model_builder *builder, struct error *error)
{
    builder->dimensions.n_layers = N_LAYERS;
    return true;
}

static bool emit_variant(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    gguf_set_text(&builder->model->kvs, builder_key(builder, "gen.audio.model_variant"), model->checkpoint->model_name);
    return true;
}

static const struct key_row keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "pockettts_spkenc"},
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size"},
    {"audio.block_count", GGUF_U32, REQUIRED, "num_hidden_layers"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"audio.feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {"audio.num_mel_bins", GGUF_U32, ALWAYS, .value = 1},
    FLAG("has_gen_audio_encoder"),
    {"gen.audio.projector_type", GGUF_STRING, ALWAYS, .text = "pockettts_gen"},
    {"gen.audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size"},
    {"gen.audio.embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"gen.audio.feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"gen.audio.block_count", GGUF_U32, REQUIRED, "num_hidden_layers"},
    {"gen.audio.attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"gen.audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {.emit = emit_variant},
    {0},
};

#define CONVOLUTIONS(part)                                                                                             \
    {part "conv_in.weight", &f16_dtype}, {part "conv_out.weight", &f16_dtype},                                         \
        {part "blk.{}.res_conv1.weight", &f16_dtype}, {part "blk.{}.res_conv2.weight", &f16_dtype},                    \
    {                                                                                                                  \
        part "blk.{}.scale_conv.weight", &f16_dtype                                                                    \
    }

const struct family pockettts_projector = {
    .name = "pockettts_spkenc",
    .summary = "Pocket TTS (voice encoder, flow network and decoder)",
    .hf = FAMILY_NAMES({"PocketTTSModel"}),
    .tensors = {tensors},
    .keys = {tower_keys, keys},
    .tower = TOWER(.config = {.audio = "audio_config"},
                   .parts = TEXTS("mimi.", FLOW, "flow_lm.speaker_proj_weight", "flow_lm.input_linear.",
                                  "flow_lm.emb_mean", "flow_lm.emb_std", "flow_lm.out_eos.")),
    .stored_types = STORED_TYPES(CONVOLUTIONS("a.seanet."), CONVOLUTIONS("a.gen.wav.seanet."),
                                 {"a.downsample.conv.weight", &f16_dtype}, {"a.gen.wav.upsample.weight", &f16_dtype}),
    .dimensions = {qkv_dimensions},
    .adjust = adjust,
};
