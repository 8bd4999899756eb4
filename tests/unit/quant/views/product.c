/* Products as views against sums that are written out, read whole and in ranges. */
#include "quant/views/product.h"

#include "quant/views/convert.h"
#include "tests/unit/numbers.h"
#include "tests/unit/quant/levels.h"

#include <stdlib.h>

static uint64_t state = 5;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* Small whole numbers over 8: every sum of them is exact. */
static const struct view *make_matrix(struct arena *arena, unsigned rank, const uint64_t *shape, float **ret_values)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < rank; i++)
        n *= shape[i];
    *ret_values = arena_array(arena, n + 1, sizeof **ret_values);
    for (uint64_t i = 0; i < n; i++)
        (*ret_values)[i] = ((float)below(33) - 16) / 8;
    return view_numbers(arena, rank, shape, *ret_values);
}

static bool same_range(const struct view *view, const float *expected, uint64_t first, uint64_t count, size_t shift)
{
    struct error error;
    unsigned char *out = malloc(count * sizeof(float) + shift + 1);
    bool same = read_numbers(view, first, count, out + shift, &error) &&
                memcmp(out + shift, expected + first, count * sizeof(float)) == 0;
    free(out);
    return same;
}

/* n_matrices of n x r and r x m, and an addend where `scale` is not 0. */
static void compare(const char *name, uint64_t n_matrices, uint64_t n, uint64_t r, uint64_t m, float scale)
{
    struct arena *arena = arena_new();
    const uint64_t left_shape[] = {n_matrices, n, r}, right_shape[] = {n_matrices, r, m}, shape[] = {n_matrices, n, m};
    float *left, *right, *addend, *expected = arena_array(arena, n_matrices * n * m + 1, sizeof *expected);
    const struct view *l = make_matrix(arena, 3, left_shape, &left),
                      *r_view = make_matrix(arena, 3, right_shape, &right),
                      *added = make_matrix(arena, 3, shape, &addend), *a, *b;
    for (uint64_t k = 0; k < n_matrices; k++)
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t j = 0; j < m; j++) {
                double sum = 0;
                for (uint64_t t = 0; t < r; t++)
                    sum += (double)left[(k * n + i) * r + t] * (double)right[(k * r + t) * m + j];
                uint64_t at = (k * n + i) * m + j;
                expected[at] = (float)(scale != 0 ? (double)addend[at] + (double)scale * sum : sum);
            }
    const struct view *view =
        scale != 0 ? view_add_product(arena, added, scale, l, r_view) : view_product(arena, l, r_view);
    bool same =
        same_range(view, expected, 0, view->n_elements, 0) && same_range(view, expected, 0, view->n_elements, 1);
    for (int i = 0; i < 50 && view->n_elements > 0; i++) {
        uint64_t first = below(view->n_elements);
        same = same && same_range(view, expected, first, 1 + below(view->n_elements - first), below(4));
    }
    CHECK_NAMED(same, name);
    CHECK(view->rank == 3 && view->shape[1] == n && view->shape[2] == m && view->dtype == &f32_dtype);
    CHECK(view_factors(view, &a, &b) == (scale == 0));
    arena_free(arena);
}

static float any_number(void)
{
    return ((float)below(1 << 24) - (1 << 23)) * (1.0f / (float)(1 << below(20)));
}

/* Sums that are rounded are the same for every kind of processor, and those of one term after the other. */
static void compare_kernels(uint64_t n, uint64_t r, uint64_t m)
{
    enum { GAP = 3 };
    float *left = malloc((n * r + 1) * sizeof *left), *right = malloc((r * m + 1) * sizeof *right);
    double *expected = calloc(n * (m + GAP) + 1, sizeof *expected), *sums = malloc((n * (m + GAP) + 1) * sizeof *sums);
    for (uint64_t i = 0; i < n * r; i++)
        left[i] = any_number();
    for (uint64_t i = 0; i < r * m; i++)
        right[i] = any_number();
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < m; j++)
            for (uint64_t k = 0; k < r; k++)
                expected[i * (m + GAP) + j] += (double)left[i * r + k] * (double)right[k * m + j];
    for (enum cpu_level level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
        if (!level_runs(level, "sums"))
            continue;
        memset(sums, 0, (n * (m + GAP) + 1) * sizeof *sums);
        add_terms_at(level)(left, right, n, r, m, sums, m + GAP);
        CHECK_NAMED(memcmp(sums, expected, (n * (m + GAP) + 1) * sizeof *sums) == 0, cpu_level_name(level));
    }
    free(left);
    free(right);
    free(expected);
    free(sums);
}

int main(void)
{
    compare_kernels(9, 11, 1037);
    compare_kernels(4, 8, 16);
    compare_kernels(3, 3, 5);
    compare_kernels(1, 64, 513);
    compare("one", 1, 1, 1, 1, 0);
    compare("small", 1, 7, 3, 5, 0);
    compare("several matrices", 4, 9, 2, 11, 0);
    compare("more rows than are read at once", 2, 300, 4, 6, 0);
    compare("a rank that is summed in parts", 1, 3, 1300, 20, 0);
    compare("columns that are read in parts", 1, 5, 400, 700, 0);
    compare("added to another", 1, 40, 8, 65, 0.5f);
    compare("added to several", 3, 17, 600, 5, -2);
    compare("no rows", 1, 0, 3, 5, 0);
    compare("no terms", 1, 3, 0, 5, 2);
    return check_done();
}
