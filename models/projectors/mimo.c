/* MiMo V2.5: vision encoder, and audio encoder with a codec's encoder from a folder of its own. conversion/mimo.py,
 * MiMoV2VisionAudioModel. */
#include "models/families/layers.h"
#include "models/family/tensors.h"
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <stdlib.h>

#define LOCAL "audio_encoder.input_local_transformer."

static const struct relation_row tensors[] = {
    {"visual.patch_embed.proj.weight", "v.patch_embd.weight, v.patch_embd.weight.1", TWO_FRAMES},
    {"visual.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"},
    {"visual.blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {"visual.blocks.{}.attn.sinks", "v.blk.{}.attn_sinks"},
    {"visual.blocks.{}.norm1", "v.blk.{}.ln1"},
    {"visual.blocks.{}.norm2", "v.blk.{}.ln2"},
    {"visual.blocks.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"},
    {"visual.blocks.{}.mlp.up_proj", "v.blk.{}.ffn_up"},
    {"visual.blocks.{}.mlp.down_proj", "v.blk.{}.ffn_down"},
    {"visual.merger.ln_q", "v.post_ln"},
    {"visual.merger.mlp.0", "mm.0"},
    {"visual.merger.mlp.2", "mm.2"},
    {"speech_embeddings.{book}.weight", "mm.a.code_embd.weight"},
    {LOCAL "norm", "mm.a.local_norm"},
    {LOCAL "layers.{}.self_attn.q_proj", "mm.a.local_blk.{}.attn_q"},
    {LOCAL "layers.{}.self_attn.k_proj", "mm.a.local_blk.{}.attn_k"},
    {LOCAL "layers.{}.self_attn.v_proj", "mm.a.local_blk.{}.attn_v"},
    {LOCAL "layers.{}.self_attn.o_proj", "mm.a.local_blk.{}.attn_out"},
    {LOCAL "layers.{}.mlp.gate_proj", "mm.a.local_blk.{}.ffn_gate"},
    {LOCAL "layers.{}.mlp.up_proj", "mm.a.local_blk.{}.ffn_up"},
    {LOCAL "layers.{}.mlp.down_proj", "mm.a.local_blk.{}.ffn_down"},
    {LOCAL "layers.{}.input_layernorm", "mm.a.local_blk.{}.ln1"},
    {LOCAL "layers.{}.post_attention_layernorm", "mm.a.local_blk.{}.ln2"},
    {"audio_encoder.projection.mlp.0.weight", "mm.a.mlp.1.weight"},
    {"audio_encoder.projection.mlp.2.weight", "mm.a.mlp.2.weight"},
    {"audio_tower.down_sample_layer.0", "a.downsample.conv"},
    {"audio_tower.down_sample_norm", "a.downsample.norm"},
    {"audio_tower.quantizer.*", NULL},
    {"decoder.*", NULL}, /* the codec's */
    {0},
};

static const char *rename_encoder(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    return rename_whisper(arena, direction, name, "encoder.");
}

enum { N_LAYERS = 128, MOST_CODEBOOKS = 256 }; /* the converter's count of a model with two towers */

static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t n_channels;
    if (!hparams_count(hparams, "outer.audio_config.audio_channels", 1, UINT32_MAX, &n_channels, error))
        return false;
    dimensions_set(&builder->dimensions, "book", n_channels);
    builder->dimensions.n_layers = N_LAYERS;
    return hparams_default(hparams, "{'image_size': 560, 'depth': 28}", error);
}

/* The codec's codebooks, padded with zeros to as many vectors as the largest has. */
struct codebooks {
    const struct view *views[MOST_CODEBOOKS];
    uint64_t n, most, dimension;
};

static bool is_codebook(const struct tensor *tensor)
{
    return tensor->rank == 2 && tensor->shape[0] > 0 && tensor->shape[1] > 0 && tensor->refusal == NULL &&
           tensor->dtype->block_elements == 1 && dtype_kernels(tensor->dtype).decode != NULL;
}

/* Returns the checkpoint of the codec; NULL: none. */
static const struct checkpoint *codec_of(const struct model_builder *builder)
{
    return checkpoint_base(builder->model->checkpoint, BASE_FOLDER);
}

static bool find_codebooks(const struct model_builder *builder, struct codebooks *books, struct error *error)
{
    const struct tensor_set *set = codec_of(builder)->tensors;
    struct arena *arena = builder->model->arena;
    for (; books->n < MOST_CODEBOOKS; books->n++) {
        const char *name = arena_printf(arena, "encoder.quantizer.vq.layers.%" PRIu64 "._codebook.embed", books->n);
        const struct tensor *tensor = tensor_set_find_text(set, name);
        if (tensor == NULL)
            break;
        if (!is_codebook(tensor) || (books->n > 0 && tensor->shape[1] != books->dimension))
            return error_set(error, "audio_tokenizer: tensor '%s' is not a codebook of the others' width", name);
        books->dimension = tensor->shape[1];
        books->most = books->most > tensor->shape[0] ? books->most : tensor->shape[0];
        books->views[books->n] = view_convert(arena, tensor_view(tensor, arena), &f32_dtype);
    }
    return books->n > 0 || error_set(error, "audio_tokenizer: the codebooks are missing");
}

static const struct view *fill_up(struct arena *arena, const struct view *book, uint64_t n)
{
    static const float zero = 0;
    const uint64_t one = 1, strides[] = {0, 0};
    if (book->shape[0] == n)
        return book;
    const uint64_t shape[] = {n - book->shape[0], book->shape[1]};
    const struct view *zeros = view_strided(arena, view_numbers(arena, 1, &one, &zero), 2, shape, 0, strides);
    return view_concatenate(arena, (const struct view *const[]){book, zeros}, 2, 0);
}

