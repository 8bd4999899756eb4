/* MXFP4 in two tensors: bytes [rows, columns / 2], the first of two elements in the low half, and exponents of 2 with a
 * bias of 127 [rows, columns / 32], without a code for NaN. compressed-tensors has B.weight_packed U8 and
 * B.weight_scale U8; DeepSeek V4 has B.weight I8 and B.scale E8M0; MiMo V2 has B.weight U8 and B.weight_scale U8, and
 * declares them by "store_dtype": "mxfp4". */
#include "models/packings/packed.h"

#include <string.h>

enum { GROUP = 32 };

static const struct packing_key keys[] = {
    {".weight_packed", ".weight_scale", "U8", "U8"},
    {".weight", ".scale", "I8", "F8_E8M0"},
    {".weight", ".weight_scale", "U8", "U8"},
    {0},
};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return strcmp(tensor->dtype->name, "U8") != 0 || packing_has_suffix(tensor, keys[0].suffix) ||
           json_string_is(json_get(input->config, "store_dtype"), "mxfp4");
}

static const struct view *make_blocks(struct arena *arena, const struct view *bytes, const struct view *scales)
{
    const uint64_t shape[3] = {scales->shape[0], scales->shape[1], GROUP / 2};
    return packed_mxfp4_blocks(arena, view_reshape(arena, bytes, 3, shape), scales);
}

static const struct code_groups *keep_groups(struct arena *arena, const struct view *bytes, const struct view *scales)
{
    const struct fields fields = fields_of_words(8, 4);
    const struct code_groups groups = {
        .codes = view_fields(arena, bytes, &fields), .scales = scales, .group_size = GROUP, .bits = 4};
    return arena_copy(arena, &groups, sizeof groups);
}

static bool unpack(struct packed *packed)
{
    const struct packing_key *spelling = packed->spelling;
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena);
    if (!packed_is_matrix(bytes) || bytes->shape[1] % (GROUP / 2) != 0)
        return packed_misfit(packed, spelling->suffix, bytes, "must have rows of whole groups of 16 bytes");
    const struct view *scales =
        packed_matrix(packed, spelling->partner, U8 | E8M0, bytes->shape[0], bytes->shape[1] * 2 / GROUP);
    if (scales == NULL)
        return false;
    bytes = view_reinterpret(arena, bytes, &u8_dtype);
    scales = view_reinterpret(arena, scales, &u8_dtype);
    packed->unpacked->view = packed_mxfp4(arena, bytes, scales);
    packed->unpacked->bits = 4;
    packed->unpacked->forms->groups = keep_groups(arena, bytes, scales);
    packed->unpacked->forms->blocks = make_blocks(arena, bytes, scales);
    packed->unpacked->is_of_some = true;
    packed->unpacked->beyond = "packed MXFP4 of this family";
    return true;
}

const struct packing mxfp4_packed_packing = {
    .name = "mxfp4-pack-quantized",
    .titles = {"MXFP4"},
    .methods = {"compressed-tensors", "fp8"},
    .summary = "MXFP4, as compressed-tensors and DeepSeek V4 have it",
    .place = AFTER_ALL,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
