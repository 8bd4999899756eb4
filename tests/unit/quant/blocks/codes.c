/* Codes follow from the scales that ggml stored (tests/data/make_blocks.py), with and without importance. */
#include "quant/blocks/codes.h"
#include "quant/blocks/f16.h"

#include "tests/unit/check.h"
#include "tests/unit/quant/data.h"

#include <ctype.h>

enum { ELEMENTS = 2560, ORDINARY = 512 /* the first values are like weights */ };

/* Returns how many of the first n values the blocks give otherwise; codes without effect may differ. */
static size_t count_differing(const struct dtype *dtype, const unsigned char *some, const unsigned char *others,
                              size_t n)
{
    static float decoded[2][ELEMENTS];
    size_t n_differing = 0;
    decode_function *decode = dtype_kernels_at(dtype, CPU_PORTABLE).decode;
    decode(some, decoded[0], n / dtype->block_elements);
    decode(others, decoded[1], n / dtype->block_elements);
    for (size_t i = 0; i < n; i++)
        n_differing += decoded[0][i] != decoded[1][i];
    return n_differing;
}

/* The types whose codes the reference computes anew from the stored scales. */
static bool is_exact(const struct dtype *dtype, bool weighted)
{
    bool is_iq4 = strncmp(dtype->name, "IQ4", 3) == 0;
    return dtype->block_elements == 256 ? !is_iq4 : !weighted && !is_iq4;
}

static void check_blocks(const struct dtype *dtype, const char *suffix, const float *values)
{
    static unsigned char blocks[ELEMENTS * 4], scales[ELEMENTS * 4], made[ELEMENTS * 4];
    char name[16] = {0}, what[64];
    size_t n_blocks = ELEMENTS / dtype->block_elements;
    for (size_t i = 0; dtype->name[i] != '\0'; i++)
        name[i] = (char)tolower((unsigned char)dtype->name[i]);
    if (read_data("quant", name, suffix, blocks, sizeof blocks) != n_blocks * dtype->block_bytes)
        return;
    codes_split(dtype, blocks, n_blocks, scales);
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
        if (!cpu_runs((enum cpu_level)level))
            continue;
        codes_join(dtype, scales, n_blocks, made);
        codes_at(dtype, (enum cpu_level)level)(values, made, n_blocks);
        bool exact = is_exact(dtype, strcmp(suffix, "blocks") != 0);
        size_t n = exact ? ELEMENTS : ORDINARY, n_differing = count_differing(dtype, blocks, made, n);
        snprintf(what, sizeof what, "%s, %s, %s: %zu codes", name, suffix, cpu_level_name((enum cpu_level)level),
                 n_differing);
        CHECK_NAMED(n_differing <= (exact ? 0 : n / 25), what);
        codes_split(dtype, made, n_blocks, made);
        CHECK_NAMED(memcmp(made, scales, n_blocks * codes_scale_bytes(dtype)) == 0, what);
    }
}

/* A code that is moved by one is found, and so is a scale that is halved: the blocks differ from those that follow. */
static void check_changes(const struct dtype *dtype, const float *values)
{
    static unsigned char blocks[ELEMENTS * 4], made[ELEMENTS * 4];
    size_t n_blocks = ORDINARY / dtype->block_elements, n_bytes = n_blocks * dtype->block_bytes, n_kept = 0;
    dtype_kernels_at(dtype, CPU_PORTABLE).encode(values, blocks, n_blocks);
    codes_of(dtype)(values, blocks, n_blocks);
    for (size_t i = 0; i < n_bytes; i++) {
        memcpy(made, blocks, n_bytes);
        made[i] ^= 1;
        codes_of(dtype)(values, made, n_blocks);
        n_kept += memcmp(made, blocks, n_bytes) != 0;
    }
    /* changed scales are kept, changed codes are not */
    CHECK_NAMED(n_kept == n_blocks * codes_scale_bytes(dtype), dtype->name);
}

/* Multiplies the F16 scale of a block, and takes the codes nearest for the new scale. */
static void scale_block(const struct dtype *dtype, const float *values, size_t scale_at, float factor,
                        unsigned char *block)
{
    f16_store(block + scale_at, f16_load(block + scale_at) * factor);
    codes_of(dtype)(values, block, 1);
}

/* A scale that is halved or times 1.7 does not fit the weights, even if all codes are the nearest for it. */
static void check_scales(const struct dtype *dtype, const float *values)
{
    static unsigned char blocks[ELEMENTS * 4];
    const size_t n_blocks = ORDINARY / dtype->block_elements, bytes = dtype->block_bytes;
    size_t scale_at = dtype->block_elements == 256 ? dtype->scale_offset[0] : 0;
    for (int i = 0; i < 3; i++) {
        static const float factors[] = {1, 0.5f, 1.7f};
        struct code_counts counts = code_counts_none();
        size_t last = n_blocks - 1;
        dtype_kernels(dtype).encode(values, blocks, n_blocks);
        scale_block(dtype, values + last * dtype->block_elements, scale_at, factors[i], blocks + last * bytes);
        codes_check(dtype, values, blocks, 100, n_blocks, &counts);
        CHECK_NAMED(counts.n_codes == ORDINARY && counts.n_other == 0, dtype->name);
        CHECK_NAMED((counts.n_outside == 0) == (i == 0), dtype->name);
        CHECK_NAMED(counts.first_outside == (i == 0 ? UINT64_MAX : 100 + last), dtype->name);
        CHECK_NAMED(codes_are_nearest(&counts) == (i == 0), dtype->name);
    }
}

int main(void)
{
    static float values[ELEMENTS];
    size_t n_types = 0;
    CHECK(read_data("quant", "values", "f32", values, sizeof values) == sizeof values);
    for (size_t i = 0; dtypes[i] != NULL; i++) {
        CHECK_NAMED((codes_of(dtypes[i]) != NULL) == (codes_scale_bytes(dtypes[i]) > 0), dtypes[i]->name);
        if (codes_of(dtypes[i]) == NULL)
            continue;
        n_types++;
        check_blocks(dtypes[i], "blocks", values);
        check_blocks(dtypes[i], "weighted.blocks", values);
        check_changes(dtypes[i], values);
        if (strcmp(dtypes[i]->name, "Q2_K") != 0 && strcmp(dtypes[i]->name, "Q3_K") != 0) /* their limits are wide */
            check_scales(dtypes[i], values);
    }
    CHECK(n_types == 12);
    return check_done();
}