static void add_codebooks(struct model_builder *builder, const struct codebooks *books)
{
    struct arena *arena = builder->model->arena;
    const struct view *filled[MOST_CODEBOOKS];
    for (uint64_t i = 0; i < books->n; i++)
        filled[i] = fill_up(arena, books->views[i], books->most);
    tensor_set_add_view(builder->model->tensors, "a.rvq.codebook.weight", view_stack(arena, filled, books->n));
}

static int compare_offsets(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Adds the tensors of the codec in the order of its file, as the converter does. */
static bool add_encoder(struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = codec_of(builder)->tensors;
    struct tensor_set *ordered = tensor_set_new(builder->model->arena);
    for (size_t i = 0; i < set->n_tensors; i++)
        tensor_set_add(ordered, &set->tensors[i]);
    qsort(tensor_set_edit(ordered), ordered->n_tensors, sizeof *ordered->tensors, compare_offsets);
    return tensors_relate(builder, ordered, error);
}

static bool add_codec(struct model_builder *builder, struct error *error)
{
    struct codebooks books = {.n = 0};
    if (codec_of(builder) == NULL)
        return error_set(error, "the folder audio_tokenizer has no readable weights");
    if (!add_encoder(builder, error) || !find_codebooks(builder, &books, error))
        return false;
    add_codebooks(builder, &books);
    return true;
}

static bool emit_codebooks(struct model_builder *builder, struct error *error)
{
    struct codebooks books = {.n = 0};
    if (!find_codebooks(builder, &books, error))
        return false;
    struct layers sizes = {books.n, arena_array(builder->model->arena, books.n, sizeof *sizes.values)};
    for (uint64_t i = 0; i < books.n; i++)
        sizes.values[i] = (double)books.views[i]->shape[0];
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "audio.rvq.num_quantizers"), (uint32_t)books.n);
    return layers_set_i32(builder, "audio.rvq.codebook_size", &sizes, error);
}

/* Sets -1 for the codec's layers that attend to everything, 0 for those with a window: all but each swa_per_block-th.
 */
static bool emit_windows(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *sizes = hparams_get(hparams, "audio.encoder_attn_window_size");
    uint64_t n_layers, period = 1, size;
    if (!hparams_count(hparams, "audio.encoder_layers", 1, MAX_LISTED_LAYERS, &n_layers, error) ||
        (hparams_get(hparams, "audio.swa_per_block") != NULL &&
         !hparams_count(hparams, "audio.swa_per_block", 0, UINT32_MAX, &period, error)))
        return false;
    bool is_hybrid = json_bool(hparams_get(hparams, "audio.hybrid_attention"), false) && period > 1;
    struct layers layers = {n_layers, arena_array(builder->model->arena, n_layers, sizeof *layers.values)};
    for (uint64_t i = 0; i < n_layers; i++)
        layers.values[i] = is_hybrid && i % period < period - 1 ? 0 : -1;
    if (!layers_set_i32(builder, "audio.wa_pattern_mode", &layers, error))
        return false;
    if (!json_u64(json_first(sizes), &size) || size > UINT32_MAX)
        return error_set(error, "audio_tokenizer/config.json: encoder_attn_window_size does not begin with a number");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "audio.window_size"), (uint32_t)size);
    return true;
}

static const struct key_row hearing_keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "audio.d_model"},
    {"audio.feed_forward_length", GGUF_U32, REQUIRED, "audio.encoder_ffn_dim"},
    {"audio.block_count", GGUF_U32, REQUIRED, AUDIO_BLOCK_COUNT},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "audio.encoder_attention_heads"},
    {0},
};

static const struct key_row keys[] = {
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "mimovl"},
    FLAG("use_silu"),
    {"vision.attention.head_count_kv", GGUF_U32, OR_DEFAULT, "num_key_value_heads", 8},
    {"vision.spatial_merge_size", GGUF_U32, REQUIRED, "spatial_merge_size"},
    {"vision.window_size", GGUF_U32, REQUIRED, "visual_token_window_size"},
    {"vision.wa_pattern_mode", GGUF_U32, REQUIRED, "vit_window_attn_types"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-6},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "mimo_audio"},
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "audio.n_mels"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "audio.layer_norm_eps", 1e-5},
    {.emit = emit_codebooks},
    {.emit = emit_windows},
    {"audio.local_block_count", GGUF_U32, REQUIRED, "outer.audio_config.input_local_layers"},
    {"audio.local_group_size", GGUF_U32, REQUIRED, "outer.audio_config.group_size"},
    {0},
};

const struct family mimo_projector = {
    .name = "mimovl",
    .summary = "MiMo V2.5 (vision and audio encoders)",
    .hf = FAMILY_NAMES({"MiMoV2ForCausalLM"}),
    .tensors = {tensors, whisper_tensors},
    .keys = {tower_keys, vision_keys, hearing_keys, keys},
    .tower = TOWER(.config = {.vision = "vision_config", .audio_file = "audio_tokenizer/config.json"},
                   .parts = TEXTS("visual.", "speech_embeddings.", "audio_encoder.", "encoder.")),
    .stored_types = STORED_TYPES({"a.rvq.codebook.weight", &f32_dtype}, {"a.conv1d.{}.weight", &f32_dtype},
                                 {"a.downsample.conv.weight", &f32_dtype}, {"mm.a.code_embd.weight", &f32_dtype}),
    .rename = rename_encoder,
    .adjust = adjust,
    .add_extras = add_codec,
};
