/* Every fast kernel gives the bits of its portable twin: over blocks of all kinds, at all alignments, for counts that
 * leave a rest, and without touching what is around the output. */
#include "quant/blocks/codes.h"
#include "quant/blocks/dtype.h"

#include "tests/unit/quant/levels.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_BLOCKS = 37, MAX_ELEMENTS = MAX_BLOCKS * 256, MAX_BYTES = MAX_ELEMENTS * 16, ROOM = 64 };

static uint64_t state = 42;

static uint32_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float random_within_one(void)
{
    return (float)(int32_t)random_bits() * 0x1p-31f;
}

static float bell(void)
{
    return random_within_one() + random_within_one() + random_within_one() + random_within_one();
}

/* Of NaN only one: C leaves open which of two is the result of an operation on both. */
static float any_float(void)
{
    uint32_t bits = random_bits();
    float value;
    memcpy(&value, &bits, sizeof value);
    return isnan(value) ? NAN : value;
}

static const float odd_values[] = {INFINITY, -INFINITY, NAN, -NAN, 3e38f, -3e38f, 1, 0, -0.0f};

/* The kinds of blocks: value `i` of a row of them, where `block` changes every 256. */

static float weights(unsigned i, float block)
{
    (void)i, (void)block;
    return bell() * 0.02f;
}

static float heavy_tails(unsigned i, float block)
{
    (void)i, (void)block;
    float x = bell();
    return x / (fabsf(random_within_one()) + 1e-4f);
}

static float constants(unsigned i, float block)
{
    return i % 512 < 256 ? block : -block;
}

static float any_zero(void)
{
    return random_bits() % 2 ? 0 : -0.0f;
}

static float zeros(unsigned i, float block)
{
    (void)block;
    if (i / 256 % 3 == 2)
        return any_zero();
    return i / 256 % 3 == 0 ? 0 : -0.0f;
}

static float zeros_and_few(unsigned i, float block)
{
    (void)block;
    float few = bell();
    if (i / 64 % 3 != 0)
        few = copysignf(few, i / 64 % 3 == 1 ? 1 : -1);
    return random_bits() % 16 ? any_zero() : few;
}

static float ramps(unsigned i, float block)
{
    return (float)(i % 256) * block - 100 * block;
}

static float outliers(unsigned i, float block)
{
    return i % 97 == 5 ? block * 1000 : bell() * 0.01f;
}

static float ties(unsigned i, float block)
{
    (void)i, (void)block;
    return (float)((int)(random_bits() % 33) - 16) * 0.5f;
}

static float ties_of_a_scale(unsigned i, float block)
{
    return i % 32 == 7 ? -8 * block : (float)((int)(random_bits() % 31) - 15) * 0.5f * block;
}

/* Every second sixteen values are such as Q3_K's search would go over eight times if five were not the most. */
static float slow_to_settle(unsigned i, float block)
{
    static const float slowest[16] = {-58, 13, 48, -55, -77, -64, 23, 73, 4, 26, 51, 37, -26, 60, -3, 75};
    (void)block;
    return i / 16 % 2 == 0 ? ldexpf(slowest[i % 16], (int)(i / 16 % 7)) : random_within_one() * 100;
}

static float powers_of_two(unsigned i, float block)
{
    (void)block;
    return nextafterf(ldexpf(random_bits() % 2 ? 1 : -1, (int)(i / 32 % 260) - 140), random_bits() % 2 ? INFINITY : 0);
}

static float subnormal(unsigned i, float block)
{
    (void)block;
    return ldexpf(bell(), -126 - (int)(i / 32 % 24));
}

static float tiny(unsigned i, float block)
{
    (void)block;
    return ldexpf(bell(), -40 - (int)(i / 32 % 90));
}

static float huge(unsigned i, float block)
{
    (void)i, (void)block;
    return bell() * 8e37f;
}

static float too_large_for_f16(unsigned i, float block)
{
    (void)i, (void)block;
    return bell() * 1e6f;
}

static float some_infinite(unsigned i, float block)
{
    (void)block;
    if (i % 71 != 3)
        return bell();
    return random_bits() % 2 ? INFINITY : -INFINITY;
}

static float some_nan(unsigned i, float block)
{
    (void)block;
    return i % 29 == 3 ? NAN : bell();
}

static float all_infinite_or_nan(unsigned i, float block)
{
    (void)block;
    return i / 256 % 4 == 3 ? odd_values[random_bits() % 4] : odd_values[i / 256 % 4];
}

static float odd_mix(unsigned i, float block)
{
    (void)i, (void)block;
    return odd_values[random_bits() % (sizeof odd_values / sizeof *odd_values)];
}

static float any_bits(unsigned i, float block)
{
    (void)i, (void)block;
    return any_float();
}

