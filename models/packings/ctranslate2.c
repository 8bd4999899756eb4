/* CTranslate2's integers: B/weight in I8 with B/weight_scale, one number for each index of the first axis, or in I16
 * with one number for all. The scale is a divisor, whose reciprocal is rounded to F32 first.
 *
 * AWQ's codes in I32 lie in orders that depend on the processor they are for, so they are refused. Source: CTranslate2,
 * python/ctranslate2/specs/model_spec.py, quantize(); src/ops/dequantize_cpu.cc. */
#include "models/packings/packed.h"
#include "quant/views/convert.h"

#include <inttypes.h>

static const char own[] = "/weight", scale_suffix[] = "/weight_scale";

static const struct packing_key keys[] = {
    {own, scale_suffix, "I8", .weight = own},
    {own, scale_suffix, "I16", .weight = own},
    {own, "/weight_zero", "I32", .weight = own},
    {0},
};

static void reciprocals(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1 / values[i];
}

/* Multiplies the codes by a factor for each index of the first axis. */
static const struct view *scale_rows(struct arena *arena, const struct view *codes, const struct view *factors)
{
    const uint64_t n_rows = codes->shape[0], rows[2] = {n_rows, codes->n_elements / n_rows}, one[2] = {n_rows, 1};
    const struct sharing sharing = {1, rows[1], NULL};
    const struct view *matrix = view_reshape(arena, codes, 2, rows);
    matrix = view_combine(arena, matrix, MULTIPLY, view_reshape(arena, factors, 2, one), &sharing);
    return view_reshape(arena, matrix, codes->rank, codes->shape);
}

static bool unpack(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    if (packed->spelling == &keys[2])
        return error_set(packed->error, "CTranslate2's AWQ is not supported; use the checkpoint it was converted from");
    const struct view *codes = packed_need(packed, own, I8 | I16);
    const struct view *scale = codes != NULL ? packed_need(packed, scale_suffix, F16_F32) : NULL;
    if (scale == NULL)
        return false;
    bool is_of_rows = codes->rank > 0 && scale->n_elements == codes->shape[0];
    if (codes->n_elements == 0 || (scale->n_elements != 1 && !is_of_rows))
        return packed_misfit(packed, scale_suffix, scale, "the weight has %" PRIu64 " rows",
                             codes->rank > 0 ? codes->shape[0] : 1);
    const struct view *factors = view_map(arena, scale, &f32_dtype, reciprocals);
    packed->unpacked->view =
        is_of_rows ? scale_rows(arena, codes, factors) : view_combine_one(arena, codes, MULTIPLY, factors);
    packed->unpacked->bits = packed->spelling == keys ? 8 : 16;
    return true;
}

const struct packing ctranslate2_packing = {
    .name = "ctranslate2",
    .titles = {"CTranslate2"},
    .summary = "CTranslate2's int8 and int16",
    .place = IN_PLACE,
    .keys = keys,
    .unpack = unpack,
};
