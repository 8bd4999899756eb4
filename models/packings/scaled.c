/* Elements of eight bits and their scales: FP8 as DeepSeek, Qwen, Mistral and others publish it, compressed-tensors'
 * float-, int- and naive-quantized and mxfp8, ModelOpt's FP8, fbgemm's.
 *
 * A weight W is W [..., rows, columns] in FP8 or I8 and W_scale_inv or W_scale: one number, one for each row or column,
 * or one for each block. The scale is a factor, whatever its name. Integers may have a zero point in I8, with the shape
 * of the scales. Mistral's own format has W.weight and W.qscale_weight. DeepSeek V4 has B.weight and B.scale, exponents
 * of 2, which the converter writes as Q8_0; their blocks are of 128 x 128 where the configuration does not say so. */
#include "base/text.h"
#include "models/packings/packed.h"
#include "quant/pack/scaled_rows.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <string.h>

static const struct packing_key scaled_keys[] = {
    {"", "_scale_inv", .weight = ""},
    {"", "_scale", .weight = ""},
    {".weight", ".scale", "F8_E4M3", "F8_E8M0"},
    {".weight", ".scale", "F8_E5M2", "F8_E8M0"},
    {".weight", ".qscale_weight"},
    {0},
};

/* Scales with a name that the converter does not know, whatever the method. */
static const struct packing_key *const unknown_scale = &scaled_keys[1];

static bool scaled_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const char *dtype = tensor->dtype->name;
    return strcmp(dtype, "F8_E4M3") == 0 || strcmp(dtype, "F8_E5M2") == 0 || strcmp(dtype, "I8") == 0;
}

/* Reads the sides of blocks from a JSON array. */
static bool read_sides(const struct json *array, uint64_t sides[2])
{
    int64_t side;
    if (json_count(array) != 2)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        if (!json_i64(json_at(array, i), &side) || side < 1)
            return false;
        sides[i] = (uint64_t)side;
    }
    return true;
}

/* Reports whether the scales are those of blocks with the sides in `array`; ignores surplus rows and columns of scales.
 */
static bool fits_blocks(const struct json *array, const struct view *scale, uint64_t n_rows, uint64_t n_columns,
                        struct sharing *ret_sharing)
{
    uint64_t sides[2];
    if (!read_sides(array, sides) || scale->rank < 2 || scale->shape[scale->rank - 2] < rounded_up(n_rows, sides[0]) ||
        scale->shape[scale->rank - 1] < rounded_up(n_columns, sides[1]))
        return false;
    *ret_sharing = (struct sharing){sides[0], sides[1], NULL};
    return true;
}

/* Reports whether the configuration states the size of blocks. */
static bool has_block_size(const struct json *config)
{
    uint64_t sides[2];
    const struct json *size = json_get(config, "weight_block_size");
    return json_is(size, JSON_ARRAY) && read_sides(size, sides);
}

static bool find_blocks(const struct packed *packed, const struct view *scale, uint64_t n_rows, uint64_t n_columns,
                        struct sharing *ret_sharing)
{
    enum { DEEPSEEK_SIDE = 128 };
    const struct json *config = packed->input->config;
    if (fits_blocks(json_get(config, "weight_block_size"), scale, n_rows, n_columns, ret_sharing))
        return true;
    const struct json *groups = json_get(config, "config_groups");
    for (struct json_member group = {0}; json_next_member(groups, &group);)
        if (fits_blocks(json_get(json_get(group.value, "weights"), "block_structure"), scale, n_rows, n_columns,
                        ret_sharing))
            return true;
    *ret_sharing = (struct sharing){DEEPSEEK_SIDE, DEEPSEEK_SIDE, NULL};
    return packed->spelling->partner_dtype != NULL && !has_block_size(config) && scale->rank >= 2 &&
           scale->shape[scale->rank - 2] >= rounded_up(n_rows, DEEPSEEK_SIDE) &&
           scale->shape[scale->rank - 1] >= rounded_up(n_columns, DEEPSEEK_SIDE);
}

