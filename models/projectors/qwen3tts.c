/* Qwen3-TTS: the encoder of a speaker's voice, the predictor of the other codes of a frame, and the decoder of
 * speech_tokenizer/, which makes sound of codes. conversion/qwen3tts.py, Qwen3TTSSpeakerEncoderModel. */
#include "models/projectors/projector.h"
#include "quant/arithmetic/torch_functions.h"
#include "quant/views/unpack.h"

#include <inttypes.h>
#include <string.h>

enum { N_BOOKS = 15 }; /* codes of a frame after the first */

#define SPEAKER   "speaker_encoder."
#define PREDICTOR "talker.code_predictor."
#define LAYER     PREDICTOR "model.layers.{}."
#define STAGE     SPEAKER "blocks.{}."

static const struct relation_row tensors[] = {
    {SPEAKER "blocks.0.conv", "a.conv1d.0"},
    {SPEAKER "mfa.conv", "a.conv_out"},
    {SPEAKER "asp.tdnn.conv", "a.asp_tdnn"},
    {SPEAKER "asp.conv", "a.asp_attn"},
    {SPEAKER "fc", "mm.a.fc"},
    {STAGE "tdnn1.conv", "a.blk.{}.conv_pw1"},
    {STAGE "tdnn2.conv", "a.blk.{}.conv_pw2"},
    {STAGE "se_block.conv1", "a.blk.{}.se_conv1"},
    {STAGE "se_block.conv2", "a.blk.{}.se_conv2"},
    {STAGE "res2net_block.blocks.{}.conv", "a.blk.{}.res2.{}"},
    {"talker.model.codec_embedding", "a.gen.code.out_embd"},
    {PREDICTOR "small_to_mtp_projection", "a.gen.code.proj_in"},
    {PREDICTOR "model.norm", "a.gen.code.output_norm"},
    {PREDICTOR "lm_head.{book}.weight", "a.gen.code.head.weight"},
    {PREDICTOR "model.codec_embedding.{book}.weight", "a.gen.code.embd.weight"},
    {LAYER "input_layernorm", "a.gen.code.blk.{}.ln1"},
    {LAYER "post_attention_layernorm", "a.gen.code.blk.{}.ln2"},
    {LAYER "self_attn.q_proj", "a.gen.code.blk.{}.attn_q"},
    {LAYER "self_attn.q_norm", "a.gen.code.blk.{}.attn_q_norm"},
    {LAYER "self_attn.k_proj", "a.gen.code.blk.{}.attn_k"},
    {LAYER "self_attn.k_norm", "a.gen.code.blk.{}.attn_k_norm"},
    {LAYER "self_attn.v_proj", "a.gen.code.blk.{}.attn_v"},
    {LAYER "self_attn.o_proj", "a.gen.code.blk.{}.attn_out"},
    {LAYER "mlp.gate_proj", "a.gen.code.blk.{}.ffn_gate"},
    {LAYER "mlp.up_proj", "a.gen.code.blk.{}.ffn_up"},
    {LAYER "mlp.down_proj", "a.gen.code.blk.{}.ffn_down"},
    {0},
};

/* What becomes of a tensor of the decoder. */
enum change { AS_IS, WITHOUT_LAST_AXIS, EXP, INVERSE_OF_EXP };

struct piece {
    const char *here, *there; /* in speech_tokenizer/ and in the GGUF, each with the numbers of its side */
    enum change change;
};

/* In the order of the file. */
static const struct piece first_pieces[] = {
    {"quantizer.rvq_first.input_proj.weight", "quant.first.in_proj.weight", WITHOUT_LAST_AXIS},
    {"quantizer.rvq_first.output_proj.weight", "quant.first.out_proj.weight", WITHOUT_LAST_AXIS},
    {0},
};

static const struct piece rest_pieces[] = {
    {"quantizer.rvq_rest.input_proj.weight", "quant.rest.in_proj.weight", WITHOUT_LAST_AXIS},
    {"quantizer.rvq_rest.output_proj.weight", "quant.rest.out_proj.weight", WITHOUT_LAST_AXIS},
    {0},
};

static const struct piece transformer_pieces[] = {
    {"pre_conv.conv.weight", "pre_conv.weight"},
    {"pre_conv.conv.bias", "pre_conv.bias"},
    {"pre_transformer.input_proj.weight", "tfm.in_proj.weight"},
    {"pre_transformer.input_proj.bias", "tfm.in_proj.bias"},
    {"pre_transformer.output_proj.weight", "tfm.out_proj.weight"},
    {"pre_transformer.output_proj.bias", "tfm.out_proj.bias"},
    {"pre_transformer.norm.weight", "tfm.output_norm.weight"},
    {0},
};

