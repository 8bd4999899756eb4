/* FP8 of queries, keys and values in one matrix, cut for 8 or 4 ranks, as published for MiMo V2.5 (conversion/mimo.py).
 *
 * The qkv_proj below model.layers.N.self_attn and model.mtp.layers.N.self_attn has the rows of one rank after the
 * other: the rank's queries, its keys, its values. So do the scales, one for 128 rows and 128 columns, which begin anew
 * with each rank. Only the number of the scales' rows tells the number of ranks. The unpacked matrix is uncut: all
 * queries first, then all keys, then all values. */
#include "base/text.h"
#include "models/packings/packed.h"

#include <inttypes.h>
#include <string.h>

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

static const struct packing_key keys[] = {{own, scale_suffix, .weight = own}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
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

static bool unpack(struct packed *packed)
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
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
