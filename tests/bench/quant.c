/* The kernels of every dtype, per processor level: billions of F32 bytes a second that are decoded or encoded on one
 * core, and the ratio to the portable kernel. The last row is what copying as many bytes takes. Everything is warmed
 * up; what is compared takes turns, and the best of the turns counts. Arguments: names of dtypes or of groups. */
#include "base/arena.h"
#include "quant/blocks/dtype.h"
#include "quant/pack/grouped_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_VALUES = 4 << 20, PIECE = 16384 /* as many values as convert.c encodes at once */, TURNS = 7 };

enum mode { ENCODE, ENCODE_WEIGHTED, DECODE };

struct buffers {
    float *values, *decoded, *importance, *mean_squares;
    unsigned char *blocks;
};

/* Of the processor, so that what else the machine does counts little. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* About a normal distribution: the sum of a few uniform numbers. */
static void fill(float *values, size_t n)
{
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int j = 0; j < 4; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sum += (float)(int32_t)(state >> 32) * 0x1p-31f;
        }
        values[i] = sum * 0.02f;
    }
}

/* The time to encode the first `n_values`, in pieces that were just written, as convert.c has just decoded them. */
static double encode_seconds(const struct dtype *dtype, struct kernels kernels, bool weighted,
                             const struct buffers *buffers, size_t n_values)
{
    double sum = 0;
    for (size_t i = 0; i < n_values; i += PIECE) {
        memcpy(buffers->decoded, buffers->values + i, PIECE * sizeof(float));
        double start = seconds();
        unsigned char *blocks = buffers->blocks + i / dtype->block_elements * dtype->block_bytes;
        size_t n_blocks = PIECE / dtype->block_elements;
        if (weighted)
            kernels.encode_weighted(buffers->decoded, buffers->importance, buffers->mean_squares, blocks, n_blocks);
        else
            kernels.encode(buffers->decoded, blocks, n_blocks);
        sum += seconds() - start;
    }
    return sum;
}

static double decode_seconds(const struct dtype *dtype, struct kernels kernels, const struct buffers *buffers,
                             size_t n_values)
{
    double start = seconds();
    kernels.decode(buffers->blocks, buffers->decoded, n_values / dtype->block_elements);
    return seconds() - start;
}

/* The rate of one kernel in bytes of F32 a second, over the first `n_values`. */
static double rate(const struct dtype *dtype, struct kernels kernels, enum mode mode, const struct buffers *buffers,
                   size_t n_values)
{
    double taken = mode == DECODE ? decode_seconds(dtype, kernels, buffers, n_values)
                                  : encode_seconds(dtype, kernels, mode == ENCODE_WEIGHTED, buffers, n_values);
    return (double)n_values * sizeof(float) / taken;
}

static double copy_rate(const struct buffers *buffers)
{
    double start = seconds();
    memcpy(buffers->decoded, buffers->values, N_VALUES * sizeof(float));
    return N_VALUES * sizeof(float) / (seconds() - start);
}

static const char *const modes[] = {"encode", "weighed", "decode"};

/* With those for importance, whether the encoding has any or not. */
static struct kernels all_kernels_at(struct encoding encoding, enum cpu_level level)
{
    struct kernels kernels = encoding_kernels_at(encoding, level);
    kernels.encode_weighted = dtype_kernels_at(encoding.dtype, level).encode_weighted;
    return kernels;
}

static void print_row(const char *name, const char *mode, const double best[CPU_LEVELS], double copy)
{
    printf("%-13s %-7s", name, mode);
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++)
        if (cpu_runs((enum cpu_level)level))
            printf(" %9.4f", best[level] * 1e-9);
    for (int level = CPU_PORTABLE + 1; level < CPU_LEVELS; level++)
        if (cpu_runs((enum cpu_level)level))
            printf(" %8.1fx", best[level] / best[0]);
    printf(" %8.2f %8.0f\n", best[cpu_level()] / copy, 4e12 / best[cpu_level()]);
}

