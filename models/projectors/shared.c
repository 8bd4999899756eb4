/* Keys that projectors share. conversion/base.py, MmprojModel.set_gguf_parameters. */
#include "base/text.h"
#include "models/families/layers.h"
#include "models/projectors/projector.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_CHANNELS = 64 };

static bool all_are_whole(const struct json *array)
{
    int64_t whole;
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item))
        if (!json_i64(item, &whole))
            return false;
    return true;
}

bool set_channels(struct model_builder *builder, const char *key, const char *from, struct error *error)
{
    const struct json *array = hparams_get(builder->model->hparams, from);
    struct layers channels = {.n = json_count(array)};
    if (!json_is(array, JSON_ARRAY) || channels.n == 0 || channels.n > MAX_CHANNELS)
        return error_set(error, "neither preprocessor_config.json nor processor_config.json has the %s of the channels",
                         from + strlen("preprocessor."));
    channels.values = arena_array(builder->model->arena, channels.n, sizeof *channels.values);
    layers_fill(&channels, array);
    layers_set(builder, key, GGUF_F32, &channels);
    if (all_are_whole(array))
        checkpoint_note(builder->model->checkpoint, SUBJECT_PROJECTOR,
                        "%s are numbers of F32, as llama.cpp reads them, where"
                        " the converter writes those of I32",
                        from + strlen("preprocessor."));
    return true;
}

static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    return set_channels(builder, "vision.image_mean", "preprocessor.image_mean", error) &&
           set_channels(builder, "vision.image_std", "preprocessor.image_std", error);
}

void set_normalization(struct model_builder *builder, const double mean[3], const double deviation[3])
{
    double values[2][3];
    memcpy(values[0], mean, sizeof values[0]);
    memcpy(values[1], deviation, sizeof values[1]);
    layers_set(builder, "vision.image_mean", GGUF_F32, &(struct layers){3, values[0]});
    layers_set(builder, "vision.image_std", GGUF_F32, &(struct layers){3, values[1]});
}

bool emit_normalization_or(struct model_builder *builder, const double mean[3], const double deviation[3],
                           struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    bool has_mean = hparams_get(hparams, "preprocessor.image_mean") != NULL;
    bool has_deviation = hparams_get(hparams, "preprocessor.image_std") != NULL;
    set_normalization(builder, mean, deviation);
    return (!has_mean || set_channels(builder, "vision.image_mean", "preprocessor.image_mean", error)) &&
           (!has_deviation || set_channels(builder, "vision.image_std", "preprocessor.image_std", error));
}

const double clip_mean[3] = {0.48145466, 0.4578275, 0.40821073};
const double clip_deviation[3] = {0.26862954, 0.26130258, 0.27577711};

bool emit_normalization_or_clip(struct model_builder *builder, struct error *error)
{
    return emit_normalization_or(builder, clip_mean, clip_deviation, error);
}

static bool emit_sizes(struct model_builder *builder, struct error *error)
{
    return builder_emit(builder, vision_size_keys, error);
}

const struct key_row tower_keys[] = {FILE_TYPE_KEY, {0}};

const struct key_row vision_size_keys[] = {
    FLAG("has_vision_encoder"),
    {"vision.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd|text.dim"},
    {"vision.image_size", GGUF_U32, REQUIRED, "image_size"},
    {"vision.patch_size", GGUF_U32, REQUIRED, "patch_size"},
    {"vision.embedding_length", GGUF_U32, REQUIRED, "hidden_size|width|vt_hidden_size"},
    {"vision.feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size|vt_intermediate_size"},
    {"vision.block_count", GGUF_U32, REQUIRED, VISION_BLOCK_COUNT},
    {"vision.attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads|num_heads|heads|vt_num_attention_heads"},
    {0},
};

const struct key_row normalization_keys[] = {{.emit = emit_normalization}, {0}};

const struct key_row vision_keys[] = {{.emit = emit_sizes}, {.emit = emit_normalization}, {0}};

const struct key_row audio_keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "audio.hidden_size|audio.d_model"},
    {"audio.feed_forward_length", GGUF_U32, REQUIRED, "audio.intermediate_size|audio.encoder_ffn_dim"},
    {"audio.block_count", GGUF_U32, REQUIRED, AUDIO_BLOCK_COUNT},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "audio.num_attention_heads|audio.encoder_attention_heads"},
    {0},
};

bool projector_scale_factor(const struct model_builder *builder, const char *ratio, double *ret_value,
                            struct error *error)
{
    double value;
    if (!builder_number(builder, ratio, 0, &value, error))
        return false;
    if (!(value > 0))
        return error_set(error, "config.json: %s is missing, or not above 0",
                         text_starts_with(ratio, "outer.") ? ratio + strlen("outer.") : ratio);
    *ret_value = trunc(1.0 / value);
    return true;
}

bool projector_take_break(struct model_builder *builder, const char *embeddings, uint64_t id, struct error *error)
{
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, embeddings);
    if (tensor == NULL || tensor->rank != 2 || id == 0)
        return true;
    if (id >= tensor->shape[0])
        return error_set(error, "the token [IMG_BREAK] is %" PRIu64 ", but there are %" PRIu64 " embeddings", id,
                         tensor->shape[0]);
    dimensions_set_index(&builder->dimensions, "token", tensor->shape[0], id);
    return true;
}

bool projector_inner_width(struct model_builder *builder, double ratio, struct error *error)
{
    double size;
    if (!builder_number(builder, "hidden_size|width", 0, &size, error) ||
        !builder_number(builder, "mlp_ratio", ratio, &ratio, error))
        return false;
    double inner = rint(size * ratio);
    if (!(inner >= 0 && inner <= UINT32_MAX))
        return error_set(error, "config.json: hidden_size times mlp_ratio is out of range");
    return hparams_override(builder->model->hparams, "intermediate_size", (uint64_t)inner, error);
}

