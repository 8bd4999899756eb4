/* MXFP6 of compressed-tensors: B.weight_packed U8 [rows, columns * 3 / 4], four codes of 6 bits in three bytes, the
 * first in the lowest bits, and B.weight_scale U8 [rows, columns / 32], exponents of 2 with a bias of 127. A code is
 * E2M3 with a bias of 1: a sign, two bits of exponent, three of mantissa, and no infinities. */
#include "models/packings/packed.h"

enum { GROUP = 32, GROUP_BYTES = GROUP * 6 / 8, CODES = 64 };

static const char own[] = ".weight_packed", other[] = ".weight_scale";

static const struct packing_key keys[] = {{own, other, "U8", "U8"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor *scales = packing_partner(input->set, tensor, own, other);
    return scales != NULL && tensor->rank == 2 && scales->rank == 2 && scales->shape[1] > 0 &&
           tensor->shape[1] % scales->shape[1] == 0 && tensor->shape[1] / scales->shape[1] == GROUP_BYTES;
}

static const struct view *levels(struct arena *arena)
{
    static const uint64_t shape[1] = {CODES};
    float *values = arena_array(arena, CODES, sizeof *values);
    for (unsigned code = 0; code < CODES; code++) {
        unsigned exponent = code >> 3 & 3, mantissa = code & 7;
        float eighths = exponent > 0 ? (float)((8 + mantissa) << (exponent - 1)) : (float)mantissa;
        values[code] = (code & 32) != 0 ? -eighths / 8 : eighths / 8;
    }
    return view_numbers(arena, 1, shape, values);
}

static bool unpack(struct packed *packed)
{
    static const struct sharing sharing = {1, GROUP, NULL};
    struct arena *arena = packed->input->arena;
    const struct fields fields = fields_of_stream(6);
    const struct view *bytes = tensor_view(packed->key, arena),
                      *scales = packed_matrix(packed, other, U8, bytes->shape[0], bytes->shape[1] / GROUP_BYTES);
    if (scales == NULL)
        return false;
    if (bytes->n_elements == 0)
        return packed_misfit(packed, own, bytes, "a weight has elements");
    const struct view *codes = view_lookup(arena, view_fields(arena, bytes, &fields), levels(arena));
    packed->unpacked->view = view_combine(arena, codes, MULTIPLY, packed_powers(arena, scales, 0x1p-127F), &sharing);
    packed->unpacked->bits = 6;
    packed->unpacked->beyond = "MXFP6";
    return true;
}

const struct packing mxfp6_packed_packing = {
    .name = "mxfp6-pack-quantized",
    .titles = {"MXFP6"},
    .methods = {"compressed-tensors"},
    .summary = "MXFP6 of compressed-tensors",
    .place = AFTER_ALL,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
