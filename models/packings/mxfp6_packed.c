/* MXFP6 of compressed-tensors: B.weight_packed U8 [rows, columns * 3 / 4], codes in E2M3, and B.weight_scale U8 [rows,
 * columns / 32], exponents of 2 with a bias of 127. */
#include "models/packings/packed.h"

enum { GROUP_BYTES = 32 * 6 / 8 };

static const char own[] = ".weight_packed", other[] = ".weight_scale";

static const struct packing_key keys[] = {{own, other, "U8", "U8"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor *scales = packing_partner(input->set, tensor, own, other);
    return scales != NULL && tensor->rank == 2 && scales->rank == 2 && scales->shape[1] > 0 &&
           tensor->shape[1] % scales->shape[1] == 0 && tensor->shape[1] / scales->shape[1] == GROUP_BYTES;
}

static bool unpack(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena),
                      *scales = packed_matrix(packed, other, U8, bytes->shape[0], bytes->shape[1] / GROUP_BYTES);
    if (scales == NULL)
        return false;
    if (bytes->n_elements == 0)
        return packed_misfit(packed, own, bytes, "a weight has elements");
    packed->unpacked->view = packed_mxfp6(arena, bytes, scales, 3);
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