/* Returns the scales as rows and columns, and how the elements of `weight` share them. */
static const struct view *fit(const struct packed *packed, const char *suffix, const struct view *weight,
                              const struct view *scale, struct sharing *ret_sharing)
{
    struct arena *arena = packed->input->arena;
    unsigned rank = weight->rank;
    uint64_t n_rows = rank >= 2 ? weight->shape[rank - 2] : 1, n_columns = view_row_elements(weight),
             shape[VIEW_MAX_RANK];
    *ret_sharing = (struct sharing){n_rows, n_columns, NULL};
    if (scale->n_elements == 1) {
        const uint64_t one[1] = {1};
        return view_reshape(arena, scale, 1, one);
    }
    if (scale->rank == 1 && rank == 2 && scale->n_elements == n_rows) {
        const uint64_t column[2] = {n_rows, 1};
        ret_sharing->rows = 1;
        return view_reshape(arena, scale, 2, column);
    }
    bool is_beside =
        rank >= 2 && scale->rank == rank && memcmp(scale->shape, weight->shape, (rank - 2) * sizeof *shape) == 0;
    if (!is_beside || scale->n_elements == 0) {
        packed_misfit(packed, suffix, scale, "the weight has %" PRIu64 " rows of %" PRIu64 " columns", n_rows,
                      n_columns);
        return NULL;
    }
    uint64_t shared_rows = scale->shape[rank - 2], shared_columns = scale->shape[rank - 1];
    if (find_blocks(packed, scale, n_rows, n_columns, ret_sharing)) {
        shared_rows = rounded_up(n_rows, ret_sharing->rows);
        shared_columns = rounded_up(n_columns, ret_sharing->columns);
    } else if ((shared_rows != n_rows && shared_rows != 1) || n_columns % shared_columns != 0 ||
               (has_block_size(packed->input->config) && shared_columns != 1 && shared_columns != n_columns)) {
        packed_misfit(packed, suffix, scale, "the weight has %" PRIu64 " rows of %" PRIu64 " columns", n_rows,
                      n_columns);
        return NULL;
    } else {
        *ret_sharing = (struct sharing){shared_rows == 1 ? n_rows : 1, n_columns / shared_columns, NULL};
    }
    scale = view_slice(arena, scale, rank - 2, 0, shared_rows, 1);
    return view_slice(arena, scale, rank - 1, 0, shared_columns, 1);
}

static const char *const strategies[] = {"channel", "block", NULL}; /* that the converter accepts */

/* Returns the feature that the converter does not read; NULL: none. */
static const char *find_beyond(const struct packing_input *input, const struct packing_key *spelling, bool has_zeros,
                               const struct view *scale)
{
    if (has_zeros)
        return "weights with zero points";
    if (spelling == unknown_scale && strcmp(input->method, "fp8") == 0)
        return "scales not named weight_scale_inv";
    if (scale->dtype->kind == DTYPE_INTEGER)
        return "MXFP8";
    return packed_beyond_groups(input, strategies);
}

/* Returns rows of whole blocks as Q8_0; NULL for other rows. */
static const struct view *as_blocks(struct arena *arena, const struct view *view)
{
    const struct dtype *q8_0 = dtype_by_name("Q8_0");
    const char *reason;
    return convert_possible(view, encoding_of(q8_0), &reason) ? view_convert(arena, view, q8_0) : NULL;
}

