/* Integers packed into words along rows: compressed-tensors' pack-quantized.
 *
 * A weight B.weight [rows, columns] is B.weight_packed I32 [rows, words], B.weight_scale [rows, groups] and
 * B.weight_shape, its two numbers. A zero point B.weight_zero_point is I32 [words, groups], in words of consecutive
 * rows; without it, the zero point is half of the range. B.weight_g_idx [columns], from libraries that did not yet
 * order columns themselves, gives columns groups in any order; if an element is -1, it was never filled in. */
#include "base/little_endian.h"
#include "models/packings/packed.h"

#include <inttypes.h>
#include <stdlib.h>

static const char own[] = ".weight_packed";

static const struct packing_key keys[] = {{own}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return tensor->dtype->block_bytes == 4;
}

struct packed_sizes {
    uint64_t n_rows, n_columns, n_words, n_groups;
    unsigned bits;
    bool is_dense, is_by_row; /* by row: the configuration names no groups of columns */
};

/* Reports whether a row's words have that many bits an element, packed as in old or new libraries. */
static bool is_of_bits(struct packed_sizes *sizes, uint64_t bits)
{
    if (bits < 1 || bits > 8)
        return false;
    sizes->bits = (unsigned)bits;
    sizes->is_dense = sizes->n_words != rounded_up(sizes->n_columns, 32 / bits);
    return !sizes->is_dense || sizes->n_words == rounded_up(sizes->n_columns * bits, 32);
}

static bool is_of_groups(const struct packed_sizes *sizes, uint64_t group_size)
{
    return sizes->n_groups == 1 || sizes->n_columns / sizes->n_groups == group_size;
}

/* Finds the bits: those of the first group in the configuration that fits. */
static bool find_bits(const struct packing_input *input, struct packed_sizes *sizes)
{
    const struct json *groups = json_get(input->config, "config_groups");
    for (struct json_member group = {0}; json_next_member(groups, &group);) {
        const struct json *weights = json_get(group.value, "weights");
        uint64_t group_size = packed_number(weights, "group_size");
        sizes->is_by_row = group_size == 0;
        if (is_of_bits(sizes, packed_number(weights, "num_bits")) && is_of_groups(sizes, group_size))
            return true;
    }
    return false;
}

static bool find_sizes(struct packed *packed, const struct view *words, const struct view *scale,
                       struct packed_sizes *sizes)
{
    int64_t shape[2] = {0};
    if (!packed_integers(packed, ".weight_shape", I64 | WORDS, shape, 2))
        return false;
    if (!packed_is_matrix(words) || shape[0] < 1 || (uint64_t)shape[0] != words->shape[0] || shape[1] < 1 ||
        (uint64_t)shape[1] > words->shape[1] * 32)
        return packed_misfit(packed, own, words, "weight_shape is [%" PRId64 ", %" PRId64 "]", shape[0], shape[1]);
    *sizes =
        (struct packed_sizes){.n_rows = words->shape[0], .n_columns = (uint64_t)shape[1], .n_words = words->shape[1]};
    if (!packed_is_matrix(scale) || scale->shape[0] != sizes->n_rows || sizes->n_columns % scale->shape[1] != 0)
        return packed_misfit(packed, ".weight_scale", scale, "the weight has %" PRIu64 " rows of %" PRIu64 " columns",
                             sizes->n_rows, sizes->n_columns);
    sizes->n_groups = scale->shape[1];
    return find_bits(packed->input, sizes) ||
           packed_misfit(packed, own, words,
                         "no group of quantization_config packs %" PRIu64 " columns in %" PRIu64 " groups so",
                         sizes->n_columns, sizes->n_groups);
}

/* Returns the codes along rows of words. */
static const struct view *cut(struct arena *arena, const struct packed_sizes *sizes, const struct view *words,
                              uint64_t n_columns)
{
    struct fields fields = fields_of_words(32, sizes->bits);
    if (sizes->is_dense) {
        words = view_reinterpret(arena, words, &u8_dtype);
        words = packed_cut(arena, words, words->shape[0], rounded_up(n_columns, 8) * sizes->bits);
        fields = fields_of_stream(sizes->bits);
    }
    const struct view *codes = view_fields(arena, words, &fields);
    return packed_cut(arena, codes, codes->shape[0], n_columns);
}

