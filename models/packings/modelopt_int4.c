/* ModelOpt's W4A16_AWQ and W4A8_AWQ: B.weight U8 [rows / 2, columns], with two neighbouring rows a byte, the first in
 * the low half, in two's complement, and B.weight_scale [rows, groups]. B.pre_quant_scale multiplies inputs, which a
 * plain model does not, so it is folded into the columns. */
#include "models/packings/packed.h"

#include <inttypes.h>

static const char own[] = ".weight", other[] = ".weight_scale";

static const struct packing_key keys[] = {{own, .dtype = "U8"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct json *algorithm = json_get(input->config, "quant_algo");
    return json_string_is(algorithm, "W4A16_AWQ") || json_string_is(algorithm, "W4A8_AWQ");
}

static bool unpack(struct packed *packed)
{
    static const float signed_codes[] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    static const uint64_t n_codes[1] = {16};
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena), *rows[2], *scales = packed_need(packed, other, F16_F32);
    if (scales == NULL)
        return false;
    if (!packed_is_matrix(bytes) || !packed_is_matrix(scales) || scales->shape[0] / 2 != bytes->shape[0] ||
        scales->shape[0] % 2 != 0 || bytes->shape[1] % scales->shape[1] != 0)
        return packed_misfit(packed, other, scales, "the weight has %" PRIu64 " pairs of rows", bytes->shape[0]);
    if (packing_partner(packed->input->set, packed->key, own, ".weight_scale_2") != NULL)
        return error_set(packed->error, "4-bit integers with a second scale (weight_scale_2) are not supported");
    if (!packed_agrees(packed, "group_size", bytes->shape[1] / scales->shape[1]))
        return false;
    const uint64_t shape[2] = {scales->shape[0], bytes->shape[1]}, pairs[3] = {bytes->shape[0], 1, bytes->shape[1]};
    for (unsigned i = 0; i < 2; i++) {
        const struct fields half = {1, 1, 4, {(uint8_t)(4 * i)}};
        rows[i] = view_reshape(arena, view_fields(arena, bytes, &half), 3, pairs);
    }
    const struct view *codes = view_reshape(arena, view_concatenate(arena, rows, 2, 1), 2, shape);
    const struct sharing sharing = {1, shape[1] / scales->shape[1], NULL};
    codes = view_lookup(arena, codes, view_numbers(arena, 1, n_codes, signed_codes));
    packed->unpacked->view = view_combine(arena, codes, MULTIPLY, scales, &sharing);
    packed->unpacked->bits = 4;
    unsigned n_parts = packed->unpacked->n_parts;
    if (!packed_scale_inputs(packed, ".pre_quant_scale", &packed->unpacked->view))
        return false;
    packed->unpacked->beyond = packed->unpacked->n_parts > n_parts ? "weights with scaled inputs (pre_quant_scale)"
                                                                   : "ModelOpt's 4-bit integers";
    return true;
}

const struct packing modelopt_int4_packing = {
    .name = "modelopt-int4",
    .titles = {"ModelOpt"},
    .methods = {"modelopt"},
    .summary = "ModelOpt's 4-bit integers",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
