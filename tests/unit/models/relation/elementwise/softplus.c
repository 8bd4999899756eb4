/* log(1 + exp(x)) as torch computes it: expected values of torch 2.9.1 on a processor with AVX-512, as bits. */
#include "models/relation/elementwise.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <string.h>

enum { N = 40, N_IN_STEPS = 32 };

static const uint32_t inputs[] = {
    0xc01d7740, 0x3f97ec20, 0x402c9726, 0xc2f00000, 0x41c80000, 0xc2b40000, 0x00000000, 0x419ffdf4,
    0xbe99999a, 0xbfcda2fe, 0xc05eaa92, 0xbfb0b34a, 0x40080a1d, 0x404272f4, 0x3f30f1de, 0x40514fcc,
    0xc097ef91, 0xbf794466, 0x40b8ee6c, 0xbf7d72f2, 0x3f1867e2, 0x40162870, 0x40478238, 0xc00b1b27,
    0xbed007f4, 0x400f725b, 0x3feaeff0, 0x40b34ea6, 0x40f11d27, 0xc070eb34, 0x401cc278, 0xc04c8e7d,
    0xc09d2770, 0x3ef23ed8, 0x3f97f6ea, 0xc0834d92, 0xbe9aba58, 0x3f3606f7, 0x3ff2f32e, 0xbe8cd0ee,
};
static const uint32_t outputs[] = {
    0x3da7d4e5, 0x3fba0347, 0x4030c435, 0x00000000, 0x41c80000, 0x0008ec28, 0x3f317218, 0x419ffdf4,
    0x3f0dea39, 0x3e3b316a, 0x3cf8c539, 0x3e65b1bd, 0x400f4184, 0x404571cf, 0x3f8c7499, 0x4053b2a8,
    0x3c0d6c01, 0x3ea40be1, 0x40b907b5, 0x3ea1c462, 0x3f8469cb, 0x401c0249, 0x404a4807, 0x3ddcaebe,
    0x3f02af4f, 0x4015e9b3, 0x3ffde26d, 0x40b36cc9, 0x40f12187, 0x3cbbbe58, 0x40220f6b, 0x3d244295,
    0x3bf070c2, 0x3f751aca, 0x3fba0b8c, 0x3c8638af, 0x3f0dacd3, 0x3f8e2773, 0x40026979, 0x3f10a794,
};

static const struct view *map(struct arena *arena, const float *values, uint64_t n)
{
    return elementwise_apply(arena, &softplus, NULL, FORWARD, view_numbers(arena, 1, &n, values));
}

static void check_bits(struct arena *arena)
{
    float values[N], results[N];
    uint32_t bits[N];
    struct error error;
    memcpy(values, inputs, sizeof values);
    CHECK(read_numbers(map(arena, values, N), 0, N, results, &error));
    memcpy(bits, results, sizeof bits);
    for (size_t i = 0; i < N_IN_STEPS; i++)
        CHECK(bits[i] == outputs[i]);
    /* Those that are left are by the C library, whose versions differ in the last bit. */
    for (size_t i = N_IN_STEPS; i < N; i++)
        CHECK(bits[i] - outputs[i] + 1 <= 2);
}

/* What is read of it does not depend on what else is read. */
static void check_parts(struct arena *arena)
{
    float values[N], whole[N], part[5];
    struct error error;
    memcpy(values, inputs, sizeof values);
    const struct view *view = map(arena, values, N);
    CHECK(read_numbers(view, 0, N, whole, &error) && read_numbers(view, 30, 5, part, &error));
    CHECK(memcmp(whole + 30, part, sizeof part) == 0);
}

static void check_odd(struct arena *arena)
{
    float values[] = {NAN, INFINITY, -INFINITY}, results[3];
    struct error error;
    CHECK(read_numbers(map(arena, values, 3), 0, 3, results, &error));
    CHECK(isnan(results[0]) && isinf(results[1]) && results[2] == 0);
}

int main(void)
{
    struct arena *arena = arena_new();
    check_bits(arena);
    check_parts(arena);
    check_odd(arena);
    arena_free(arena);
    return check_done();
}
