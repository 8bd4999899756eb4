/* SINQ: integers in groups along rows of the flattened weight, and a factor for each column besides.
 *
 * B.W_q has the rows of groups [rows of groups, group], cut into slices that share words (packed_slices()): 4 bits in
 * U8, 3 in I32, also 8, 2 and 1 in U8. B.meta.scale.x U8 has a number for each row of groups, and B.meta.scale.s and .m
 * F16 [1, n] turn its columns into scales, x * s + m, rounded to F16 after each step; B.meta.zero alike. The weight is
 * ((code
 * - zero) * scale), as rows of as many columns as B.meta.scale2 F16 [1, columns] has, times these.
 *
 * Source: sinq 0.2, dequantize of its linear layer. */
#include "models/packings/packed.h"
#include "quant/views/convert.h"

#include <inttypes.h>

static const char own[] = ".W_q", columns_suffix[] = ".meta.scale2";

static const struct packing_key keys[] = {{own, columns_suffix}, {0}};

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

/* Finds the bits by how many rows of groups share a word. */
static bool find_bits(const struct packed *packed, const struct view *words, uint64_t n_rows, unsigned *ret_bits,
                      unsigned *ret_slices)
{
    static const struct {
        unsigned bits, slices, word_bytes;
    } known[] = {{8, 1, 1}, {4, 2, 1}, {2, 4, 1}, {1, 8, 1}, {3, 10, 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (words->dtype->block_bytes == known[i].word_bytes &&
            words->shape[0] == rounded_up(n_rows, known[i].slices)) {
            *ret_bits = known[i].bits;
            *ret_slices = known[i].slices;
            return *ret_bits == 8 || packed_agrees(packed, "nbits", *ret_bits);
        }
    return packed_misfit(packed, own, words, "there are scales for %" PRIu64 " rows of groups", n_rows);
}

static bool unpack(struct packed *packed)
{
    static const struct factor scale_parts = {".meta.scale.x", ".meta.scale.s", ".meta.scale.m"},
                               zero_parts = {".meta.zero.x", ".meta.zero.s", ".meta.zero.m"};
    struct arena *arena = packed->input->arena;
    const struct view *words = packed_need(packed, own, U8 | WORDS);
    const struct view *columns = words != NULL ? packed_need(packed, columns_suffix, F16_F32) : NULL;
    const struct view *scale = columns != NULL ? read_factor(packed, &scale_parts) : NULL;
    const struct view *zero = scale != NULL ? read_factor(packed, &zero_parts) : NULL;
    unsigned bits = 0, n_slices = 0;
    if (zero == NULL)
        return false;
    uint64_t n_rows = scale->n_elements, n_columns = columns->n_elements;
    if (!packed_is_matrix(words) || zero->n_elements != n_rows)
        return packed_misfit(packed, own, words, "there are %" PRIu64 " scales and %" PRIu64 " zero points", n_rows,
                             zero->n_elements);
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
    .keys = keys,
    .unpack = unpack,
};
