/* Quanto: B.weight._data in I8 or FP8 with one scale a row, or B.weight._data._data with two or four rows a byte.
 *
 * In the latter the rows of a byte are as far apart as there are rows of bytes, the first row in the least significant
 * bits; B.weight._scale and ._shift [groups, 1] divide each row into equal groups: code * scale - shift. */
#include "models/packings/packed.h"

#include <inttypes.h>

static const char plain_own[] = ".weight._data", packed_own[] = ".weight._data._data";

static const struct packing_key keys[] = {{packed_own}, {plain_own}, {0}};

static bool unpack_bytes(struct packed *packed)
{
    const struct view *codes = packed_need(packed, plain_own, I8 | F8);
    const struct view *scale = codes != NULL ? packed_need(packed, ".weight._scale", F16_F32) : NULL;
    if (scale == NULL)
        return false;
    if (!packed_is_matrix(codes))
        return packed_misfit(packed, plain_own, codes, "must be a matrix");
    packed->unpacked->bits = 8;
    if (scale->n_elements == 1) {
        packed->unpacked->view = view_combine_one(packed->input->arena, codes, MULTIPLY, scale);
        return true;
    }
    if (!packed_check(packed, ".weight._scale", scale, codes->shape[0], 1))
        return false;
    const struct sharing sharing = {1, codes->shape[1], NULL};
    packed->unpacked->view = view_combine(packed->input->arena, codes, MULTIPLY, scale, &sharing);
    return true;
}

static unsigned find_bits(const struct json *config)
{
    const struct json *weights = json_get(config, "weights");
    if (json_string_is(weights, "qint4") || json_string_is(weights, "int4"))
        return 4;
    return json_string_is(weights, "qint2") || json_string_is(weights, "int2") ? 2 : 0;
}

static bool unpack_rows(struct packed *packed)
{
    enum { MOST_PARTS = 4 };
    struct arena *arena = packed->input->arena;
    const struct view *parts[MOST_PARTS], *bytes = packed_need(packed, packed_own, U8);
    const struct view *scale = bytes != NULL ? packed_need(packed, ".weight._scale", F16_F32) : NULL;
    const struct view *shift = scale != NULL ? packed_need(packed, ".weight._shift", F16_F32) : NULL;
    unsigned bits = find_bits(packed->input->config), n_parts = bits > 0 ? 8 / bits : 0;
    if (shift == NULL)
        return false;
    if (bits == 0)
        return error_set(packed->error, "weights of quantization_config is neither qint4 nor qint2");
    uint64_t n_elements = bytes->n_elements * n_parts, n_groups = scale->n_elements;
    if (!packed_is_matrix(bytes) || n_groups == 0 || n_elements % n_groups != 0)
        return packed_misfit(packed, packed_own, bytes, "there are %" PRIu64 " groups of scales", n_groups);
    const uint64_t shape[2] = {bytes->shape[0] * n_parts, bytes->shape[1]},
                   groups[2] = {n_groups, n_elements / n_groups};
    if (shape[1] % groups[1] != 0 || !packed_check(packed, ".weight._scale", scale, n_groups, 1) ||
        !packed_check(packed, ".weight._shift", shift, n_groups, 1))
        return packed_misfit(packed, packed_own, bytes, "there are %" PRIu64 " groups of scales", n_groups);
    for (unsigned i = 0; i < n_parts; i++) {
        const struct fields part = {1, 1, (uint8_t)bits, {(uint8_t)(i * bits)}};
        parts[i] = view_fields(arena, bytes, &part);
    }
    const struct sharing sharing = {1, groups[1], NULL};
    const struct view *values = view_reshape(arena, view_concatenate(arena, parts, n_parts, 0), 2, groups);
    values = view_combine(arena, view_combine(arena, values, MULTIPLY, scale, &sharing), SUBTRACT, shift, &sharing);
    packed->unpacked->view = view_reshape(arena, values, 2, shape);
    packed->unpacked->bits = (uint8_t)bits;
    return true;
}

static bool unpack(struct packed *packed)
{
    return packed->spelling == keys ? unpack_rows(packed) : unpack_bytes(packed);
}

static const char *const beside[] = {".input_scale", ".output_scale", NULL};

const struct packing quanto_packing = {
    .name = "quanto",
    .titles = {"Quanto"},
    .methods = {"quanto"},
    .summary = "Quanto's FP8 and integers of 2, 4 and 8 bits",
    .place = IN_PLACE,
    .beside = beside,
    .keys = keys,
    .unpack = unpack,
};