static void measure(struct encoding encoding, const char *name, enum mode mode, const struct buffers *buffers)
{
    const struct dtype *dtype = encoding.dtype;
    double best[CPU_LEVELS] = {0}, copy = 0;
    /* Slow kernels get fewer values, so that a turn of any takes some hundredths of a second. */
    size_t n_values = PIECE;
    while (n_values < N_VALUES && (double)n_values * sizeof(float) /
                                          rate(dtype, all_kernels_at(encoding, CPU_PORTABLE), mode, buffers, n_values) <
                                      0.02)
        n_values *= 2;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
            if (!cpu_runs((enum cpu_level)level))
                continue;
            struct kernels kernels = all_kernels_at(encoding, (enum cpu_level)level);
            best[level] = fmax(best[level], rate(dtype, kernels, mode, buffers, n_values));
        }
        copy = fmax(copy, copy_rate(buffers));
    }
    print_row(name, modes[mode], best, copy);
}

/* Groups of engines' formats: their ranges, and the codes of BF16 weights. */
struct group_kind {
    const char *name;
    size_t columns;
    void (*encode)(const struct grouped_kernels *kernels, const float *values, size_t columns, unsigned char *codes);
};

/* The time to encode `n_values` in pieces that are in the cache; asking for the time would take part of a piece's. */
static double group_seconds(const struct group_kind *kind, enum cpu_level level, const struct buffers *buffers,
                            size_t n_values)
{
    for (size_t i = 0; i < PIECE; i++)
        buffers->decoded[i] = round_to_bf16(buffers->values[i]);
    double start = seconds();
    for (size_t i = 0; i < n_values; i += PIECE)
        kind->encode(grouped_kernels_at(level), buffers->decoded, kind->columns, buffers->blocks);
    return seconds() - start;
}

static void encode_quotients(const struct grouped_kernels *kernels, enum quotient_code code, float largest_code,
                             const float *values, size_t columns, unsigned char *codes)
{
    struct range ranges[PIECE];
    float divisors[PIECE];
    kernels->range(values, PIECE / columns, columns, ranges);
    for (size_t i = 0; i < PIECE / columns; i++)
        divisors[i] = round_to_bf16(fmaxf(ranges[i].high, -ranges[i].low) / largest_code);
    const struct quotients quotients = {divisors, NULL, -128, 127};
    kernels->encode[code][ROUND_BF16](&quotients, values, PIECE / columns, columns, codes);
}

static void encode_fp8(const struct grouped_kernels *kernels, const float *values, size_t columns, unsigned char *codes)
{
    encode_quotients(kernels, QUOTIENT_E4M3, 448, values, columns, codes);
}

static void encode_int8(const struct grouped_kernels *kernels, const float *values, size_t columns,
                        unsigned char *codes)
{
    encode_quotients(kernels, QUOTIENT_INTEGER, 127.5f, values, columns, codes);
}

static void encode_mxfp4(const struct grouped_kernels *kernels, const float *values, size_t columns,
                         unsigned char *codes)
{
    encode_quotients(kernels, QUOTIENT_E2M1_DOWN, 6, values, columns, codes);
}

static void encode_nvfp4(const struct grouped_kernels *kernels, const float *values, size_t columns,
                         unsigned char *codes)
{
    encode_quotients(kernels, QUOTIENT_E2M1, 6, values, columns, codes);
}

static void encode_affine(const struct grouped_kernels *kernels, const float *values, size_t columns,
                          unsigned char *codes)
{
    struct range ranges[PIECE];
    float edges[PIECE], divisors[PIECE];
    kernels->extremes(values, PIECE / columns, columns, ranges);
    kernels->affine(ranges, PIECE / columns, 15, divisors, edges);
    kernels->steps(values, PIECE / columns, columns, edges, divisors, 15, codes);
}

