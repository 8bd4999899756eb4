/* Weighted sums of BF16 numbers: expected values are exact fractions in Python, rounded after each operation; fast
 * kernels give the bits of the portable one for any numbers, at all alignments, without touching what is around. */
#include "quant/arithmetic/torch_sum.h"

#include "base/little_endian.h"
#include "tests/unit/quant/levels.h"

#include <math.h>
#include <string.h>

enum { N = 19, TERMS = 5, MOST = 1100, ROOM = 32 };

static void encode(const float *values, unsigned char *numbers, size_t n)
{
    dtype_kernels_at(&bf16_dtype, CPU_PORTABLE).encode(values, numbers, n);
}

static void check_fractions(enum cpu_level level)
{
    static const uint16_t sums[N] = {0xbdd9, 0x3d92, 0xbd64, 0xb99a, 0xbe02, 0x3e31, 0x3d39, 0xbda9, 0xbcda, 0xbe1e,
                                     0x3e16, 0x3c9a, 0x3d98, 0xbd59, 0xbe39, 0x3df6, 0xbbfa, 0x3d45, 0xbda3};
    static const uint16_t divided[N] = {0xbdf1, 0x3da3, 0xbd7d, 0xb9ab, 0xbe11, 0x3e45, 0x3d4d, 0xbdbb, 0xbcf3, 0xbe2f,
                                        0x3e26, 0x3cab, 0x3da9, 0xbd71, 0xbe4d, 0x3e08, 0xbc0b, 0x3d5b, 0xbdb5};
    static const float weights[3] = {0.5f, 0.3f, 0.2f};
    unsigned char numbers[3][2 * N], found[2 * N];
    const unsigned char *const terms[3] = {numbers[0], numbers[1], numbers[2]};
    float values[N];
    for (int model = 0; model < 3; model++) {
        for (int i = 0; i < N; i++)
            values[i] = (float)((i * 7919 + model * 104729) % 10007 - 5003) / 16384;
        encode(values, numbers[model], N);
    }
    weighted_sum_at(level)(&(struct weighted_terms){terms, weights, 3, 1}, 0, N, found);
    little_endian(found, N, sizeof *sums);
    CHECK_NAMED(memcmp(found, sums, sizeof sums) == 0, cpu_level_name(level));
    weighted_sum_at(level)(&(struct weighted_terms){terms, weights, 3, 0.9f}, 0, N, found);
    little_endian(found, N, sizeof *divided);
    CHECK_NAMED(memcmp(found, divided, sizeof divided) == 0, cpu_level_name(level));
}

static uint64_t state = 42;

static unsigned char random_byte(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned char)(state >> 56);
}

static bool is_nan(const unsigned char *number)
{
    return (number[1] & 0x7f) == 0x7f && (number[0] & 0x80) != 0 && (number[0] & 0x7f) != 0;
}

/* Reports whether numbers are equal, where NaN is equal to NaN, and all other bytes are. */
static bool same(const unsigned char *some, const unsigned char *others, size_t n, size_t n_bytes)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(some + 2 * i, others + 2 * i, 2) != 0 && !(is_nan(some + 2 * i) && is_nan(others + 2 * i)))
            return false;
    return memcmp(some + 2 * n, others + 2 * n, n_bytes - 2 * n) == 0;
}

static void check_level(enum cpu_level level)
{
    static unsigned char numbers[TERMS][2 * MOST + ROOM], some[2 * MOST + ROOM], others[2 * MOST + ROOM];
    static const float weights[TERMS] = {0.7f, -0.3f, 0, INFINITY, 0x1p-130f}, divisors[] = {1, 0.9f, -3, 0};
    const unsigned char *terms[TERMS];
    bool good = true;
    for (size_t count = 0; count < MOST; count += count < 70 ? 1 : 103) {
        size_t n_terms = 1 + count % TERMS, skew = count % 3, first = count % 5;
        for (size_t i = 0; i < n_terms; i++) {
            for (size_t j = 0; j < sizeof numbers[i]; j++)
                numbers[i][j] = random_byte();
            terms[i] = numbers[i] + (skew + i) % 3;
        }
        const struct weighted_terms sum = {terms, weights, n_terms, divisors[count % 4]};
        memset(some, 0xa5, sizeof some);
        memset(others, 0xa5, sizeof others);
        weighted_sum_portable(&sum, first, count, some + skew);
        weighted_sum_at(level)(&sum, first, count, others + skew);
        good &= memcmp(some, others, skew) == 0 && same(some + skew, others + skew, count, sizeof some - skew);
    }
    CHECK_NAMED(good, cpu_level_name(level));
}

int main(void)
{
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
        if (!level_runs((enum cpu_level)level, "weighted sums"))
            continue;
        check_fractions((enum cpu_level)level);
        check_level((enum cpu_level)level);
    }
    return check_done();
}
