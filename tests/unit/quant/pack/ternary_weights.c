/* Sums, and weights made ternary, as torch computes them: expected values of torch 2.9.1 on one thread. */
#include "quant/pack/ternary_weights.h"
#include "quant/arithmetic/torch_sum.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <stdlib.h>

static float number(size_t i)
{
    return (float)(i * 7919 % 10007) / 16384 - 0.25f;
}

/* The second one is so long that partial sums are kept longer. */
static void check_sum(void)
{
    enum { AT_ONCE = 32 * 64 };
    static const struct {
        size_t n;
        float sum;
    } cases[] = {{100000, 0x1.ecdbb8p+13f}, {20000011, 0x1.810a38p+21f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float values[AT_ONCE];
        size_t first = 0, n = 0;
        struct torch_sum sum;
        torch_sum_begin(&sum, cases[i].n);
        for (; first < cases[i].n; first += n) {
            n = cases[i].n - first < AT_ONCE ? cases[i].n - first : AT_ONCE;
            for (size_t j = 0; j < n; j++)
                values[j] = fabsf(number(first + j));
            torch_sum_add(&sum, values, n - n % TORCH_SUM_STEP);
        }
        CHECK(torch_sum_end(&sum, values + n - n % TORCH_SUM_STEP, n % TORCH_SUM_STEP) == cases[i].sum);
    }
}

static const struct view *of_numbers(struct arena *arena, const struct dtype *dtype, uint64_t n)
{
    float *values = arena_alloc(arena, (size_t)n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = number(i);
    return view_convert(arena, view_numbers(arena, 1, &n, values), dtype);
}

static void check_ternary(struct arena *arena)
{
    enum { N = 100000 };
    static const float mean = 0x1.42ffe6p-3f;
    struct error error;
    float part[2], values[4];
    const struct view *view = view_ternary(arena, of_numbers(arena, &f32_dtype, N));
    CHECK(view->dtype == &f32_dtype && read_numbers(view, N - 2, 2, part, &error) &&
          read_numbers(view, 0, 4, values, &error));
    CHECK(part[1] == mean && values[0] == -mean && values[1] == mean && values[2] == mean);
    CHECK(values[3] == 0 && signbit(values[3]));

    uint16_t halves[4];
    view = view_ternary(arena, of_numbers(arena, &f16_dtype, N));
    CHECK(view->dtype == &f16_dtype && read_numbers(view, 0, 4, halves, &error));
    CHECK(halves[0] == (uint16_t)-20212 && halves[1] == 12556 && halves[3] == (uint16_t)-32768);
}

/* The mean is at least 1e-5. */
static void check_small(struct arena *arena)
{
    static const float small[] = {1e-7f, -1e-7f, 0, 3e-5f, -9e-6f}, least = 0x1.4f8b58p-17f;
    const uint64_t n = 5, none = 0;
    float values[5];
    struct error error;
    const struct view *view = view_ternary(arena, view_numbers(arena, 1, &n, small));
    CHECK(read_numbers(view, 0, n, values, &error));
    CHECK(values[0] == 0 && values[1] == 0 && values[2] == 0 && values[3] == least && values[4] == -least);
    CHECK(read_numbers(view_ternary(arena, view_numbers(arena, 1, &none, small)), 0, 0, values, &error));
}

int main(void)
{
    struct arena *arena = arena_new();
    check_sum();
    check_ternary(arena);
    check_small(arena);
    arena_free(arena);
    return check_done();
}