/* Returns the codes less their zero point, times the scale. */
static const struct view *scale_codes(struct packed *packed, const struct packed_sizes *sizes, const struct view *codes,
                                      const struct view *scale, const struct sharing *sharing)
{
    struct arena *arena = packed->input->arena;
    const struct view *zeros;
    struct code_groups groups = {.codes = codes,
                                 .scales = scale,
                                 .order = sharing->groups,
                                 .group_size = sharing->columns,
                                 .bits = (uint8_t)sizes->bits};
    if (!packed_find(packed, ".weight_zero_point", WORDS, &zeros))
        return NULL;
    if (zeros == NULL)
        packed->unpacked->forms->groups = arena_copy(arena, &groups, sizeof groups);
    if (zeros == NULL)
        return view_combine_centered(arena, codes, (float)(1u << (sizes->bits - 1)), MULTIPLY, scale, sharing);
    uint64_t n_words = rounded_up(sizes->n_rows, 32 / sizes->bits);
    if (sizes->is_dense)
        n_words = rounded_up(sizes->n_rows * sizes->bits, 32);
    if (!packed_check(packed, ".weight_zero_point", zeros, n_words, sizes->n_groups))
        return NULL;
    zeros = view_transpose(arena, cut(arena, sizes, view_transpose(arena, zeros), sizes->n_rows));
    groups.zeros = zeros;
    packed->unpacked->forms->groups = arena_copy(arena, &groups, sizeof groups);
    return view_combine(arena, view_combine(arena, codes, SUBTRACT, zeros, sharing), MULTIPLY, scale, sharing);
}

/* Finds the groups of columns that have no order. */
static bool find_groups(struct packed *packed, const struct packed_sizes *sizes, struct sharing *sharing)
{
    const struct view *groups;
    if (!packed_find(packed, ".weight_g_idx", WORDS, &groups))
        return false;
    if (groups == NULL)
        return true;
    if (groups->rank != 1 || groups->n_elements != sizes->n_columns || sizes->n_groups > SHARING_MAX_GROUPS)
        return packed_misfit(packed, ".weight_g_idx", groups, "must be [%" PRIu64 "] with at most %d groups",
                             sizes->n_columns, SHARING_MAX_GROUPS);
    int32_t *stored = memory_alloc(sizes->n_columns * sizeof *stored);
    bool good = view_read(groups, 0, sizes->n_columns, stored, packed->error), is_filled = true;
    if (good)
        little_endian(stored, sizes->n_columns, sizeof *stored);
    for (uint64_t i = 0; good && i < sizes->n_columns; i++)
        is_filled &= stored[i] != -1;
    free(stored);
    sharing->groups = is_filled ? groups : NULL;
    packed->unpacked->beyond = "columns grouped in any order (weight_g_idx)";
    return good;
}

static bool unpack(struct packed *packed)
{
    struct packed_sizes sizes;
    const struct view *words = packed_need(packed, own, WORDS), *scale = packed_need(packed, ".weight_scale", F16_F32);
    if (words == NULL || scale == NULL || !find_sizes(packed, words, scale, &sizes))
        return false;
    struct sharing sharing = {1, sizes.n_columns / sizes.n_groups, NULL};
    if (sizes.is_dense && ((sizes.n_rows | sizes.n_columns) & 7) != 0)
        return packed_misfit(packed, own, words, "%u bits are supported only if rows and columns are multiples of 8",
                             sizes.bits);
    static const char *const strategies[] = {"group", NULL};
    packed->unpacked->beyond = packed_beyond_groups(packed->input, strategies);
    if (sizes.is_by_row)
        packed->unpacked->beyond = "one scale for each row";
    if (sizes.is_dense)
        packed->unpacked->beyond = "words without unused bits";
    if (!find_groups(packed, &sizes, &sharing))
        return false;
    const struct view *codes = cut(packed->input->arena, &sizes, words, sizes.n_columns);
    if (sharing.groups == NULL && packing_partner(packed->input->set, packed->key, own, ".weight_zero_point") == NULL)
        packed->unpacked->forms->repacked = view_of_repacked(
            packed->input->arena, &(struct repacking){codes, scale, .bits = sizes.bits, .group_size = sharing.columns});
    packed->unpacked->view = scale_codes(packed, &sizes, codes, scale, &sharing);
    packed->unpacked->bits = (uint8_t)sizes.bits;
    return packed->unpacked->view != NULL;
}

const struct packing pack_quantized_packing = {
    .name = "pack-quantized",
    .titles = {"compressed-tensors"},
    .methods = {"compressed-tensors"},
    .summary = "compressed-tensors' integers of 1 to 8 bits",
    .place = AFTER_ALL,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
