/* HQQ: integers of 1 to 8 bits, in groups of the flattened weight, with scales and zero points that are not integers.
 *
 * A weight B.weight of B.shape is B.W_q, a matrix [group_size, groups] if B.axis is 0, [groups, group_size] if it is 1;
 * B.scale and B.zero have one element for each group: (code - zero) * scale. With fewer than 8 bits the matrix is cut
 * by rows into slices that share words, the first slice in the most significant bits: 2, 4 or 8 slices in a byte, or 10
 * of 3 bits in an I32. */
#include "models/packings/packed.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <string.h>

static const char hqq_own[] = ".W_q";

/* Arrangements of the slices. */
static const struct slicing {
    unsigned bits, n_parts, word_bytes;
    const char *name; /* HQQ's name */
} slicings[] = {
    {8, 1, 1, "8bit_u8"},  {6, 1, 1, "8bit_u8"}, {5, 1, 1, "8bit_u8"}, {4, 2, 1, "4bit_u8"},
    {3, 10, 4, "3bit_32"}, {2, 4, 1, "2bit_u8"}, {1, 8, 1, "1bit_u8"},
};

enum { MAX_NAME = 16 };

static const struct packing_key hqq_keys[] = {{hqq_own}, {0}};

struct shape {
    int64_t sides[2], axis, bits;
    uint64_t rows, columns; /* of the matrix of groups */
    const struct slicing *slicing;
};

static bool find_shape(struct packed *packed, const struct view *words, struct shape *shape)
{
    if (!packed_integers(packed, ".shape", WORDS | I64, shape->sides, 2) ||
        !packed_integers(packed, ".axis", WORDS | I64, &shape->axis, 1) ||
        !packed_integers(packed, ".nbits", WORDS | I64, &shape->bits, 1))
        return false;
    for (size_t i = 0; i < sizeof slicings / sizeof *slicings; i++)
        if (slicings[i].bits == shape->bits)
            shape->slicing = &slicings[i];
    if (shape->slicing == NULL || shape->slicing->word_bytes != words->dtype->block_bytes || !packed_is_matrix(words) ||
        shape->axis < 0 || shape->axis > 1)
        return packed_misfit(packed, hqq_own, words, "it declares %" PRId64 " bits along axis %" PRId64, shape->bits,
                             shape->axis);
    return true;
}

/* Reports whether B.packing, if stored, names the packing of the bits. */
static bool check_packing(struct packed *packed, const struct slicing *slicing)
{
    char text[MAX_NAME];
    const struct tensor *name = packing_partner(packed->input->set, packed->key, hqq_own, ".packing");
    const struct view *view = name != NULL ? tensor_view(name, packed->input->scratch) : NULL;
    if (view == NULL || view->dtype != &u8_dtype)
        return true;
    size_t length = strlen(slicing->name);
    if (view->n_elements != length)
        return packed_misfit(packed, ".packing", view, "must hold the text '%s'", slicing->name);
    return view_read(view, 0, length, text, packed->error) &&
           (memcmp(text, slicing->name, length) == 0 ||
            error_set(packed->error, "packing is '%.*s', but %u bits need '%s'", (int)length, text, slicing->bits,
                      slicing->name));
}

/* Finds the number of groups from the scales, and checks it against all other shapes. */
static bool find_groups(const struct packed *packed, const struct view *words, const struct view *scale,
                        struct shape *shape)
{
    uint64_t n_elements, n_groups = scale->n_elements, wanted[2] = {n_groups, 1};
    uint64_t limit = words->n_elements * shape->slicing->n_parts;
    if (shape->sides[0] < 1 || shape->sides[1] < 1 || (uint64_t)shape->sides[0] > limit ||
        (uint64_t)shape->sides[1] > limit / (uint64_t)shape->sides[0])
        return packed_misfit(packed, hqq_own, words, "is too small for [%" PRId64 ", %" PRId64 "]", shape->sides[0],
                             shape->sides[1]);
    n_elements = (uint64_t)shape->sides[0] * (uint64_t)shape->sides[1];
    if (n_groups == 0 || n_elements % n_groups != 0)
        return packed_misfit(packed, ".scale", scale, "the weight has %" PRIu64 " elements", n_elements);
    shape->rows = shape->axis == 0 ? n_elements / n_groups : n_groups;
    shape->columns = n_elements / shape->rows;
    if (shape->axis == 0) {
        wanted[0] = 1;
        wanted[1] = n_groups;
    }
    return packed_check(packed, ".scale", scale, wanted[0], wanted[1]) &&
           packed_check(packed, hqq_own, words, rounded_up(shape->rows, shape->slicing->n_parts), shape->columns);
}