static bool scaled_unpack(struct packed *packed)
{
    const struct packing_key *spelling = packed->spelling;
    struct arena *arena = packed->input->arena;
    const struct view *weight = tensor_view(packed->key, arena), *scale, *zeros;
    struct sharing sharing;
    const char *suffix = spelling->partner;
    scale = packed_need(packed, suffix, F16_F32 | E8M0 | F8 | U8);
    if (scale == NULL || !packed_find(packed, "_zero_point", I8, &zeros))
        return false;
    packed->unpacked->beyond = find_beyond(packed->input, spelling, zeros != NULL, scale);
    if (weight->rank == 0 || weight->n_elements == 0)
        return error_set(packed->error, "the weight has no elements");
    if (scale->dtype->kind == DTYPE_INTEGER &&
        (weight->rank < 2 || scale->rank == 0 || scale->shape[scale->rank - 1] * 32 != weight->shape[weight->rank - 1]))
        return packed_misfit(packed, suffix, scale, "each exponent must cover 32 columns");
    if (scale->dtype->kind == DTYPE_INTEGER)
        scale = view_reinterpret(arena, scale, dtype_by_name("F8_E8M0"));
    scale = fit(packed, suffix, weight, scale, &sharing);
    if (scale == NULL)
        return false;
    if (zeros != NULL) {
        struct sharing of_zeros;
        zeros = fit(packed, "_zero_point", weight, zeros, &of_zeros);
        if (zeros == NULL)
            return false;
        weight = view_combine(arena, weight, SUBTRACT, zeros, &of_zeros);
    }
    packed->unpacked->view = view_combine(arena, weight, MULTIPLY, scale, &sharing);
    packed->unpacked->bits = 8;
    if (spelling->partner_dtype != NULL && weight->rank >= 2)
        packed->unpacked->forms->blocks = as_blocks(arena, packed->unpacked->view);
    return true;
}

/* FP8 rows as TensorRT-LLM's converters write them. */
static unsigned pack_rows(const struct packer *packer, struct arena *arena, const struct view *weight,
                          struct packed_part *parts, struct error *error)
{
    if (weight->rank == 0 || weight->dtype->kind != DTYPE_FLOAT)
        return error_set(error, "only rows of floats are scaled");
    parts[0] = (struct packed_part){".weight", view_scaled_rows(arena, weight)};
    parts[1] = (struct packed_part){".per_channel_scale", view_row_scales(arena, weight)};
    return 2;
}

static bool write_rows_config(const struct packer *packer, const struct output_weight *weights, size_t n_weights,
                              struct json_writer *writer, struct error *error)
{
    char least[JSON_FLOAT_TEXT], most[JSON_FLOAT_TEXT];
    size_t n_packed = 0;
    for (size_t i = 0; i < n_weights; i++)
        n_packed += weights[i].packer == packer;
    if (n_packed == 0)
        return error_set(error, "none of %zu matrices is packed as %s", n_weights, packer->name);
    json_put_template(writer,
                      "'quant_algo': %s, 'kv_cache_quant_algo': null, 'group_size': 128, 'smoothquant_val': 0.5,"
                      " 'clamp_val': [%r, %r], 'use_meta_recipe': false, 'has_zero_point': false,"
                      " 'pre_quant_scale': false, 'exclude_modules': null",
                      packer->name, json_f32_text(-SCALED_ROWS_LIMIT, least), json_f32_text(SCALED_ROWS_LIMIT, most));
    return true;
}

static const struct packer packers[] = {{"FP8_PER_CHANNEL_PER_TOKEN", pack_rows, write_rows_config}, {0}};

const struct packing scaled_packing = {
    .name = "scaled",
    .methods = {"fp8", "mxfp8", "fbgemm_fp8", "modelopt", "compressed-tensors"},
    .summary = "FP8 and I8 with scales of tensors, rows or blocks",
    .place = IN_PLACE,
    .keys = scaled_keys,
    .is_key = scaled_is_key,
    .unpack = scaled_unpack,
    .packers = packers,
};

/* FP8 of queries, keys and values in one matrix, cut for 8 or 4 ranks, as published for MiMo V2.5 (conversion/mimo.py).
 *
 * The qkv_proj below model.layers.N.self_attn and model.mtp.layers.N.self_attn has the rows of one rank after the
 * other: the rank's queries, its keys, its values. So do the scales, one for 128 rows and 128 columns, which begin anew
 * with each rank. Only the number of the scales' rows tells the number of ranks. The unpacked matrix is uncut: all
 * queries first, then all keys, then all values. */