bool emit_activation(struct model_builder *builder, struct error *error)
{
    static const struct key_row gelu[] = {FLAG("use_gelu"), {0}}, silu[] = {FLAG("use_silu"), {0}};
    const struct json *function = hparams_get(builder->model->hparams, "hidden_act");
    if (json_string_is(function, "gelu"))
        return builder_emit(builder, gelu, error);
    if (json_string_is(function, "silu"))
        return builder_emit(builder, silu, error);
    return error_set(error, "config.json: hidden_act of the vision tower is neither gelu nor silu");
}

bool emit_known_activation(struct model_builder *builder, struct error *error)
{
    const struct json *function = hparams_get(builder->model->hparams, "hidden_act");
    bool is_known = json_string_is(function, "gelu") || json_string_is(function, "silu");
    return !is_known || emit_activation(builder, error);
}

bool adjust_image_of_positions(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    double n_positions, patch;
    if (hparams_get(hparams, "image_size") != NULL)
        return true;
    if (!builder_number(builder, "num_position_embeddings", 2304, &n_positions, error) ||
        !builder_number(builder, "patch_size", 16, &patch, error))
        return false;
    double size = sqrt(n_positions) * patch;
    if (!(size >= 0 && size <= UINT32_MAX))
        return error_set(error, "config.json: num_position_embeddings is %.17g", n_positions);
    return hparams_override(hparams, "image_size", (uint64_t)size, error);
}

void tower_count_layers(struct dimensions *dimensions, const struct hparams *hparams)
{
    static const char *const keys[] = {VISION_BLOCK_COUNT, AUDIO_BLOCK_COUNT};
    struct error error;
    uint64_t n_layers;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hparams_count(hparams, keys[i], 1, UINT32_MAX, &n_layers, &error) && n_layers > dimensions->n_layers)
            dimensions->n_layers = n_layers;
}

/* SigLIP's names in transformers, shared by many towers, after the prefix of the tower. */

const struct relation_row siglip_tensors[] = {
    {"^embeddings.patch_embedding", "v.patch_embd"},
    {"^embeddings.position_embedding", "v.position_embd"},
    {"^encoder.layers.{}.layer_norm1", "v.blk.{}.ln1"},
    {"^encoder.layers.{}.layer_norm2", "v.blk.{}.ln2"},
    {"^encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"^encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"^encoder.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"^encoder.layers.{}.self_attn.out_proj", "v.blk.{}.attn_out"},
    {"^encoder.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"^encoder.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"^post_layernorm", "v.post_ln"},
    {0},
};

/* Batch norms of conformers: a GGUF has a factor and a summand, which the converter computes from the statistics. */

static const float epsilon = 1e-5F; /* of torch.nn.BatchNorm1d; no configuration changes it */

static void square_root(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = sqrtf(values[i]);
}

struct norm {
    struct arena *arena;
    const struct dtype *dtype; /* torch computes in it */
    const struct view *weight, *bias, *mean, *var;
};

static const struct view *combine(const struct norm *norm, const struct view *left, enum combination op,
                                  const struct view *right)
{
    const struct sharing sharing = {.rows = 1, .columns = 1};
    return view_convert(norm->arena, view_combine(norm->arena, left, op, right, &sharing), norm->dtype);
}

/* Returns weight / sqrt(var + epsilon), with every step rounded. */
static const struct view *factor_of(const struct norm *norm)
{
    const struct view *sum = view_combine_number(norm->arena, norm->var, ADD, epsilon);
    sum = view_convert(norm->arena, sum, norm->dtype);
    return combine(norm, norm->weight, DIVIDE, view_map(norm->arena, sum, norm->dtype, square_root));
}

/* Adds the factor and summand of a norm whose statistics are four parts of a vector. */
static void add_folded(struct tensor_set *set, struct arena *arena, const struct view *statistics, const char *name)
{
    uint64_t n = statistics->n_elements / 4;
    const struct norm norm = {
        .arena = arena,
        .dtype = statistics->dtype == &f16_dtype ? &f16_dtype : &f32_dtype,
        .weight = view_slice(arena, statistics, 0, 0, n, 1),
        .bias = view_slice(arena, statistics, 0, n, n, 1),
        .mean = view_slice(arena, statistics, 0, 2 * n, n, 1),
        .var = view_slice(arena, statistics, 0, 3 * n, n, 1),
    };
    const struct view *factor = factor_of(&norm), *shift = combine(&norm, norm.mean, MULTIPLY, factor);
    tensor_set_add_view(set, arena_printf(arena, "%s.weight", name), factor);
    tensor_set_add_view(set, arena_printf(arena, "%s.bias", name), combine(&norm, norm.bias, SUBTRACT, shift));
}

void fold_batch_norms(struct model_builder *builder)
{
    static const char pattern[] = "a.blk.{}.conv_norm.statistics", last[] = ".statistics";
    struct gguf_model *model = builder->model;
    const struct tensor_set *set = model->tensors;
    model->tensors = tensor_set_new(model->arena);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        uint64_t numbers[PATTERN_NUMBERS];
        const struct view *view = tensor_view(tensor, model->arena);
        if (!pattern_match(pattern, tensor->name, tensor->name_length, numbers)) {
            tensor_set_add_view(model->tensors, tensor->name, view);
            continue;
        }
        size_t length = tensor->name_length - strlen(last);
        add_folded(model->tensors, model->arena, view, arena_printf(model->arena, "%.*s", (int)length, tensor->name));
    }
}
