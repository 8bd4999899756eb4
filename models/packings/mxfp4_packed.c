/* MXFP4 as compressed-tensors has it: B.weight_packed U8 [rows, columns / 2], the first of two elements in the low half
 * of a byte, and B.weight_scale U8 [rows, columns / 32], exponents of 2 with a bias of 127, without a code for what is
 * not a number.
 */
#include "models/packings/packed.h"

#include <string.h>

extern const struct packing mxfp4_packed_packing;

enum { GROUP = 32 };

static const char own[] = ".weight_packed", other[] = ".weight_scale";

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor *scale = tensor->dtype == &u8_dtype && packing_has_suffix(tensor, own)
                                     ? packing_partner(input, tensor, own, other)
                                     : NULL;
    return scale != NULL && scale->dtype == &u8_dtype;
}

static bool unpack(const struct packing_input *input, const struct tensor *key, struct unpacked *unpacked,
                   struct error *error)
{
    struct packed packed = packed_begin(input, key, own, unpacked, error);
    struct arena *arena = input->arena;
    const struct view *bytes = tensor_view(key, arena);
    packed_name(&packed, ".weight");
    if (!packed_is_matrix(bytes) || bytes->shape[1] % (GROUP / 2) != 0)
        return packed_misfit(&packed, own, bytes, "not whole groups of 16 bytes");
    const struct view *scales = packed_matrix(&packed, other, U8, bytes->shape[0], bytes->shape[1] * 2 / GROUP);
    if (scales == NULL)
        return false;
    unpacked->view = packed_mxfp4(arena, bytes, scales);
    unpacked->bits = 4;
    unpacked->beyond = "MXFP4 of compressed-tensors";
    return true;
}

const struct packing mxfp4_packed_packing = {
    .name = "mxfp4-pack-quantized",
    .methods = {"compressed-tensors"},
    .summary = "compressed-tensors' MXFP4",
    .place = AFTER_ALL,
    .is_key = is_key,
    .unpack = unpack,
};