static const struct view *cut(struct arena *arena, const struct shape *shape, const struct view *words)
{
    const struct view *slices = packed_slices(arena, words, shape->slicing->bits, shape->slicing->n_parts);
    return packed_cut(arena, slices, shape->rows, shape->columns);
}

static bool hqq_unpack(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    struct shape shape = {0};
    const struct view *words = packed_need(packed, hqq_own, U8 | WORDS);
    const struct view *scale = words != NULL ? packed_need(packed, ".scale", F16_F32) : NULL;
    const struct view *zero = scale != NULL ? packed_need(packed, ".zero", F16_F32) : NULL;
    if (zero == NULL || !find_shape(packed, words, &shape) || !check_packing(packed, shape.slicing) ||
        !find_groups(packed, words, scale, &shape) ||
        !packed_check(packed, ".zero", zero, scale->shape[0], scale->shape[1]))
        return false;
    const struct sharing sharing = {shape.axis == 0 ? shape.rows : 1, shape.axis == 0 ? 1 : shape.columns, NULL};
    const struct view *values = view_combine(arena, cut(arena, &shape, words), SUBTRACT, zero, &sharing);
    const uint64_t sides[2] = {(uint64_t)shape.sides[0], (uint64_t)shape.sides[1]};
    packed->unpacked->view = view_reshape(arena, view_combine(arena, values, MULTIPLY, scale, &sharing), 2, sides);
    packed->unpacked->bits = (uint8_t)shape.bits;
    return true;
}

static const char *const beside[] = {
    ".group_size",
    ".packing",
    ".compute_dtype",
    ".unpack_view_dtype",
    ".view_as_float",
    ".channel_wise",
    ".optimize",
    ".round_zero",
    ".offload_meta",
    ".quant_scale",
    ".quant_zero",
    ".encoded_state_dict",
    ".stores_quant_config",
    NULL,
};

const struct packing hqq_packing = {
    .name = "hqq",
    .titles = {"HQQ"},
    .methods = {"hqq"},
    .summary = "HQQ of 1 to 8 bits",
    .place = IN_PLACE,
    .beside = beside,
    .keys = hqq_keys,
    .unpack = hqq_unpack,
};

/* SINQ: integers in groups along rows of the flattened weight, and a factor for each column besides.
 *
 * B.W_q has the rows of groups [rows of groups, group], cut into slices that share words (packed_slices()): 8, 4, 2 and
 * 1 bits in U8, 6, 5 and 3 in I32. B.meta.scale.x U8 has a number for each row of groups, and B.meta.scale.s and .m
 * F16 [1, n] turn its columns into scales, x * s + m, rounded to F16 after each step; B.meta.zero alike. The weight is
 * ((code
 * - zero) * scale), as rows of as many columns as B.meta.scale2 F16 [1, columns] has, times these.
 *
 * Source: sinq 0.2, dequantize of its linear layer. */

static const char sinq_own[] = ".W_q", columns_suffix[] = ".meta.scale2";

static const struct packing_key sinq_keys[] = {{sinq_own, columns_suffix}, {0}};

/* The names of a factor's parts. */
struct factor {
    const char *numbers, *steps, *least;
};

/* Returns the numbers of a factor, one for each row of groups; NULL, with an error, if its parts disagree. */
static const struct view *read_factor(struct packed *packed, const struct factor *factor)
{
    struct arena *arena = packed->input->arena;
    const struct view *numbers = packed_need(packed, factor->numbers, U8), *steps, *least;
    if (numbers == NULL)
        return NULL;
    if (!packed_is_matrix(numbers)) {
        packed_misfit(packed, factor->numbers, numbers, "must be a matrix");
        return NULL;
    }
    steps = packed_matrix(packed, factor->steps, F16_F32, 1, numbers->shape[1]);
    least = steps != NULL ? packed_matrix(packed, factor->least, F16_F32, 1, numbers->shape[1]) : NULL;
    if (least == NULL)
        return NULL;
    const struct sharing sharing = {numbers->shape[0], 1, NULL};
    const uint64_t column[2] = {numbers->n_elements, 1};
    const struct view *product = view_half(arena, view_combine(arena, numbers, MULTIPLY, steps, &sharing));
    return view_reshape(arena, view_half(arena, view_combine(arena, product, ADD, least, &sharing)), 2, column);
}