#define TURN "pre_transformer.layers.{}."
static const struct piece layer_pieces[] = {
    {TURN "input_layernorm.weight", "tfm.blk.{}.ln1.weight"},
    {TURN "self_attn.q_proj.weight", "tfm.blk.{}.attn_q.weight"},
    {TURN "self_attn.k_proj.weight", "tfm.blk.{}.attn_k.weight"},
    {TURN "self_attn.v_proj.weight", "tfm.blk.{}.attn_v.weight"},
    {TURN "self_attn.o_proj.weight", "tfm.blk.{}.attn_out.weight"},
    {TURN "self_attn_layer_scale.scale", "tfm.blk.{}.ls1.weight"},
    {TURN "post_attention_layernorm.weight", "tfm.blk.{}.ln2.weight"},
    {TURN "mlp.gate_proj.weight", "tfm.blk.{}.ffn_gate.weight"},
    {TURN "mlp.up_proj.weight", "tfm.blk.{}.ffn_up.weight"},
    {TURN "mlp.down_proj.weight", "tfm.blk.{}.ffn_down.weight"},
    {TURN "mlp_layer_scale.scale", "tfm.blk.{}.ls2.weight"},
    {0},
};

#define UP "upsample.{}."
static const struct piece upsample_pieces[] = {
    {UP "0.conv.weight", "up.blk.{}.conv.weight"},
    {UP "0.conv.bias", "up.blk.{}.conv.bias"},
    {UP "1.dwconv.conv.weight", "up.blk.{}.dwconv.weight"},
    {UP "1.dwconv.conv.bias", "up.blk.{}.dwconv.bias"},
    {UP "1.norm.weight", "up.blk.{}.norm.weight"},
    {UP "1.norm.bias", "up.blk.{}.norm.bias"},
    {UP "1.pwconv1.weight", "up.blk.{}.pw1.weight"},
    {UP "1.pwconv1.bias", "up.blk.{}.pw1.bias"},
    {UP "1.pwconv2.weight", "up.blk.{}.pw2.weight"},
    {UP "1.pwconv2.bias", "up.blk.{}.pw2.bias"},
    {UP "1.gamma", "up.blk.{}.gamma"},
    {0},
};

static const struct piece entry_pieces[] = {
    {"decoder.0.conv.weight", "dac.entry.weight"}, {"decoder.0.conv.bias", "dac.entry.bias"}, {0}};

#define BLOCK "decoder.{}.block."
static const struct piece block_pieces[] = {
    {BLOCK "0.alpha", "dac.blk.{}.snake.alpha", EXP},
    {BLOCK "0.beta", "dac.blk.{}.snake.beta", INVERSE_OF_EXP},
    {BLOCK "1.conv.weight", "dac.blk.{}.conv.weight"},
    {BLOCK "1.conv.bias", "dac.blk.{}.conv.bias"},
    {0},
};

static const struct piece unit_pieces[] = {
    {BLOCK "{}.act1.alpha", "dac.blk.{}.res.{}.act1.alpha", EXP},
    {BLOCK "{}.act1.beta", "dac.blk.{}.res.{}.act1.beta", INVERSE_OF_EXP},
    {BLOCK "{}.conv1.conv.weight", "dac.blk.{}.res.{}.conv1.weight"},
    {BLOCK "{}.conv1.conv.bias", "dac.blk.{}.res.{}.conv1.bias"},
    {BLOCK "{}.act2.alpha", "dac.blk.{}.res.{}.act2.alpha", EXP},
    {BLOCK "{}.act2.beta", "dac.blk.{}.res.{}.act2.beta", INVERSE_OF_EXP},
    {BLOCK "{}.conv2.conv.weight", "dac.blk.{}.res.{}.conv2.weight"},
    {BLOCK "{}.conv2.conv.bias", "dac.blk.{}.res.{}.conv2.bias"},
    {0},
};

static const struct piece exit_pieces[] = {
    {"decoder.5.alpha", "dac.post_snake.alpha", EXP},
    {"decoder.5.beta", "dac.post_snake.beta", INVERSE_OF_EXP},
    {"decoder.6.conv.weight", "dac.post_conv.weight"},
    {"decoder.6.conv.bias", "dac.post_conv.bias"},
    {0},
};

static void exponentials(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = exponential(values[i]);
}

static void inverses_of_exp(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1.0f / (exponential(values[i]) + 1e-9f);
}

static void at_least(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] < 1e-5f ? 1e-5f : values[i];
}

/* Returns a tensor of the decoder, of F32. */
static const struct view *find_view(struct model_builder *builder, const char *name, struct error *error)
{
    const struct checkpoint *codec = checkpoint_base(builder->model->checkpoint, BASE_FOLDER);
    const struct tensor *tensor = tensor_set_find_text(codec->tensors, name);
    if (tensor == NULL)
        error_set(error, "speech_tokenizer: tensor '%s' is missing", name);
    else if (tensor->refusal != NULL || tensor->dtype != &f32_dtype)
        error_set(error, "speech_tokenizer: tensor '%s' is not of F32: other types are not supported", name);
    else
        return tensor_view(tensor, builder->model->arena);
    return NULL;
}

