/* Elementwise pairs over every finite F16 and BF16: SHA-256 of what numpy 2.2 makes of them, and torch 2.9.1 of exp(),
 * and what comes back. */
#include "models/relation/elementwise.h"

#include "base/encodings.h"
#include "models/relation/dimensions.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 65536 };

/* The finite values of a dtype of 16 bits, in the order of their bits. */
static const struct view *all_values(struct arena *arena, const struct dtype *dtype, unsigned exponent_mask)
{
    uint64_t n = 0;
    uint16_t *values = arena_array(arena, MOST, sizeof *values);
    for (unsigned bits = 0; bits < MOST; bits++)
        if ((bits & exponent_mask) != exponent_mask)
            values[n++] = (uint16_t)bits;
    return view_of_numbers(arena, dtype, 1, &n, values);
}

/* F32 up to 80, of all magnitudes and both signs. */
static const struct view *some_floats(struct arena *arena)
{
    uint64_t n = MOST;
    float *values = arena_array(arena, n, sizeof *values);
    for (uint32_t i = 0; i < MOST; i++) {
        uint32_t bits = i * 17055 + i % 2 * 0x80000000;
        memcpy(&values[i], &bits, sizeof bits);
    }
    return view_numbers(arena, 1, &n, values);
}

/* The values as F32, to be given back with free(). */
static float *values_of(const struct view *view)
{
    struct error error;
    float *values = malloc(view->n_elements * sizeof *values);
    if (!CHECK(convert_values(view, 0, view_units(view), values, &error)))
        exit(1);
    return values;
}

static void check_hash(struct arena *arena, const struct elementwise *pair, enum direction direction,
                       const struct view *view, const struct dtype *dtype, const char *sha256)
{
    char hex[SHA256_HEX + 1];
    struct error error;
    view = elementwise_apply(arena, pair, NULL, direction, view);
    void *bytes = malloc(view_bytes(view));
    CHECK(view->dtype == dtype && view->rank == 1);
    CHECK(view_read(view, 0, view_units(view), bytes, &error));
    sha256_hex(bytes, view_bytes(view), hex);
    CHECK_TEXT(hex, sha256);
    free(bytes);
}

/* The largest difference of what went there and back, rounded to the dtype that it was, of values with first <= |x| <
 * end. */
static double most_lost(struct arena *arena, const struct elementwise *pair, const struct view *view, double first,
                        double end)
{
    double most = 0;
    const struct view *there = elementwise_apply(arena, pair, NULL, FORWARD, view);
    const struct view *back = view_convert(arena, elementwise_apply(arena, pair, NULL, BACKWARD, there), view->dtype);
    float *before = values_of(view), *after = values_of(back);
    for (uint64_t i = 0; i < view->n_elements; i++)
        if (fabs((double)before[i]) >= first && fabs((double)before[i]) < end)
            most = fmax(most, fabs((double)after[i] - (double)before[i]));
    free(before);
    free(after);
    return most;
}

/* The dtypes of what comes out, which is of F32 for all but F16. */
static void hashes(struct arena *arena, const struct view *halves, const struct view *brains)
{
    check_hash(arena, &plus_one, FORWARD, halves, &f16_dtype,
               "21b150b3cbced43156b571192a55fd486ff1d689705c9b94525c87c2dc4d2d4a");
    check_hash(arena, &plus_one, BACKWARD, halves, &f16_dtype,
               "5b1e882024a2179c77f1ec281f342c9fb5fe719806367c71cc4bc8382a15cce2");
    check_hash(arena, &plus_one, FORWARD, brains, &f32_dtype,
               "1d60b8f751bf04c6948e4fd6a75a1e4428ce7a6c107aa7623bcf4c70a86ea8cb");
    check_hash(arena, &plus_one, BACKWARD, brains, &f32_dtype,
               "9fd2f5a9e5575cea846de75aeced606e5af9aad30b291f8877f42f7707372f21");
    check_hash(arena, &minus_exp, FORWARD, halves, &f16_dtype,
               "bfb0bc9d195d237bf85c1af948f562fb261f9997e6c6779d3c5914932d6a8853");
    check_hash(arena, &plus_exp, FORWARD, halves, &f16_dtype,
               "bcf9cc821b398bc315a3b8c2e341593f4da52c3fb0bec84be8866fb52a2bed0a");
}

