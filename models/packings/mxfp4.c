/* MXFP4 as gpt-oss stores it.
 *
 * A weight [..., n, rows] is two tensors: blocks U8 [..., rows, n / 32, 16], whose byte j holds element 2j in its low
 * half and 2j + 1 in its high half, and scales U8 [..., rows, n / 32]. Unpacking exchanges the last two axes, like
 * transformers. In ggml's block the scale comes first, and byte j holds elements j and j + 16: only bits move.
 *
 * The converter writes these weights before all others, and keeps their blocks in every output. */
#include "base/checked.h"
#include "models/packings/packed.h"
#include "quant/views/block_views.h"

#include <string.h>

enum { BLOCK_ELEMENTS = 32, PACKED_BYTES = 16, BLOCK_BYTES = 1 + PACKED_BYTES };

struct mxfp4 {
    struct view view;
    const struct view *blocks, *scales;
};

/* Repacks pairs of neighbours as pairs of an element of the first half and one of the second. */
static void repack(const unsigned char *packed, unsigned char scale, unsigned char *block)
{
    unsigned char codes[BLOCK_ELEMENTS];
    for (unsigned i = 0; i < PACKED_BYTES; i++) {
        codes[2 * i] = packed[i] & 15;
        codes[2 * i + 1] = packed[i] >> 4;
    }
    block[0] = scale;
    for (unsigned i = 0; i < PACKED_BYTES; i++)
        block[1 + i] = (unsigned char)(codes[i] | codes[i + PACKED_BYTES] << 4);
}

static bool mxfp4_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 1024 };
    const struct mxfp4 *mxfp4 = (const struct mxfp4 *)view;
    unsigned char packed[PIECE * PACKED_BYTES], scales[PIECE], *block = out;
    for (uint64_t end = first + count; first < end;) {
        uint64_t n = end - first < PIECE ? end - first : PIECE;
        if (!view_read(mxfp4->blocks, first * PACKED_BYTES, n * PACKED_BYTES, packed, error) ||
            !view_read(mxfp4->scales, first, n, scales, error))
            return false;
        for (uint64_t i = 0; i < n; i++, block += BLOCK_BYTES)
            repack(packed + i * PACKED_BYTES, scales[i], block);
        first += n;
    }
    return true;
}

static void mxfp4_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct mxfp4 *mxfp4 = (const struct mxfp4 *)view;
    view_depends(mxfp4->blocks, first * PACKED_BYTES, count * PACKED_BYTES, to);
    view_depends(mxfp4->scales, first, count, to);
}

static const struct view_op mxfp4_op = {.name = "mxfp4", .read = mxfp4_read, .depends = mxfp4_depends};

const struct view *packed_mxfp4_blocks(struct arena *arena, const struct view *blocks, const struct view *scales)
{
    uint64_t shape[VIEW_MAX_RANK], n_elements;
    unsigned rank = scales->rank;
    if (rank < 2 || blocks->rank != rank + 1 || blocks->shape[rank] != PACKED_BYTES ||
        memcmp(blocks->shape, scales->shape, rank * sizeof *shape) != 0 ||
        !checked_multiply(scales->n_elements, BLOCK_ELEMENTS, &n_elements))
        return NULL;
    memcpy(shape, scales->shape, rank * sizeof *shape);
    shape[rank - 1] *= BLOCK_ELEMENTS;
    struct mxfp4 *mxfp4 = arena_alloc(arena, sizeof *mxfp4);
    view_init(&mxfp4->view, arena, &mxfp4_op, dtype_by_name("MXFP4"), rank, shape);
    mxfp4->blocks = blocks;
    mxfp4->scales = scales;
    return &mxfp4->view;
}

static const char mxfp4_own[] = "_blocks", mxfp4_other[] = "_scales";

static bool is_bytes(const struct tensor *tensor)
{
    return tensor->refusal == NULL && tensor->dtype->block_elements == 1 && tensor->dtype->block_bytes == 1;
}

static const struct packing_key mxfp4_keys[] = {{mxfp4_own, .weight = ""}, {0}};

static bool mxfp4_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return is_bytes(tensor) &&
           (strcmp(input->method, "mxfp4") == 0 || packing_partner(input->set, tensor, mxfp4_own, mxfp4_other) != NULL);
}

/* Returns the blocks with the bytes of each row side by side. */
static const struct view *flat_rows(struct arena *arena, const struct view *blocks)
{
    uint64_t shape[VIEW_MAX_RANK];
    unsigned rank = blocks->rank - 1;
    memcpy(shape, blocks->shape, rank * sizeof *shape);
    shape[rank - 1] *= blocks->shape[rank];
    return view_reshape(arena, blocks, rank, shape);
}

static const struct code_groups *mxfp4_keep_groups(struct arena *arena, const struct view *bytes,
                                                   const struct view *scales)
{
    const struct fields fields = fields_of_words(8, 4);
    const uint64_t shape[2] = {bytes->n_elements / view_row_elements(bytes), view_row_elements(bytes)},
                   groups[2] = {shape[0], view_row_elements(scales)};
    const struct code_groups kept = {
        .codes = view_fields(arena, view_reshape(arena, view_reinterpret(arena, bytes, &u8_dtype), 2, shape), &fields),
        .scales = view_reshape(arena, view_reinterpret(arena, scales, &u8_dtype), 2, groups),
        .group_size = BLOCK_ELEMENTS,
        .bits = 4,
        .is_transposed = true,
    };
    return arena_copy(arena, &kept, sizeof kept);
}

