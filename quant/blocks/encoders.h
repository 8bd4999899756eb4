/* The kernels of block types that share an encoding function: the search for a family of formats, with a context that
 * selects the format or the loops. */
#pragma once

#include "quant/blocks/dtype.h"

/* Defines NAME_encode and NAME_encode_weighted with a suffix and attributes, for one level, from encode_by(context,
 * values, importance, blocks, n_blocks), whose importance may be NULL. A dtype that needs importance does not use the
 * first. */
#define DEFINE_ENCODERS(name, suffix, encode_by, context, ...)                                                         \
    __VA_ARGS__                                                                                                        \
    __attribute__((unused)) static void name##_encode##suffix(const float *values, void *blocks, size_t n_blocks)      \
    {                                                                                                                  \
        encode_by(context, values, NULL, blocks, n_blocks);                                                            \
    }                                                                                                                  \
    __VA_ARGS__ static void name##_encode_weighted##suffix(const float *values, const float *importance,               \
                                                           const float *mean_squares, void *blocks, size_t n_blocks)   \
    {                                                                                                                  \
        encode_by(context, values, importance, blocks, n_blocks);                                                      \
    }

/* Define the encoders for all levels: from a function for each level and one context, or from one function, which is
 * compiled with the loops' instructions, and a context for each level. For AVX-512 it is compiled for AVX2: its own
 * loops are short. */
#if defined(__x86_64__)
#define DEFINE_ENCODERS_BY_FUNCTION(name, encode_by, context)                                                          \
    DEFINE_ENCODERS(name, , encode_by, context, )                                                                      \
    DEFINE_ENCODERS(name, _avx2, encode_by##_avx2, context, )                                                          \
    DEFINE_ENCODERS(name, _avx512, encode_by##_avx512, context, )
#define DEFINE_ENCODERS_BY_LOOPS(name, encode_by, family)                                                              \
    DEFINE_ENCODERS(name, , encode_by, &family##_portable_loops, )                                                     \
    DEFINE_ENCODERS(name, _avx2, encode_by, &family##_avx2_loops, FOR_AVX2)                                            \
    DEFINE_ENCODERS(name, _avx512, encode_by, &family##_avx512_loops, FOR_AVX2)
#elif defined(__aarch64__)
#define DEFINE_ENCODERS_BY_FUNCTION(name, encode_by, context)                                                          \
    DEFINE_ENCODERS(name, , encode_by, context, )                                                                      \
    DEFINE_ENCODERS(name, _neon, encode_by##_neon, context, )
#define DEFINE_ENCODERS_BY_LOOPS(name, encode_by, family)                                                              \
    DEFINE_ENCODERS(name, , encode_by, &family##_portable_loops, )                                                     \
    DEFINE_ENCODERS(name, _neon, encode_by, &family##_neon_loops, )
#else
#define DEFINE_ENCODERS_BY_FUNCTION(name, encode_by, context) DEFINE_ENCODERS(name, , encode_by, context, )
#define DEFINE_ENCODERS_BY_LOOPS(name, encode_by, family)     DEFINE_ENCODERS(name, , encode_by, &family##_portable_loops, )
#endif

/* The kernels of NAME for all levels: NAME_decode, its decoders with NEON and AVX2, or NULL, and the encoders. */
#define ENCODER_KERNELS(name, neon_decode, avx2_decode)                                                                \
    {                                                                                                                  \
        [CPU_PORTABLE] = {name##_decode, name##_encode, name##_encode_weighted},                                       \
        [CPU_NEON] = {ON_ARM(neon_decode), ON_ARM(name##_encode_neon), ON_ARM(name##_encode_weighted_neon)},           \
        [CPU_AVX2] = {ON_X86(avx2_decode), ON_X86(name##_encode_avx2), ON_X86(name##_encode_weighted_avx2)},           \
        [CPU_AVX512] = {NULL, ON_X86(name##_encode_avx512), ON_X86(name##_encode_weighted_avx512)},                    \
    }

/* ENCODER_KERNELS() for a dtype that needs importance. */
#define WEIGHTED_ENCODER_KERNELS(name, neon_decode, avx2_decode)                                                       \
    {                                                                                                                  \
        [CPU_PORTABLE] = {name##_decode, NULL, name##_encode_weighted},                                                \
        [CPU_NEON] = {ON_ARM(neon_decode), NULL, ON_ARM(name##_encode_weighted_neon)},                                 \
        [CPU_AVX2] = {ON_X86(avx2_decode), NULL, ON_X86(name##_encode_weighted_avx2)},                                 \
        [CPU_AVX512] = {NULL, NULL, ON_X86(name##_encode_weighted_avx512)},                                            \
    }
