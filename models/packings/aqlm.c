/* AQLM: sums of vectors from codebooks.
 *
 * A weight B.weight [rows, columns] is B.codes [rows / g, columns / h, books] in I8 or I16, modulo the number of
 * vectors in a book; B.codebooks [books, vectors, g, h]; and B.scales [rows / g, 1, 1, 1]: the sum of a vector from
 * each book, first to last, times the scale. */
#include "models/packings/packed.h"
#include "quant/views/unpack.h"

#include <inttypes.h>

static const char own[] = ".codes";

static const struct packing_key keys[] = {{own, ".codebooks"}, {0}};

static bool check(const struct packed *packed, const struct view *codes, const struct view *books,
                  const struct view *scales)
{
    if (codes->rank != 3 || codes->n_elements == 0 || codes->shape[2] > CODEBOOKS_MAX)
        return packed_misfit(packed, own, codes, "must hold codes of rows, columns and books");
    if (books->rank != 4 || books->n_elements == 0 || books->shape[0] != codes->shape[2])
        return packed_misfit(packed, ".codebooks", books, "must hold %" PRIu64 " books of matrices", codes->shape[2]);
    uint64_t n_vectors = books->shape[1];
    if ((n_vectors & (n_vectors - 1)) != 0 || n_vectors > CODEBOOKS_MAX_VECTORS ||
        books->n_elements > CODEBOOKS_MAX_ELEMENTS)
        return packed_misfit(packed, ".codebooks", books, "must hold a power of two of vectors, %d at most",
                             CODEBOOKS_MAX_VECTORS);
    if (scales->n_elements != codes->shape[0])
        return packed_misfit(packed, ".scales", scales, "must hold one scale for each of %" PRIu64 " rows",
                             codes->shape[0]);
    return packed_agrees(packed, "num_codebooks", books->shape[0]) &&
           packed_agrees(packed, "nbits_per_codebook", (uint64_t)__builtin_ctzll(n_vectors)) &&
           packed_agrees(packed, "out_group_size", books->shape[2]) &&
           packed_agrees(packed, "in_group_size", books->shape[3]);
}

static bool unpack(struct packed *packed)
{
    static const unsigned exchanged[4] = {0, 2, 1, 3};
    struct arena *arena = packed->input->arena;
    const struct view *codes, *books, *scales;
    if ((codes = packed_need(packed, own, I8 | U8 | I16)) == NULL ||
        (books = packed_need(packed, ".codebooks", F16_F32)) == NULL ||
        (scales = packed_need(packed, ".scales", F16_F32)) == NULL || !check(packed, codes, books, scales))
        return false;
    uint64_t n_rows = codes->shape[0], n_groups = codes->shape[1], g = books->shape[2], h = books->shape[3];
    uint64_t flat[2] = {n_rows, n_groups * g * h}, split[4] = {n_rows, n_groups, g, h}, one[2] = {n_rows, 1};
    const struct sharing sharing = {1, flat[1], NULL};
    const struct view *sums = view_reshape(arena, view_codebooks(arena, codes, books), 2, flat);
    sums = view_combine(arena, sums, MULTIPLY, view_reshape(arena, scales, 2, one), &sharing);
    if (g > 1)
        sums = view_permute(arena, view_reshape(arena, sums, 4, split), exchanged);
    packed->unpacked->view = view_reshape(arena, sums, 2, (const uint64_t[]){n_rows * g, n_groups * h});
    packed->unpacked->bits = (uint8_t)((uint64_t)__builtin_ctzll(books->shape[1]) * books->shape[0] / (g * h));
    return true;
}

const struct packing aqlm_packing = {
    .name = "aqlm",
    .titles = {"AQLM"},
    .methods = {"aqlm"},
    .summary = "AQLM's sums of codebooks",
    .place = IN_PLACE,
    .keys = keys,
    .unpack = unpack,
};
