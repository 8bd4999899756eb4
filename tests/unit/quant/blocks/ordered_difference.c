/* Differences against nextafterf(), which is one step in the order of F32; codes of any bits give the numbers back; and
 * every level gives the bytes of the portable one, for counts that leave a rest and at odd addresses. */
#include "quant/blocks/ordered_difference.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "tests/unit/quant/levels.h"

#include <math.h>

enum { MOST = 150, ROOM = 16, GUARD = 0xA5 };

static uint64_t state = 9;

static uint32_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static uint64_t code_of(float number, float base)
{
    unsigned char bytes[4], base_bytes[4];
    memcpy(bytes, &number, 4);
    memcpy(base_bytes, &base, 4);
    little_endian(bytes, 1, 4);
    little_endian(base_bytes, 1, 4);
    difference_kernels(4)->code(bytes, base_bytes, 1);
    return read_le(bytes, 4);
}

static void check_steps(void)
{
    static const float from[] = {1, -1, 0x1.fffffep3f, -8, 1e-40f, -1e-40f, 3e38f, 0x1p-126f, 0};
    bool up = true, down = true;
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        float a = nextafterf(from[i], INFINITY), b = nextafterf(a, INFINITY);
        up &= code_of(from[i], from[i]) == 0 && code_of(a, from[i]) == 2 && code_of(b, from[i]) == 4;
        down &= code_of(from[i], a) == 1 && code_of(from[i], b) == 3;
    }
    CHECK_NAMED(up, "a step up is 2, two are 4");
    CHECK_NAMED(down, "a step down is 1, two are 3");
    CHECK(code_of(-0.f, 0) == 1 && code_of(0, -0.f) == 2);
}

/* BF16 and F16 have the order of F32 with as many bits: for BF16 the upper half of it. */
static void check_halves(void)
{
    bool equal = true;
    for (int i = 0; i < 100000; i++) {
        uint32_t a = random_bits() & 0xFFFF, b = random_bits() & 0xFFFF;
        int32_t step_a = a < 0x8000 ? (int32_t)a : -1 - (int32_t)(a & 0x7FFF);
        int32_t step_b = b < 0x8000 ? (int32_t)b : -1 - (int32_t)(b & 0x7FFF);
        int32_t difference = (int16_t)(step_a - step_b);
        unsigned expected = (unsigned)(difference < 0 ? -2 * difference - 1 : 2 * difference);
        unsigned char number[2] = {a & 255, a >> 8 & 255}, base[2] = {b & 255, b >> 8 & 255};
        difference_kernels(2)->code(number, base, 1);
        equal &= read_le(number, 2) == expected;
    }
    CHECK_NAMED(equal, "codes of 16 bits");
}

static bool returns(unsigned width, enum cpu_level level, size_t n, size_t odd)
{
    unsigned char numbers[MOST * 4 + ROOM], base[MOST * 4 + ROOM], codes[MOST * 4 + ROOM], nibbles[MOST + ROOM];
    unsigned char portable[MOST * 4 + ROOM], portable_nibbles[MOST + ROOM];
    const struct difference_kernels *kernels = difference_kernels_at(width, level);
    memset(nibbles, GUARD, sizeof nibbles);
    memset(portable_nibbles, GUARD, sizeof portable_nibbles);
    for (size_t i = 0; i < sizeof numbers; i++) {
        codes[i] = portable[i] = numbers[i] = (unsigned char)random_bits();
        base[i] = (unsigned char)random_bits();
    }
    kernels->code(codes + odd, base + odd, n);
    kernels->take_nibbles(codes + odd, n, nibbles + odd);
    difference_kernels_at(width, CPU_PORTABLE)->code(portable + odd, base + odd, n);
    difference_kernels_at(width, CPU_PORTABLE)->take_nibbles(portable + odd, n, portable_nibbles + odd);
    bool equal = memcmp(codes, portable, sizeof codes) == 0 && memcmp(nibbles, portable_nibbles, sizeof nibbles) == 0;
    kernels->give_nibbles(codes + odd, n, nibbles + odd);
    kernels->restore(codes + odd, base + odd, n);
    return equal && memcmp(codes, numbers, sizeof codes) == 0 && nibbles[odd + (n + 1) / 2] == GUARD;
}

static void check_level(enum cpu_level level)
{
    char name[64];
    for (unsigned width = 2; width <= 4; width *= 2) {
        bool all = true;
        for (size_t n = 0; n <= MOST; n++)
            all &= returns(width, level, n, n % 5);
        snprintf(name, sizeof name, "width %u comes back, %s", width, cpu_level_name(level));
        CHECK_NAMED(all, name);
    }
}

int main(void)
{
    check_steps();
    check_halves();
    for (enum cpu_level level = CPU_PORTABLE; level < CPU_LEVELS; level++)
        if (level_runs(level, "differences"))
            check_level(level);
    return check_done();
}