/* What each pair says of its exactness. */
static void there_and_back(struct arena *arena, const struct view *halves, const struct view *brains)
{
    static const struct elementwise *const exponentials[] = {&minus_exp, &plus_exp, &softplus};
    const double none = 0, last_place = 0x1p-24; /* of what is below 1 */
    const struct view *floats = some_floats(arena);
    CHECK(most_lost(arena, &plus_one, brains, 0, 0x1p-16) <= last_place);
    CHECK(most_lost(arena, &plus_one, brains, 0x1p-16, HUGE_VAL) == none);
    CHECK(most_lost(arena, &plus_one, floats, 0, 1) <= last_place);
    CHECK(most_lost(arena, &plus_one, halves, 0, 1) == 0x1p-11);
    for (size_t i = 0; i < sizeof exponentials / sizeof *exponentials; i++) {
        CHECK(most_lost(arena, exponentials[i], floats, 0, 1) <= 2 * last_place);
        CHECK(most_lost(arena, exponentials[i], brains, 0x1p-14, 80) == none);
    }
    for (size_t i = 0; i < 2; i++) {
        CHECK(most_lost(arena, exponentials[i], halves, 0, 1) == 0x1p-11);
        CHECK(most_lost(arena, exponentials[i], halves, 1, 11) == none);
    }
    CHECK(most_lost(arena, &softplus, halves, 0, 1) == 0x1p-10);
}

static void factors(struct arena *arena)
{
    static const char *const names[] = {"three", "unknown", "half"};
    static const float values[] = {1, 10, -0.1F};
    const uint64_t n = 3;
    struct dimensions dimensions = {0};
    dimensions_set_factor(&dimensions, "three", 3);
    dimensions_set_factor(&dimensions, "half", 0.5F);
    const struct view *view = view_numbers(arena, 1, &n, values);
    const struct view *there = elementwise_multiply(arena, &dimensions, FORWARD, view, names, 3);
    float *numbers = values_of(there);
    CHECK(numbers[0] == 1.5F && numbers[1] == 15 && numbers[2] == -0.1F * 3 * 0.5F);
    free(numbers);
    numbers = values_of(elementwise_multiply(arena, &dimensions, BACKWARD, there, names, 3));
    CHECK(numbers[0] == 1 && numbers[1] == 10 && fabsf(numbers[2] + 0.1F) <= 0x1p-27F);
    free(numbers);
    CHECK(elementwise_multiply(arena, NULL, FORWARD, view, names, 3) == view);
    CHECK(elementwise_multiply(arena, &dimensions, FORWARD, view, names + 1, 1) == view);
}

/* Each product is rounded: 3 times 1037 is 3112 as F16, and a tenth of that 311.25; of 3111 it would be 311. */
static void factors_of_halves(struct arena *arena)
{
    static const char *const names[] = {"three", "tenth"};
    static const uint16_t value = 0x640d; /* 1037 */
    const uint64_t one = 1;
    struct dimensions dimensions = {0};
    dimensions_set_factor(&dimensions, "three", 3);
    dimensions_set_factor(&dimensions, "tenth", 0.1F);
    const struct view *half = view_of_numbers(arena, &f16_dtype, 1, &one, &value);
    const struct view *there = elementwise_multiply(arena, &dimensions, FORWARD, half, names, 2);
    float *number = values_of(there);
    CHECK(there->dtype == &f16_dtype && *number == 311.25F);
    free(number);
    number = values_of(elementwise_multiply(arena, &dimensions, BACKWARD, there, names, 2));
    CHECK(*number == 1037); /* 1038 the other way round */
    free(number);
}

int main(void)
{
    struct arena *arena = arena_new();
    const struct view *halves = all_values(arena, &f16_dtype, 0x7c00), *brains = all_values(arena, &bf16_dtype, 0x7f80);
    hashes(arena, halves, brains);
    there_and_back(arena, halves, brains);
    factors(arena);
    factors_of_halves(arena);
    arena_free(arena);
    return check_done();
}