static const struct {
    const char *name;
    float (*value)(unsigned i, float block);
} kinds[] = {
    {"weights", weights},
    {"heavy tails", heavy_tails},
    {"constants", constants},
    {"zeros", zeros},
    {"zeros and few", zeros_and_few},
    {"ramps", ramps},
    {"outliers", outliers},
    {"ties", ties},
    {"ties of a scale", ties_of_a_scale},
    {"slow to settle", slow_to_settle},
    {"powers of two", powers_of_two},
    {"subnormal", subnormal},
    {"tiny", tiny},
    {"huge", huge},
    {"too large for F16", too_large_for_f16},
    {"some infinite", some_infinite},
    {"some NaN", some_nan},
    {"all infinite or NaN", all_infinite_or_nan},
    {"odd mix", odd_mix},
    {"any bits", any_bits},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static float values[1 + MAX_ELEMENTS], decoded[2][1 + MAX_ELEMENTS + ROOM];
static unsigned char blocks[2][ROOM + MAX_BYTES + ROOM];

static bool same_encoded(struct encoding encoding, enum cpu_level level, size_t n_blocks, size_t skew)
{
    size_t n_bytes = n_blocks * encoding.dtype->block_bytes;
    memset(blocks, 0xa5, sizeof blocks);
    encoding_kernels_at(encoding, CPU_PORTABLE).encode(values + skew % 2, blocks[0] + skew, n_blocks);
    encoding_kernels_at(encoding, level).encode(values + skew % 2, blocks[1] + skew, n_blocks);
    return memcmp(blocks[0], blocks[1], skew + n_bytes + ROOM) == 0;
}

/* Of every value and block, in all magnitudes, and some of none. */
static float importance[MAX_ELEMENTS], mean_squares[MAX_BLOCKS];

static void make_importance(void)
{
    for (int i = 0; i < MAX_ELEMENTS; i++)
        importance[i] = i / 256 % 5 == 4 || random_bits() % 50 == 0
                            ? 0
                            : ldexpf(fabsf(bell()), (int)(random_bits() % 9) * (i / 256 % 5));
    for (int i = 0; i < MAX_BLOCKS; i++)
        mean_squares[i] = fabsf(bell());
}

static bool same_weighted(const struct dtype *dtype, enum cpu_level level, size_t n_blocks, size_t skew)
{
    size_t n_bytes = n_blocks * dtype->block_bytes;
    memset(blocks, 0xa5, sizeof blocks);
    dtype_kernels_at(dtype, CPU_PORTABLE)
        .encode_weighted(values + skew % 2, importance, mean_squares, blocks[0] + skew, n_blocks);
    dtype_kernels_at(dtype, level)
        .encode_weighted(values + skew % 2, importance, mean_squares, blocks[1] + skew, n_blocks);
    return memcmp(blocks[0], blocks[1], skew + n_bytes + ROOM) == 0;
}

static void check_encode(struct encoding encoding, enum cpu_level level, bool weighted)
{
    size_t most = encoding.dtype->encode_cost < 20000 ? MAX_BLOCKS : 3; /* slow formats have no batches */
    for (int kind = 0; kind < N_KINDS; kind++) {
        float block = 0;
        for (unsigned i = 0; i < 1 + MAX_ELEMENTS; i++) {
            if (i % 256 == 0)
                block = bell();
            values[i] = kinds[kind].value(i, block);
        }
        bool same = true;
        for (size_t n_blocks = 0; n_blocks <= most; n_blocks += n_blocks < 17 ? 1 : 5)
            same &= weighted ? same_weighted(encoding.dtype, level, n_blocks, n_blocks * 7 % 33)
                             : same_encoded(encoding, level, n_blocks, n_blocks * 7 % 33);
        char what[96];
        const char *rule = encoding.rule != NULL ? encoding.rule->name : "plain";
        snprintf(what, sizeof what, "%s, %s, %s, encodes %s", encoding.dtype->name, weighted ? "weighted" : rule,
                 cpu_level_name(level), kinds[kind].name);
        CHECK_NAMED(same, what);
    }
}

/* A number computed from NaN is some NaN, of which C leaves the bits open; the element types move bits. */
static bool same_values(const struct dtype *dtype, const float *some, const float *others, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&some[i], &others[i], sizeof *some) != 0 &&
            !(dtype->kind == DTYPE_BLOCK && isnan(some[i]) && isnan(others[i])))
            return false;
    return true;
}

static bool same_decoded(const struct dtype *dtype, enum cpu_level level, size_t n_blocks, size_t skew)
{
    memset(decoded, 0x5a, sizeof decoded);
    dtype_kernels_at(dtype, CPU_PORTABLE).decode(blocks[0] + skew, decoded[0] + skew % 2, n_blocks);
    dtype_kernels_at(dtype, level).decode(blocks[0] + skew, decoded[1] + skew % 2, n_blocks);
    return same_values(dtype, decoded[0], decoded[1], skew % 2 + n_blocks * dtype->block_elements + ROOM);
}