static const struct view *changed(struct arena *arena, const struct view *view, enum change change)
{
    if (change == WITHOUT_LAST_AXIS)
        return view->rank > 0 && view->shape[view->rank - 1] == 1
                   ? view_reshape(arena, view, view->rank - 1, view->shape)
                   : view;
    if (change == AS_IS)
        return view;
    return view_map(arena, view, &f32_dtype, change == EXP ? exponentials : inverses_of_exp);
}

/* Adds pieces with these numbers. */
static bool add_pieces(struct model_builder *builder, const struct piece *pieces, const uint64_t here[PATTERN_NUMBERS],
                       const uint64_t there[PATTERN_NUMBERS], struct error *error)
{
    struct arena *arena = builder->model->arena;
    for (const struct piece *piece = pieces; piece->here != NULL; piece++) {
        const char *name = arena_printf(arena, "decoder.%s", pattern_fill(arena, piece->here, here, ""));
        const struct view *view = find_view(builder, name, error);
        if (view == NULL)
            return false;
        tensor_set_add_view(builder->model->tensors,
                            arena_printf(arena, "a.gen.wav.%s", pattern_fill(arena, piece->there, there, "")),
                            changed(arena, view, piece->change));
    }
    return true;
}

static bool add_numbered(struct model_builder *builder, const struct piece *pieces, uint64_t n, struct error *error)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t numbers[PATTERN_NUMBERS] = {i};
        if (!add_pieces(builder, pieces, numbers, numbers, error))
            return false;
    }
    return true;
}

/* Block 0 is the tensor decoder.1; its three units follow two others. */
static bool add_blocks(struct model_builder *builder, uint64_t n, struct error *error)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t here[PATTERN_NUMBERS] = {i + 1}, there[PATTERN_NUMBERS] = {i};
        if (!add_pieces(builder, block_pieces, here, there, error))
            return false;
        for (there[1] = 0; there[1] < 3; there[1]++) {
            here[1] = there[1] + 2;
            if (!add_pieces(builder, unit_pieces, here, there, error))
                return false;
        }
    }
    return true;
}

/* Returns a codebook: the sum of the vectors of each code over their number. */
static const struct view *find_book(struct model_builder *builder, const char *which, uint64_t number,
                                    struct error *error)
{
    struct arena *arena = builder->model->arena;
    const char *prefix =
        arena_printf(arena, "decoder.quantizer.rvq_%s.vq.layers.%" PRIu64 "._codebook.", which, number);
    const struct view *sum = find_view(builder, arena_printf(arena, "%sembedding_sum", prefix), error),
                      *usage = sum != NULL ? find_view(builder, arena_printf(arena, "%scluster_usage", prefix), error)
                                           : NULL;
    if (usage == NULL)
        return NULL;
    if (sum->rank != 2 || usage->rank != 1 || sum->shape[0] != usage->shape[0] || sum->shape[1] == 0) {
        error_set(error, "speech_tokenizer: '%sembedding_sum' and '%scluster_usage' do not fit each other", prefix,
                  prefix);
        return NULL;
    }
    const struct sharing row = {.rows = 1, .columns = sum->shape[1]};
    usage = view_reshape(arena, view_map(arena, usage, &f32_dtype, at_least), 2, (uint64_t[]){usage->shape[0], 1});
    return view_combine(arena, sum, DIVIDE, usage, &row);
}

static bool add_books(struct model_builder *builder, const char *which, uint64_t n, struct error *error)
{
    struct arena *arena = builder->model->arena;
    const struct view *books[N_BOOKS];
    for (uint64_t i = 0; i < n; i++) {
        books[i] = find_book(builder, which, i, error);
        if (books[i] == NULL)
            return false;
        if (memcmp(books[i]->shape, books[0]->shape, 2 * sizeof *books[0]->shape) != 0)
            return error_set(error, "speech_tokenizer: the codebooks differ in their sizes");
    }
    tensor_set_add_view(builder->model->tensors, arena_printf(arena, "a.gen.wav.quant.%s.codebook.weight", which),
                        n == 1 ? books[0] : view_stack(arena, books, n));
    return true;
}

/* Gets the number of a list's elements in the decoder's configuration. */
static bool count_list(const struct model_builder *builder, const char *key, uint64_t *ret_count, struct error *error)
{
    const struct json *list = hparams_get(builder->model->hparams, key);
    *ret_count = json_count(list);
    return json_is(list, JSON_ARRAY) ||
           error_set(error, "speech_tokenizer/config.json: %s is not a list", key + strlen("audio."));
}

