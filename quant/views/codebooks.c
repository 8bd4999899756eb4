#include "quant/views/unpack.h"

#include "base/checked.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CODES_BYTES = 16 * 1024, LARGE_ELEMENTS = 1 << 16 };

struct coded {
    struct view view;
    const struct view *codes, *books;
    uint64_t n_books, n_vectors, length; /* of a vector */
};

/* Sums the vectors that one group of codes selects. */
static void sum_up(const struct coded *coded, const float *table, const unsigned char *codes, float *sum)
{
    unsigned size = coded->codes->dtype->block_bytes;
    for (uint64_t book = 0; book < coded->n_books; book++) {
        uint64_t code = read_le(codes + book * size, size) & (coded->n_vectors - 1);
        const float *vector = table + (book * coded->n_vectors + code) * coded->length;
        for (uint64_t i = 0; i < coded->length; i++)
            sum[i] = book == 0 ? vector[i] : sum[i] + vector[i];
    }
}

static bool coded_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct coded *coded = (const struct coded *)view;
    unsigned char codes[CODES_BYTES], *to = out;
    uint64_t group_bytes = coded->n_books * coded->codes->dtype->block_bytes, most = sizeof codes / group_bytes;
    float *table = memory_alloc((coded->books->n_elements + coded->length) * sizeof *table);
    float *sum = table + coded->books->n_elements;
    bool good = convert_values(coded->books, 0, coded->books->n_elements, table, error);
    uint64_t end = first + count;
    while (good && first < end) {
        uint64_t group = first / coded->length, n = (end - 1) / coded->length - group + 1;
        n = n < most ? n : most;
        good = view_read(coded->codes, group * coded->n_books, n * coded->n_books, codes, error);
        for (uint64_t i = 0; good && i < n; i++) {
            uint64_t from = first % coded->length, kept = coded->length - from;
            kept = kept < end - first ? kept : end - first;
            sum_up(coded, table, codes + i * group_bytes, sum);
            f32_dtype.kernels[CPU_PORTABLE].encode(sum + from, to, kept);
            to += kept * sizeof *sum;
            first += kept;
        }
    }
    free(table);
    return good;
}

static void coded_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct coded *coded = (const struct coded *)view;
    uint64_t group = first / coded->length, n_groups = (first + count - 1) / coded->length - group + 1;
    convert_depends(coded->books, encoding_of(&f32_dtype), 0, coded->books->n_elements, to);
    view_depends(coded->codes, group * coded->n_books, n_groups * coded->n_books, to);
}

static const struct view_op coded_op = {.name = "codebooks", .read = coded_read, .depends = coded_depends};

const struct view *view_codebooks(struct arena *arena, const struct view *codes, const struct view *books)
{
    assert(codes->rank == 3 && books->rank == 4 && books->shape[0] == codes->shape[2]);
    assert(books->n_elements <= CODEBOOKS_MAX_ELEMENTS && codes->dtype->block_elements == 1);
    assert(codes->shape[2] <= CODEBOOKS_MAX && codes->dtype->block_bytes <= 2);
    struct coded *coded = arena_alloc(arena, sizeof *coded);
    uint64_t length = books->shape[2] * books->shape[3];
    view_init(&coded->view, arena, &coded_op, &f32_dtype, 3,
              (const uint64_t[]){codes->shape[0], codes->shape[1], length});
    coded->codes = codes;
    coded->books = books;
    coded->n_books = books->shape[0];
    coded->n_vectors = books->shape[1];
    coded->length = length;
    coded->view.scattered = codes->scattered || books->n_elements > LARGE_ELEMENTS;
    return &coded->view;
}