static const char own[] = "", scale_suffix[] = "_scale_inv";

enum { SIDE = 128, MOST = 1 << 24, MAX_DIGITS = 4 };

static bool is_of_model(const struct json *model)
{
    static const char *const architectures[] = {"MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"};
    const struct json *architecture = json_first(json_get(model, "architectures"));
    return json_string_is(architecture, architectures[0]) || json_string_is(architecture, architectures[1]);
}

/* Finds the layer in the name of such a matrix; returns false for other names. Layers that predict, which have windows,
 * come after all others. */
static bool find_layer(const struct tensor *tensor, uint64_t *ret_layer)
{
    static const char before[] = "model.layers.", predicting[] = "model.mtp.layers.",
                      after[] = ".self_attn.qkv_proj.weight";
    bool predicts = text_starts_with(tensor->name, predicting);
    size_t first = predicts ? sizeof predicting - 1 : sizeof before - 1, last = sizeof after - 1;
    if (tensor->name_length <= first + last || tensor->name_length > first + last + MAX_DIGITS ||
        !(predicts || text_starts_with(tensor->name, before)) || !packing_has_suffix(tensor, after))
        return false;
    uint64_t layer = 0;
    for (size_t i = first; i < tensor->name_length - last; i++) {
        if (tensor->name[i] < '0' || tensor->name[i] > '9')
            return false;
        layer = layer * 10 + (uint64_t)(tensor->name[i] - '0');
    }
    *ret_layer = predicts ? MOST : layer;
    return true;
}

static const struct packing_key fp8_ranks_keys[] = {{own, scale_suffix, .weight = own}, {0}};

static bool fp8_ranks_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const char *dtype = tensor->dtype->name;
    uint64_t layer;
    return (strcmp(dtype, "F8_E4M3") == 0 || strcmp(dtype, "F8_E5M2") == 0) && strcmp(input->method, "fp8") == 0 &&
           find_layer(tensor, &layer) && is_of_model(input->model);
}

/* Rows of queries, keys and values. */
struct rows {
    uint64_t q, k, v;
};

static bool read_number(const struct json *model, const char *name, uint64_t *ret_number, struct error *error)
{
    if (json_u64(json_get(model, name), ret_number) && *ret_number >= 1 && *ret_number <= MOST)
        return true;
    return error_set(error, "config.json: %s must be a number from 1 to %d", name, MOST);
}

static bool find_rows(const struct json *model, uint64_t layer, struct rows *ret_rows, struct error *error)
{
    uint64_t n_layers, n_heads, n_kv_heads, head, value, kind = 0;
    if (!read_number(model, "num_hidden_layers", &n_layers, error) ||
        !read_number(model, "num_attention_heads", &n_heads, error) || !read_number(model, "head_dim", &head, error) ||
        !read_number(model, "v_head_dim", &value, error))
        return false;
    bool has_window = layer >= n_layers ||
                      (json_u64(json_at(json_get(model, "hybrid_layer_pattern"), (size_t)layer), &kind) && kind == 1);
    if (!read_number(model, has_window ? "swa_num_key_value_heads" : "num_key_value_heads", &n_kv_heads, error))
        return false;
    *ret_rows = (struct rows){n_heads * head, n_kv_heads * head, n_kv_heads * value};
    return true;
}

/* Returns the first number of ranks that matches the rows of scales; 0: none. */
static uint64_t find_ranks(uint64_t n_rows, const struct rows *rows, uint64_t n_scales)
{
    static const unsigned numbers[] = {8, 4};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t n = numbers[i];
        if (n_rows % n == 0 && n_scales == n * rounded_up(n_rows / n, SIDE))
            return rows->q % n == 0 && rows->k % n == 0 && rows->v % n == 0 ? n : 0;
    }
    return 0;
}