#define CODEC "audio.decoder_config."

static bool add_decoder(struct model_builder *builder, struct error *error)
{
    static const uint64_t none[PATTERN_NUMBERS];
    uint64_t n_layers, n_upsamples, n_blocks;
    if (checkpoint_base(builder->model->checkpoint, BASE_FOLDER) == NULL)
        return error_set(error, "the folder speech_tokenizer has no readable weights");
    return hparams_count(builder->model->hparams, CODEC "num_hidden_layers", 0, UINT32_MAX, &n_layers, error) &&
           count_list(builder, CODEC "upsampling_ratios", &n_upsamples, error) &&
           count_list(builder, CODEC "upsample_rates", &n_blocks, error) &&
           add_pieces(builder, first_pieces, none, none, error) && add_books(builder, "first", 1, error) &&
           add_pieces(builder, rest_pieces, none, none, error) && add_books(builder, "rest", N_BOOKS, error) &&
           add_pieces(builder, transformer_pieces, none, none, error) &&
           add_numbered(builder, layer_pieces, n_layers, error) &&
           add_numbered(builder, upsample_pieces, n_upsamples, error) &&
           add_pieces(builder, entry_pieces, none, none, error) && add_blocks(builder, n_blocks, error) &&
           add_pieces(builder, exit_pieces, none, none, error);
}

enum { N_LAYERS = 128 }; /* more than the predictor has */

static bool adjust(struct model_builder *builder, struct error *error)
{
    dimensions_set(&builder->dimensions, "book", N_BOOKS);
    builder->dimensions.n_layers = N_LAYERS;
    return true;
}

#define PREDICTOR_KEY "code_predictor_config."

static const struct key_row keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "qwen3tts_spkenc"},
    {"audio.projection_dim", GGUF_U32, REQUIRED, "hidden_size"},
    {"audio.num_mel_bins", GGUF_U32, ALWAYS, .value = 128},
    {"audio.block_count", GGUF_U32, ALWAYS, .value = 3},
    {"audio.embedding_length", GGUF_U32, ALWAYS, .value = 1536},
    {"audio.attention.head_count", GGUF_U32, ALWAYS, .value = 1},
    {"audio.feed_forward_length", GGUF_U32, ALWAYS, .value = 1536},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    FLAG("has_gen_audio_encoder"),
    {"gen.audio.projector_type", GGUF_STRING, ALWAYS, .text = "qwen3tts_gen"},
    {"gen.audio.projection_dim", GGUF_U32, REQUIRED, "hidden_size"},
    {"gen.audio.embedding_length", GGUF_U32, REQUIRED, PREDICTOR_KEY "hidden_size"},
    {"gen.audio.feed_forward_length", GGUF_U32, REQUIRED, PREDICTOR_KEY "intermediate_size"},
    {"gen.audio.block_count", GGUF_U32, REQUIRED, PREDICTOR_KEY "num_hidden_layers"},
    {"gen.audio.attention.head_count", GGUF_U32, REQUIRED, PREDICTOR_KEY "num_attention_heads"},
    {"gen.audio.attention.head_count_kv", GGUF_U32, REQUIRED, PREDICTOR_KEY "num_key_value_heads"},
    {"gen.audio.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, PREDICTOR_KEY "rms_norm_eps"},
    {0},
};

/* talker_config, which both the models with and without an encoder of voices have, describes the predictor. */
const struct family qwen3tts_projector = {
    .name = "qwen3tts_spkenc",
    .summary = "Qwen3-TTS (voice encoder, code predictor and decoder)",
    .hf = FAMILY_NAMES({"Qwen3TTSForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, keys},
    .tower = TOWER(.config = {.vision = "talker_config", .audio_file = "speech_tokenizer/config.json"},
                   .parts = TEXTS(SPEAKER, PREDICTOR, "talker.model.codec_embedding.")),
    .stored_types =
        STORED_TYPES({"a.gen.wav.pre_conv.weight", &f16_dtype}, {"a.gen.wav.dac.entry.weight", &f16_dtype},
                     {"a.gen.wav.dac.post_conv.weight", &f16_dtype}, {"a.gen.wav.up.blk.{}.dwconv.weight", &f16_dtype},
                     {"a.gen.wav.dac.blk.{}.res.{}.conv1.weight", &f16_dtype},
                     {"a.gen.wav.dac.blk.{}.res.{}.conv2.weight", &f16_dtype},
                     {"a.gen.wav.up.blk.{}.conv.weight", &f32_dtype}, {"a.gen.wav.dac.blk.{}.conv.weight", &f32_dtype},
                     {"a.gen.code.blk.{}.ffn_down.weight", &f32_dtype, .since = TTS_WIDE_FEED_FORWARD}),
    .adjust = adjust,
    .add_extras = add_decoder,
};