static const struct group_kind group_kinds[] = {{"group-fp8", 4096, encode_fp8},      {"group-int8", 4096, encode_int8},
                                                {"group-affine4", 64, encode_affine}, {"group-mxfp4", 32, encode_mxfp4},
                                                {"group-nvfp4", 16, encode_nvfp4},    {0}};

static void measure_groups(const struct group_kind *kind, const struct buffers *buffers)
{
    double best[CPU_LEVELS] = {0}, copy = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++)
            if (cpu_runs((enum cpu_level)level))
                best[level] = fmax(best[level], N_VALUES * sizeof(float) /
                                                    group_seconds(kind, (enum cpu_level)level, buffers, N_VALUES));
        copy = fmax(copy, copy_rate(buffers));
    }
    print_row(kind->name, modes[ENCODE], best, copy);
}

static void print_heading(void)
{
    printf("%-13s %-7s", "dtype", "GB/s");
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++)
        if (cpu_runs((enum cpu_level)level))
            printf(" %9s", cpu_level_name((enum cpu_level)level));
    for (int level = CPU_PORTABLE + 1; level < CPU_LEVELS; level++)
        if (cpu_runs((enum cpu_level)level))
            printf(" %9s", cpu_level_name((enum cpu_level)level));
    printf(" %8s %8s\n", "of copy", "ps/value");
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    bool wanted = argc == 1;
    for (int i = 1; i < argc; i++)
        wanted |= strcmp(argv[i], name) == 0;
    return wanted;
}

static void measure_both(struct encoding encoding, const char *name, const struct buffers *buffers, int argc,
                         char **argv)
{
    struct kernels portable = all_kernels_at(encoding, CPU_PORTABLE);
    bool wanted = is_wanted(name, argc, argv);
    if (wanted && portable.encode != NULL)
        measure(encoding, name, ENCODE, buffers);
    if (wanted && portable.encode_weighted != NULL && encoding.rule == NULL)
        measure(encoding, name, ENCODE_WEIGHTED, buffers);
    if (wanted && portable.decode != NULL && encoding.rule == NULL)
        measure(encoding, name, DECODE, buffers);
}

/* Aligned like the pieces of convert.c. */
static void *alloc(size_t size)
{
    return memory_alloc_aligned(64, size);
}

int main(int argc, char **argv)
{
    struct buffers buffers = {alloc(N_VALUES * sizeof(float)), alloc(N_VALUES * sizeof(float)),
                              alloc(PIECE * sizeof(float)), alloc(PIECE * sizeof(float)),
                              alloc(N_VALUES * sizeof(double))};
    fill(buffers.importance, PIECE);
    for (size_t i = 0; i < PIECE; i++) {
        buffers.importance[i] *= buffers.importance[i];
        buffers.mean_squares[i] = 4e-4f;
    }
    fill(buffers.values, N_VALUES);
    memset(buffers.blocks, 0, N_VALUES * sizeof(double));
    copy_rate(&buffers);
    print_heading();
    for (size_t i = 0; dtypes[i] != NULL; i++)
        measure_both(encoding_of(dtypes[i]), dtypes[i]->name, &buffers, argc, argv);
    measure_both((struct encoding){.dtype = &q4_0_dtype, .rule = &q4_0_absmax7_rule}, "absmax7", &buffers, argc, argv);
    for (const struct group_kind *kind = group_kinds; kind->name != NULL; kind++)
        if (is_wanted(kind->name, argc, argv))
            measure_groups(kind, &buffers);
    double copy = 0;
    for (int turn = 0; turn < TURNS; turn++)
        copy = fmax(copy, copy_rate(&buffers));
    printf("%-13s %-7s %9.4f\n", "memcpy", "copy", copy * 1e-9);
    free(buffers.values);
    free(buffers.decoded);
    free(buffers.importance);
    free(buffers.mean_squares);
    free(buffers.blocks);
    return 0;
}