/* Finds the bits by how many rows of groups share a word. Few rows may fit several: then those that are said count. */
static bool find_bits(const struct packed *packed, const struct view *words, uint64_t n_rows, unsigned *ret_bits,
                      unsigned *ret_slices)
{
    static const struct {
        unsigned bits, slices, word_bytes;
    } known[] = {{8, 1, 1}, {4, 2, 1}, {2, 4, 1}, {1, 8, 1}, {6, 5, 4}, {5, 6, 4}, {3, 10, 4}};
    uint64_t said = packed_number(packed->input->config, "nbits");
    *ret_bits = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (words->dtype->block_bytes == known[i].word_bytes &&
            words->shape[0] == rounded_up(n_rows, known[i].slices) && (*ret_bits == 0 || known[i].bits == said)) {
            *ret_bits = known[i].bits;
            *ret_slices = known[i].slices;
        }
    if (*ret_bits != 0)
        return *ret_bits == 8 || packed_agrees(packed, "nbits", *ret_bits);
    return packed_misfit(packed, sinq_own, words, "there are scales for %" PRIu64 " rows of groups", n_rows);
}

static bool sinq_unpack(struct packed *packed)
{
    static const struct factor scale_parts = {".meta.scale.x", ".meta.scale.s", ".meta.scale.m"},
                               zero_parts = {".meta.zero.x", ".meta.zero.s", ".meta.zero.m"};
    struct arena *arena = packed->input->arena;
    const struct view *words = packed_need(packed, sinq_own, U8 | WORDS);
    const struct view *columns = words != NULL ? packed_need(packed, columns_suffix, F16_F32) : NULL;
    const struct view *scale = columns != NULL ? read_factor(packed, &scale_parts) : NULL;
    const struct view *zero = scale != NULL ? read_factor(packed, &zero_parts) : NULL;
    unsigned bits = 0, n_slices = 0;
    if (zero == NULL)
        return false;
    uint64_t n_rows = scale->n_elements, n_columns = columns->n_elements;
    if (!packed_is_matrix(words) || zero->n_elements != n_rows)
        return packed_misfit(packed, sinq_own, words, "there are %" PRIu64 " scales and %" PRIu64 " zero points",
                             n_rows, zero->n_elements);
    if (!find_bits(packed, words, n_rows, &bits, &n_slices))
        return false;
    if (columns->rank != 2 || columns->shape[0] != 1 || n_columns == 0 || words->shape[1] > UINT64_MAX / n_rows ||
        n_rows * words->shape[1] % n_columns != 0)
        return packed_misfit(packed, columns_suffix, columns, "the weight has %" PRIu64 " groups of %" PRIu64, n_rows,
                             words->shape[1]);
    const uint64_t sides[2] = {n_rows * words->shape[1] / n_columns, n_columns};
    const struct sharing of_group = {1, words->shape[1], NULL}, of_column = {sides[0], 1, NULL};
    const struct view *codes = packed_cut(arena, packed_slices(arena, words, bits, n_slices), n_rows, words->shape[1]);
    const struct view *values =
        view_combine(arena, view_combine(arena, codes, SUBTRACT, zero, &of_group), MULTIPLY, scale, &of_group);
    packed->unpacked->view = view_combine(arena, view_reshape(arena, values, 2, sides), MULTIPLY, columns, &of_column);
    packed->unpacked->bits = (uint8_t)bits;
    return true;
}

const struct packing sinq_packing = {
    .name = "sinq",
    .titles = {"SINQ"},
    .methods = {"sinq"},
    .summary = "SINQ of 1 to 8 bits",
    .place = IN_PLACE,
    .keys = sinq_keys,
    .unpack = sinq_unpack,
};