static void check_decode(const struct dtype *dtype, enum cpu_level level)
{
    bool same = true;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof blocks[0]; i++)
            blocks[0][i] = (unsigned char)random_bits();
        for (size_t n_blocks = 0; n_blocks <= MAX_BLOCKS; n_blocks += n_blocks < 17 ? 1 : 5)
            same &= same_decoded(dtype, level, n_blocks, n_blocks * 7 % 33);
    }
    char what[64];
    snprintf(what, sizeof what, "%s, %s, decodes any bytes", dtype->name, cpu_level_name(level));
    CHECK_NAMED(same, what);
}

static bool same_codes(const struct dtype *dtype, enum cpu_level level, size_t n_blocks, size_t skew)
{
    memcpy(blocks[1], blocks[0], sizeof blocks[0]);
    codes_at(dtype, CPU_PORTABLE)(values + skew % 2, blocks[0] + skew, n_blocks);
    codes_at(dtype, level)(values + skew % 2, blocks[1] + skew, n_blocks);
    return memcmp(blocks[0], blocks[1], sizeof blocks[0]) == 0;
}

/* Codes of values of all kinds from any scales, and from those of the encoder. */
static void check_codes(const struct dtype *dtype, enum cpu_level level)
{
    bool same = true;
    for (int kind = 0; kind < N_KINDS; kind++) {
        float block = 0;
        for (unsigned i = 0; i < 1 + MAX_ELEMENTS; i++) {
            block = i % 256 == 0 ? bell() : block;
            values[i] = kinds[kind].value(i, block);
        }
        for (size_t n_blocks = 0; n_blocks <= MAX_BLOCKS; n_blocks += n_blocks < 17 ? 1 : 5) {
            size_t skew = n_blocks * 7 % 33;
            for (size_t i = 0; i < sizeof blocks[0]; i++)
                blocks[0][i] = (unsigned char)random_bits();
            if (n_blocks % 2 != 0)
                dtype_kernels(dtype).encode(values + skew % 2, blocks[0] + skew, n_blocks);
            same &= same_codes(dtype, level, n_blocks, skew);
        }
    }
    char what[64];
    snprintf(what, sizeof what, "%s, %s, codes of any scales", dtype->name, cpu_level_name(level));
    CHECK_NAMED(same, what);
}

static void check_dtype(const struct dtype *dtype)
{
    for (int level = CPU_PORTABLE + 1; level < CPU_LEVELS; level++)
        if (dtype->codes[level] != NULL && level_runs((enum cpu_level)level, dtype->name))
            check_codes(dtype, (enum cpu_level)level);
    for (int level = CPU_PORTABLE + 1; level < CPU_LEVELS; level++) {
        const struct kernels *kernels = &dtype->kernels[level];
        bool any = kernels->encode != NULL || kernels->encode_weighted != NULL || kernels->decode != NULL;
        if (!any || !level_runs((enum cpu_level)level, dtype->name))
            continue;
        if (kernels->encode != NULL)
            check_encode(encoding_of(dtype), (enum cpu_level)level, false);
        if (kernels->encode_weighted != NULL)
            check_encode(encoding_of(dtype), (enum cpu_level)level, true);
        if (kernels->decode != NULL)
            check_decode(dtype, (enum cpu_level)level);
    }
}

static void check_rule(const struct dtype *dtype, const struct rule *rule)
{
    for (int level = CPU_PORTABLE + 1; level < CPU_LEVELS; level++)
        if (rule->encode[level] != NULL && level_runs((enum cpu_level)level, rule->name))
            check_encode((struct encoding){.dtype = dtype, .rule = rule}, (enum cpu_level)level, false);
}

/* Of 64 bits those that lie on, or next to, the middle between two F32. */
static void check_middles(const struct dtype *dtype, enum cpu_level level)
{
    enum { N = 64 * 5 };
    uint64_t numbers[N];
    float expected[N], decoded_fast[N];
    size_t n = 0;
    for (unsigned bit = 0; bit < 64; bit++)
        for (int i = -2; i <= 2; i++)
            numbers[n++] = ((uint64_t)1 << bit) + (bit >= 24 ? (uint64_t)1 << (bit - 24) : 0) + (uint64_t)(int64_t)i;
    dtype_kernels_at(dtype, CPU_PORTABLE).decode(numbers, expected, N);
    dtype_kernels_at(dtype, level).decode(numbers, decoded_fast, N);
    char what[64];
    snprintf(what, sizeof what, "%s, %s, rounds to even", dtype->name, cpu_level_name(level));
    CHECK_NAMED(memcmp(decoded_fast, expected, sizeof decoded_fast) == 0, what);
}

int main(void)
{
    make_importance();
    for (int level = CPU_AVX2; level < CPU_LEVELS; level++) {
        if (!cpu_runs((enum cpu_level)level))
            continue;
        check_middles(dtype_by_name("U64"), (enum cpu_level)level);
        check_middles(dtype_by_name("I64"), (enum cpu_level)level);
    }
    for (size_t i = 0; dtypes[i] != NULL; i++)
        check_dtype(dtypes[i]);
    check_rule(&q4_0_dtype, &q4_0_absmax7_rule);
    return check_done();
}
