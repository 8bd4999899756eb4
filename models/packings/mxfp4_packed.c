/* MXFP4 in two tensors: bytes [rows, columns / 2], the first of two elements in the low half, and exponents of 2 with a
 * bias of 127 [rows, columns / 32], without a code for what is not a number. As compressed-tensors has it they are
 * B.weight_packed U8 and B.weight_scale U8; as DeepSeek V4 has it, B.weight I8 and B.scale E8M0. */
#include "models/packings/packed.h"

#include <string.h>

extern const struct packing mxfp4_packed_packing;

enum { GROUP = 32 };

static const struct spelling {
    const char *own, *other, *dtype, *other_dtype;
} spellings[] = {
    {".weight_packed", ".weight_scale", "U8", "U8"},
    {".weight", ".scale", "I8", "F8_E8M0"},
};

static const struct spelling *find_spelling(const struct packing_input *input, const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const struct spelling *spelling = &spellings[i];
        if (strcmp(tensor->dtype->name, spelling->dtype) != 0 || !packing_has_suffix(tensor, spelling->own))
            continue;
        const struct tensor *scale = packing_partner(input->set, tensor, spelling->own, spelling->other);
        if (scale != NULL && strcmp(scale->dtype->name, spelling->other_dtype) == 0)
            return spelling;
    }
    return NULL;
}

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return find_spelling(input, tensor) != NULL;
}

static const struct view *make_blocks(struct arena *arena, const struct view *bytes, const struct view *scales)
{
    const uint64_t shape[3] = {scales->shape[0], scales->shape[1], GROUP / 2};
    return packed_mxfp4_blocks(arena, view_reshape(arena, bytes, 3, shape), scales);
}

static bool unpack(const struct packing_input *input, const struct tensor *key, struct unpacked *unpacked,
                   struct error *error)
{
    const struct spelling *spelling = find_spelling(input, key);
    struct packed packed = packed_begin(input, key, spelling->own, unpacked, error);
    struct arena *arena = input->arena;
    const struct view *bytes = tensor_view(key, arena);
    packed_name(&packed, ".weight");
    if (!packed_is_matrix(bytes) || bytes->shape[1] % (GROUP / 2) != 0)
        return packed_misfit(&packed, spelling->own, bytes, "must have rows of whole groups of 16 bytes");
    const struct view *scales =
        packed_matrix(&packed, spelling->other, U8 | E8M0, bytes->shape[0], bytes->shape[1] * 2 / GROUP);
    if (scales == NULL)
        return false;
    bytes = view_reinterpret(arena, bytes, &u8_dtype);
    scales = view_reinterpret(arena, scales, &u8_dtype);
    unpacked->view = packed_mxfp4(arena, bytes, scales);
    unpacked->bits = 4;
    unpacked->forms->blocks = make_blocks(arena, bytes, scales);
    unpacked->is_of_some = true;
    unpacked->beyond = "packed MXFP4 of this family";
    return true;
}

const struct packing mxfp4_packed_packing = {
    .name = "mxfp4-pack-quantized",
    .titles = {"MXFP4"},
    .methods = {"compressed-tensors", "fp8"},
    .summary = "MXFP4, as compressed-tensors and DeepSeek V4 have it",
    .place = AFTER_ALL,
    .is_key = is_key,
    .unpack = unpack,
};
