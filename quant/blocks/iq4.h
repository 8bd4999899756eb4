/* Shared by IQ4_NL and IQ4_XS: sixteen levels that are not evenly spaced, and the search for a block's scale.
 *
 * The search tries sixteen scales; its sums run in index order in F32, which determines the bits of files. Most time
 * goes into the loops over values; iq4_neon.c, iq4_avx2.c and iq4_avx512.c have faster ones, with one scale a lane.
 * Source: quantize_row_iq4_nl_impl in ggml-quants.c of llama.cpp, with seven tries. */
#pragma once

#include "quant/blocks/codes.h"
#include "quant/blocks/encoders.h"
#include "quant/blocks/f16.h"

enum { IQ4_ELEMENTS = 32, IQ4_TRIES = 16 };

/* The values of the levels, ascending, and the bounds from which the upper of two neighbours is nearest: the reference
 * compares the distances to both, which are exact if they are nearly equal. NaN is level 0. */
extern const int8_t iq4_levels[16];
extern const float iq4_midpoints[15];

/* The sums of w * q * x and w * q * q of each try. */
struct iq4_sums {
    float qx[IQ4_TRIES], q2[IQ4_TRIES];
};

struct iq4_loops {
    /* Returns the value of largest magnitude of 32, as largest_by_magnitude() does. */
    float (*largest)(const float *values);
    /* Adds up, in the order of the values, for the nearest levels of 32 values times each of the inverses. All of these
     * but the first differ by less than 12 %, and neighbouring midpoints of one sign by more than 23 %: so for all
     * tries but the first a value has one of two levels, and what it adds is known but for the side of one midpoint. */
    void (*sum_up)(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                   struct iq4_sums *ret_sums);
    /* Finds the nearest levels of 32 values times `inverse`. */
    void (*quantize)(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS]);
};

/* Returns the best scale of 32 values; 0 if they are negligible. A later try wins only if it is better. */
float iq4_search(const struct iq4_loops *loops, const float *values, const float *weights);

/* Sets the weights of the n values of a block: their squares, or, with `importance` (not NULL), its weights. */
void iq4_weights(const float *values, const float *importance, int n, float *weights);

/* A block of IQ4_XS, and the scale of one of its sub-blocks. */
enum { IQ4_XS_SUB_BLOCKS = 8, IQ4_XS_SCALES_H = 2, IQ4_XS_SCALES_L = 4, IQ4_XS_QS = 8, IQ4_XS_BYTES = 136 };

static inline float iq4_xs_scale(const uint8_t *block, int j)
{
    int low = block[IQ4_XS_SCALES_L + j / 2] >> (4 * (j % 2)) & 15;
    int high = block[IQ4_XS_SCALES_H + j / 4] >> (2 * (j % 4)) & 3;
    return f16_load(block) * (float)((low | high << 4) - 32);
}

extern const struct iq4_loops iq4_portable_loops, iq4_neon_loops, iq4_avx2_loops, iq4_avx512_loops;

/* Defines NAME_codes_LEVEL from NAME_codes(loops, values, blocks, n_blocks). */
#define DEFINE_IQ4_CODES_AT(name, level, ...)                                                                          \
    __VA_ARGS__ static void name##_codes_##level(const float *values, void *blocks, size_t n_blocks)                   \
    {                                                                                                                  \
        name##_codes(&iq4_##level##_loops, values, blocks, n_blocks);                                                  \
    }
#if defined(__x86_64__)
#define DEFINE_IQ4_CODES(name)                                                                                         \
    DEFINE_IQ4_CODES_AT(name, portable)                                                                                \
    DEFINE_IQ4_CODES_AT(name, avx2, FOR_AVX2) DEFINE_IQ4_CODES_AT(name, avx512, FOR_AVX2)
#elif defined(__aarch64__)
#define DEFINE_IQ4_CODES(name)                                                                                         \
    DEFINE_IQ4_CODES_AT(name, portable)                                                                                \
    DEFINE_IQ4_CODES_AT(name, neon)
#else
#define DEFINE_IQ4_CODES(name) DEFINE_IQ4_CODES_AT(name, portable)
#endif

/* Defines NAME_dtype over NAME_encode_by(), NAME_codes() and NAME_decode_block, for blocks of `bytes` whose scales
 * are the first `scale_bytes`. */
#define DEFINE_IQ4_DTYPE(name, upper, id, elements, bytes, scale_bytes)                                                \
    static const struct scale_form name##_scale_form = {                                                               \
        .span = SPAN_MAGNITUDE,                                                                                        \
        .n_sub_blocks = (elements) / IQ4_ELEMENTS,                                                                     \
        .n_steps = 120, /* the levels reach -127 and 113 */                                                            \
        .least = 0.55,                                                                                                 \
        .most = 1.4,                                                                                                   \
        .reach = 6, /* -127 lies 5.5 steps from 0 */                                                                   \
        .has_integers = (elements) != 32,                                                                              \
        .load = name##_load_scales,                                                                                    \
    };                                                                                                                 \
    DEFINE_BLOCK_DECODER(name, elements, bytes)                                                                        \
    DEFINE_ENCODERS_BY_LOOPS(name, name##_encode_by, iq4)                                                              \
    DEFINE_IQ4_CODES(name)                                                                                             \
    decode_function name##_decode_neon, name##_decode_avx2;                                                            \
    const struct dtype name##_dtype = {                                                                                \
        BLOCK_DTYPE(name, upper, id, elements, bytes),                                                                 \
        .n_scales = 1,                                                                                                 \
        .encode_cost = 9000,                                                                                           \
        .kernels = ENCODER_KERNELS(name, name##_decode_neon, name##_decode_avx2),                                      \
        .codes = {[CPU_PORTABLE] = name##_codes_portable,                                                              \
                  [CPU_NEON] = ON_ARM(name##_codes_neon),                                                              \
                  [CPU_AVX2] = ON_X86(name##_codes_avx2),                                                              \
                  [CPU_AVX512] = ON_X86(name##_codes_avx512)},                                                         \
        .scale_parts = {{0, scale_bytes}},                                                                             \
        .scale_form = &name##_scale_form,                                                                              \
    };
