/* NVFP4: E2M1 in blocks of 16 with a scale in E4M3, and one more scale for the whole weight.
 *
 * In ModelOpt's form a weight B.weight [rows, columns] is stored as B.weight U8 [rows, columns / 2], the first of two
 * elements in the low half of a byte, B.weight_scale E4M3 [rows, columns / 16] and B.weight_scale_2, a factor for all.
 * In compressed-tensors' form B.weight_packed has the bytes, and B.weight_global_scale is a divisor. The two scales are
 * multiplied, or divided, first.
 *
 * ModelOpt's NVFP4 with AWQ also has B.pre_quant_scale, by which inputs are multiplied.
 *
 * ggml has the same bits in another order, without the sign of scales and without the factor for all: a tensor of its
 * own has that, X.scale beside X.weight, and another has the scale of inputs. */
#include "models/packings/packed.h"

#include "base/text.h"
#include "quant/views/block_views.h"

#include <string.h>

enum {
    GROUP = 16,
    GROUPS = 4,
    BLOCK_ELEMENTS = GROUP * GROUPS,
    PACKED_BYTES = BLOCK_ELEMENTS / 2,
    BLOCK_BYTES = GROUPS + PACKED_BYTES
};

static const char scale_suffix[] = ".weight_scale";

static const struct packing_key keys[] = {
    {".weight", scale_suffix, "U8", "F8_E4M3"},
    {".weight_packed", scale_suffix, "U8", "F8_E4M3"},
    {0},
};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return tensor->rank == 2;
}

/* ggml's blocks. */

struct nvfp4 {
    struct view view;
    const struct view *packed, *scales;
};

static void repack(const unsigned char *packed, const unsigned char *scales, unsigned char *block)
{
    for (unsigned i = 0; i < GROUPS; i++)
        block[i] = scales[i] & 0x7f;
    for (unsigned i = 0; i < PACKED_BYTES; i++) {
        const unsigned char *group = packed + i / 8 * 8;
        unsigned first = i % 8, half = first % 2 * 4; /* elements j and j + 8 of a group are in byte j */
        block[GROUPS + i] = (unsigned char)((group[first / 2] >> half & 15) | (group[4 + first / 2] >> half & 15) << 4);
    }
}

static bool nvfp4_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 512 };
    const struct nvfp4 *nvfp4 = (const struct nvfp4 *)view;
    unsigned char packed[PIECE * PACKED_BYTES], scales[PIECE * GROUPS], *block = out;
    for (uint64_t end = first + count; first < end;) {
        uint64_t n = end - first < PIECE ? end - first : PIECE;
        if (!view_read(nvfp4->packed, first * PACKED_BYTES, n * PACKED_BYTES, packed, error) ||
            !view_read(nvfp4->scales, first * GROUPS, n * GROUPS, scales, error))
            return false;
        for (uint64_t i = 0; i < n; i++, block += BLOCK_BYTES)
            repack(packed + i * PACKED_BYTES, scales + i * GROUPS, block);
        first += n;
    }
    return true;
}

static void nvfp4_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct nvfp4 *nvfp4 = (const struct nvfp4 *)view;
    view_depends(nvfp4->packed, first * PACKED_BYTES, count * PACKED_BYTES, to);
    view_depends(nvfp4->scales, first * GROUPS, count * GROUPS, to);
}

static const struct view_op nvfp4_op = {.name = "nvfp4", .read = nvfp4_read, .depends = nvfp4_depends};

static const struct view *make_blocks(struct arena *arena, const struct view *packed, const struct view *scales)
{
    uint64_t shape[2] = {packed->shape[0], packed->shape[1] * 2};
    if (shape[1] % BLOCK_ELEMENTS != 0)
        return NULL;
    struct nvfp4 *nvfp4 = arena_alloc(arena, sizeof *nvfp4);
    view_init(&nvfp4->view, arena, &nvfp4_op, dtype_by_name("NVFP4"), 2, shape);
    nvfp4->packed = packed;
    nvfp4->scales = scales;
    return &nvfp4->view;
}

/* Finds a scale for all elements; *ret_view is NULL if it is missing. */
static bool find_one(struct packed *packed, const char *suffix, const struct view **ret_view)
{
    if (!packed_find(packed, suffix, F16_F32, ret_view))
        return false;
    return *ret_view == NULL || (*ret_view)->n_elements == 1 ||
           packed_misfit(packed, suffix, *ret_view, "must hold one number");
}