/* Returns `n_rows` rows of every rank, from its row `first` on. */
static const struct view *rows_of_ranks(struct arena *arena, const struct view *ranks, uint64_t first, uint64_t n_rows)
{
    const uint64_t shape[2] = {ranks->shape[0] * n_rows, ranks->shape[2]};
    return view_reshape(arena, view_slice(arena, ranks, 1, first, n_rows, 1), 2, shape);
}

/* Makes the values of builds that took the rows for uncut: scales of other rows, and rows in the order of ranks. */
static const struct view *misread(struct arena *arena, const struct view *weight, const struct view *scale)
{
    static const struct sharing blocks = {SIDE, SIDE, NULL};
    scale = view_slice(arena, scale, 0, 0, rounded_up(weight->shape[0], SIDE), 1);
    scale = view_slice(arena, scale, 1, 0, rounded_up(weight->shape[1], SIDE), 1);
    return view_combine(arena, weight, MULTIPLY, scale, &blocks);
}

static const struct view *uncut(struct arena *arena, const struct view *weight, const struct view *scale, uint64_t n,
                                const struct rows *rows)
{
    static const struct sharing blocks = {SIDE, SIDE, NULL};
    uint64_t n_columns = weight->shape[1], q = rows->q / n, k = rows->k / n, v = rows->v / n;
    const uint64_t shape[3] = {n, weight->shape[0] / n, n_columns},
                   scale_shape[3] = {n, scale->shape[0] / n, rounded_up(n_columns, SIDE)};
    scale = view_reshape(arena, view_slice(arena, scale, 1, 0, scale_shape[2], 1), 3, scale_shape);
    const struct view *ranks = view_combine(arena, view_reshape(arena, weight, 3, shape), MULTIPLY, scale, &blocks);
    const struct view *const parts[] = {rows_of_ranks(arena, ranks, 0, q), rows_of_ranks(arena, ranks, q, k),
                                        rows_of_ranks(arena, ranks, q + k, v)};
    return view_concatenate(arena, parts, sizeof parts / sizeof *parts, 0);
}

static bool fp8_ranks_unpack(struct packed *packed)
{
    const struct view *weight = tensor_view(packed->key, packed->input->arena), *scale;
    struct rows rows;
    uint64_t layer = 0;
    find_layer(packed->key, &layer);
    scale = packed_need(packed, scale_suffix, F16_F32);
    if (scale == NULL || !find_rows(packed->input->model, layer, &rows, packed->error))
        return false;
    if (!packed_is_matrix(weight) || weight->shape[0] != rows.q + rows.k + rows.v)
        return packed_misfit(packed, own, weight, "config.json makes %" PRIu64 " rows of queries, keys and values",
                             rows.q + rows.k + rows.v);
    if (!packed_is_matrix(scale) || scale->shape[1] < rounded_up(weight->shape[1], SIDE))
        return packed_misfit(packed, scale_suffix, scale, "the weight has %" PRIu64 " columns", weight->shape[1]);
    uint64_t n = find_ranks(weight->shape[0], &rows, scale->shape[0]);
    if (n == 0)
        return packed_misfit(packed, scale_suffix, scale,
                             "%" PRIu64 " rows split over 8 or 4 ranks have another number of blocks",
                             weight->shape[0]);
    packed->unpacked->view = uncut(packed->input->arena, weight, scale, n, &rows);
    packed->unpacked->bits = 8;
    if (layer == MOST) {
        packed->unpacked->forms->converted = misread(packed->input->arena, weight, scale);
        packed->unpacked->forms->mended = MIMO_SCALES;
    }
    return true;
}

const struct packing fp8_ranks_packing = {
    .name = "fp8-ranks",
    .methods = {"fp8"},
    .summary = "FP8 of fused queries, keys and values, cut for several ranks",
    .place = IN_PLACE,
    .keys = fp8_ranks_keys,
    .is_key = fp8_ranks_is_key,
    .unpack = fp8_ranks_unpack,
};