static bool mxfp4_unpack(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    const struct view *scales = packed_need(packed, mxfp4_other, BYTES | E8M0);
    if (scales == NULL)
        return false;
    const struct view *blocks = packed_mxfp4_blocks(arena, tensor_view(packed->key, arena), scales);
    if (blocks == NULL)
        return error_set(packed->error, "the shapes of blocks and scales disagree");
    unsigned order[VIEW_MAX_RANK];
    for (unsigned i = 0; i < blocks->rank; i++)
        order[i] = i;
    order[blocks->rank - 2] = blocks->rank - 1;
    order[blocks->rank - 1] = blocks->rank - 2;
    packed->unpacked->forms->blocks = view_of_permuted_blocks(arena, blocks, order);
    packed->unpacked->view =
        view_permute(arena, packed_mxfp4(arena, flat_rows(arena, tensor_view(packed->key, arena)), scales), order);
    packed->unpacked->forms->groups =
        mxfp4_keep_groups(arena, flat_rows(arena, tensor_view(packed->key, arena)), scales);
    packed->unpacked->bits = 4;
    return true;
}

const struct packing mxfp4_packing = {
    .name = "mxfp4",
    .titles = {"MXFP4"},
    .methods = {"mxfp4"},
    .summary = "MXFP4, as gpt-oss is published",
    .place = BEFORE_ALL,
    .keys = mxfp4_keys,
    .is_key = mxfp4_is_key,
    .unpack = mxfp4_unpack,
};

/* MXFP4 in two tensors: bytes [rows, columns / 2], the first of two elements in the low half, and exponents of 2 with a
 * bias of 127 [rows, columns / 32], without a code for NaN. compressed-tensors has B.weight_packed U8 and
 * B.weight_scale U8; DeepSeek V4 has B.weight I8 and B.scale E8M0; MiMo V2 has B.weight U8 and B.weight_scale U8, and
 * declares them by "store_dtype": "mxfp4". */

enum { GROUP = 32 };

static const struct packing_key mxfp4_packed_keys[] = {
    {".weight_packed", ".weight_scale", "U8", "U8"},
    {".weight", ".scale", "I8", "F8_E8M0"},
    {".weight", ".weight_scale", "U8", "U8"},
    {0},
};

static bool mxfp4_packed_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return strcmp(tensor->dtype->name, "U8") != 0 || packing_has_suffix(tensor, mxfp4_packed_keys[0].suffix) ||
           json_string_is(json_get(input->config, "store_dtype"), "mxfp4");
}

static const struct view *make_blocks(struct arena *arena, const struct view *bytes, const struct view *scales)
{
    const uint64_t shape[3] = {scales->shape[0], scales->shape[1], GROUP / 2};
    return packed_mxfp4_blocks(arena, view_reshape(arena, bytes, 3, shape), scales);
}

static const struct code_groups *mxfp4_packed_keep_groups(struct arena *arena, const struct view *bytes,
                                                          const struct view *scales)
{
    const struct fields fields = fields_of_words(8, 4);
    const struct code_groups groups = {
        .codes = view_fields(arena, bytes, &fields), .scales = scales, .group_size = GROUP, .bits = 4};
    return arena_copy(arena, &groups, sizeof groups);
}

static bool mxfp4_packed_unpack(struct packed *packed)
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
    packed->unpacked->forms->groups = mxfp4_packed_keep_groups(arena, bytes, scales);
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
    .keys = mxfp4_packed_keys,
    .is_key = mxfp4_packed_is_key,
    .unpack = mxfp4_packed_unpack,
};

/* MXFP6 of compressed-tensors: B.weight_packed U8 [rows, columns * 3 / 4], codes in E2M3, and B.weight_scale U8 [rows,
 * columns / 32], exponents of 2 with a bias of 127. */

enum { GROUP_BYTES = 32 * 6 / 8 };

static const char mxfp6_packed_own[] = ".weight_packed", mxfp6_packed_other[] = ".weight_scale";

static const struct packing_key mxfp6_packed_keys[] = {{mxfp6_packed_own, mxfp6_packed_other, "U8", "U8"}, {0}};

static bool mxfp6_packed_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor *scales = packing_partner(input->set, tensor, mxfp6_packed_own, mxfp6_packed_other);
    return scales != NULL && tensor->rank == 2 && scales->rank == 2 && scales->shape[1] > 0 &&
           tensor->shape[1] % scales->shape[1] == 0 && tensor->shape[1] / scales->shape[1] == GROUP_BYTES;
}

static bool mxfp6_packed_unpack(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena),
                      *scales =
                          packed_matrix(packed, mxfp6_packed_other, U8, bytes->shape[0], bytes->shape[1] / GROUP_BYTES);
    if (scales == NULL)
        return false;
    if (bytes->n_elements == 0)
        return packed_misfit(packed, mxfp6_packed_own, bytes, "a weight has elements");
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
    .keys = mxfp6_packed_keys,
    .is_key = mxfp6_packed_is_key,
    .unpack = mxfp6_packed_unpack,
};
