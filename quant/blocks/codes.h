/* Codes from scales: the levels of a quantized block, computed from the block's scales and the weights.
 *
 * A quantizing tool spends its time on the search for scales. Given the scales (and minimums) that it stored, each code
 * is the level nearest to its weight. So a quantized file of any origin (an unknown importance matrix, another tool,
 * another processor) is determined by its weights and its scales, which are 5 to 24 % of a block:
 *
 *     Q2_K 20 of 84 bytes   Q3_K 14 of 110   Q4_K 16 of 144   Q5_K 16 of 176   Q6_K 18 of 210
 *     Q4_0 2 of 18          Q4_1 4 of 20     Q5_0 2 of 22     Q5_1 4 of 24     Q8_0 2 of 34
 *     IQ4_NL 2 of 18        IQ4_XS 8 of 136
 *
 * How exactly codes follow depends on what the tool rounds by:
 *
 * - Q2_K to Q6_K: the tool computes the codes anew from the scales as stored. They follow exactly, with and without an
 *   importance matrix, except in sub-blocks whose scale is 0, where codes have no effect. These become 0 here.
 * - Q8_0, Q4_0, Q4_1, Q5_0, Q5_1: the tool rounds by the scale before rounding it to F16. Without a matrix this scale
 *   follows from the weights (the largest magnitude over 127, say): if it rounds to the stored one, codes follow
 * exactly. For other scales these are the codes nearest for the stored scale, from which a search by a matrix differs
 * in up to 8 codes of 1000.
 * - IQ4_NL and IQ4_XS: the same, but the scale always comes from a search: 1 to 8 codes of 10,000 differ.
 * - IQ1, IQ2 and IQ3 choose groups of codes by the weights of the search, which are unknown: their codes do not follow.
 *   The other types have no search at all, so that whole blocks follow from the weights.
 *
 * Kernels are total: any scales and values give some codes. Source: ggml-quants.c of llama.cpp. */
#pragma once

#include "quant/blocks/dtype.h"

/* Returns the fastest kernel of `dtype` at `level` or below, which all give the same bytes; NULL: codes do not follow
 * from scales. */
codes_function *codes_at(const struct dtype *dtype, enum cpu_level level);

/* Returns the fastest kernel for this processor. */
codes_function *codes_of(const struct dtype *dtype);

/* Returns how many bytes of a block are scales; 0 if codes do not follow from them. */
size_t codes_scale_bytes(const struct dtype *dtype);

/* Copies the scales of blocks to `scales`, codes_scale_bytes() for each block. */
void codes_split(const struct dtype *dtype, const void *blocks, size_t n_blocks, void *scales);

/* Sets the scales of blocks, as codes_split() has copied them, and all other bytes to 0. */
void codes_join(const struct dtype *dtype, const void *scales, size_t n_blocks, void *blocks);

/* The kernels of NAME at the levels of DEFINE_LEVELS(), and of the loops that exist for each level. The portable
 * kernel's loops are vectors of NEON on ARM. */
#define CODES_BY_LEVELS(name)                                                                                          \
    {                                                                                                                  \
        [CPU_PORTABLE] = name##_codes_portable, [CPU_AVX2] = ON_X86(name##_codes_avx2),                                \
        [CPU_AVX512] = ON_X86(name##_codes_avx512),                                                                    \
    }

#define DEFINE_CODES_AT(name, level, ...)                                                                              \
    __VA_ARGS__ static void name##_##level(const float *values, void *blocks, size_t n_blocks)                         \
    {                                                                                                                  \
        name(values, blocks, n_blocks);                                                                                \
    }

/* What a block type's scales are, to compare them with the values. */

enum { SCALE_FORM_MOST = 16 };

/* What the levels of a sub-block have to span: from 0 to the largest magnitude; from the lowest value, but at most 0,
 * to the highest; from the lowest to the highest. */
enum scale_span { SPAN_MAGNITUDE, SPAN_WITH_ZERO, SPAN_RANGE };

struct scale_form {
    enum scale_span span;
    int n_sub_blocks, n_steps;
    double least, most; /* limits of a scale, divided by the span over the steps */
    bool has_integers;  /* scales are integers times the F16 */

    /* Steps by which a code may lie beyond the middle between two levels: for any block; for each part by which the
     * scale changes when it is rounded to F16, because the tool's was not; and with an importance matrix. */
    double rounding, reach, loose;

    /* Gets the scales of the sub-blocks, and returns the F16 of which they are multiples. */
    float (*load)(const uint8_t *block, float scales[SCALE_FORM_MOST]);
};

/* How far blocks of unknown origin follow from weights: whether their codes are the nearest for their scales, and their
 * scales are such as a search gives.
 *
 * A code is `other` if another code is nearer to the weight, beyond what rounding explains: for Q2_K to Q6_K one part
 * in 2^15 of a step; for the others the step that the scale makes when it is rounded to F16. A search by an
 * importance matrix rounds Q4_0, Q4_1, Q5_0 and Q5_1 by another scale than it stores, and so leaves about one code of
 * 100 at the second nearest level: these codes are `loose`, and at most one of LOOSE_SHARE may be. Codes under a scale
 * of 0 have no effect, and any is right.
 *
 * The scale of a sub-block is compared with the one that spreads the levels over its values: the span of the values
 * over the number of steps. Searches, with a matrix or not, stay within limits of the type; a scale beyond is
 * `outside`. Where scales are small integers times an F16, half such an integer is allowed for. Only an extreme matrix,
 * with columns that hardly count, gives scales outside, and then gives them to more than one sub-block in
 * OUTSIDE_SHARE. */

enum { LOOSE_SHARE = 20, OUTSIDE_SHARE = 1000 };

struct code_counts {
    uint64_t n_codes, n_other, n_loose;
    uint64_t n_scales, n_outside;
    uint64_t first_other, first_outside; /* numbers of blocks; UINT64_MAX: none */
    double least, most; /* scales, divided by the one that spreads the levels; of sub-blocks with different values */
};

struct code_counts code_counts_none(void);

/* Adds the counts of `n_blocks` blocks, the first of which has the number `first`. The dtype has codes_of(). */
void codes_check(const struct dtype *dtype, const float *values, const void *blocks, uint64_t first, size_t n_blocks,
                 struct code_counts *counts);

/* Adds other counts to a sum. */
void code_counts_add(struct code_counts *sum, const struct code_counts *counts);

/* Reports whether all blocks follow from the weights: no code is other, few are loose, and no scale is outside unless
 * many are. */
bool codes_are_nearest(const struct code_counts *counts);