/* Returns a scale as F32 [1], or one divided by it. */
static const struct view *factor_of(struct arena *arena, const struct view *view, bool is_divisor)
{
    static const float one = 1;
    const uint64_t shape[1] = {1};
    if (view == NULL)
        return NULL;
    view = view_reshape(arena, view, 1, shape);
    if (!is_divisor)
        return view_combine_number(arena, view, MULTIPLY, 1);
    return view_combine_one(arena, view_numbers(arena, 1, shape, &one), DIVIDE, view);
}

/* Returns the feature that the converter refuses; NULL: none. It gathers experts only by the names of most families. */
static const char *find_beyond(const char *name)
{
    static const char *const endings[] = {".w1.weight", ".w2.weight", ".w3.weight"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_ends_with(name, endings[i]) && strstr(name, ".experts.") != NULL)
            return "NVFP4 experts named w1, w2 and w3";
    return NULL;
}

/* Folds the factors of inputs of ModelOpt's AWQ into the columns: then ggml's blocks have other values. */
static bool fold_inputs(struct packed *packed)
{
    unsigned n_parts = packed->unpacked->n_parts;
    if (!packed_scale_inputs(packed, ".pre_quant_scale", &packed->unpacked->view))
        return false;
    if (packed->unpacked->n_parts == n_parts)
        return true;
    *packed->unpacked->forms = (struct unpacked_forms){0};
    packed->unpacked->beyond = "weights with scaled inputs (pre_quant_scale)";
    return true;
}

static void keep_groups(const struct packed *packed, const struct view *bytes, const struct view *scales)
{
    struct arena *arena = packed->input->arena;
    const struct fields fields = fields_of_words(8, 4);
    const struct code_groups groups = {
        .codes = view_fields(arena, bytes, &fields),
        .scales = view_reinterpret(arena, scales, &u8_dtype),
        .factor = packed->unpacked->forms->factors[0],
        .group_size = GROUP,
        .bits = 4,
    };
    packed->unpacked->forms->groups = arena_copy(arena, &groups, sizeof groups);
}

static bool unpack(struct packed *packed)
{
    bool is_divisor = packed->spelling != keys;
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena), *scales, *all, *inputs;
    if (!packed_is_matrix(bytes) || bytes->shape[1] % (GROUP / 2) != 0)
        return packed_misfit(packed, packed->spelling->suffix, bytes, "must have rows of whole groups of 8 bytes");
    scales = packed_matrix(packed, scale_suffix, F8, bytes->shape[0], bytes->shape[1] * 2 / GROUP);
    if (scales == NULL || !find_one(packed, is_divisor ? ".weight_global_scale" : ".weight_scale_2", &all) ||
        !find_one(packed, is_divisor ? ".input_global_scale" : ".input_scale", &inputs))
        return false;
    const struct sharing sharing = {1, GROUP, NULL};
    const struct view *scaled = scales;
    if (all != NULL)
        scaled = view_combine_one(arena, scales, is_divisor ? DIVIDE : MULTIPLY, all);
    packed->unpacked->view =
        view_combine(arena, view_reinterpret(arena, bytes, dtype_by_name("F4")), MULTIPLY, scaled, &sharing);
    const struct view *blocks = make_blocks(arena, bytes, scales);
    packed->unpacked->forms->blocks =
        blocks == NULL ? NULL : view_of_scaled_blocks(arena, blocks, packed->unpacked->view);
    packed->unpacked->forms->factors[0] = factor_of(arena, all, is_divisor);
    packed->unpacked->forms->factors[1] = factor_of(arena, inputs, is_divisor);
    keep_groups(packed, bytes, scales);
    packed->unpacked->bits = 4;
    packed->unpacked->beyond = find_beyond(packed->unpacked->name);
    return fold_inputs(packed);
}

const struct packing nvfp4_packing = {
    .name = "nvfp4",
    .titles = {"NVFP4"},
    .methods = {"modelopt", "compressed-tensors"},
    .summary = "NVFP4 of ModelOpt and compressed-tensors",
    .place = BEFORE_ALL,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
