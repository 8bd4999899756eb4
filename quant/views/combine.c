#include "quant/views/combine.h"

#include <assert.h>
#include <string.h>

#define COMBINE_KERNELS combine_portable
#define CUT_EIGHTS      NULL
#include "quant/views/combine_loops.h"

const struct combine_kernels *combine_kernels_at(enum cpu_level level)
{
#if defined(__x86_64__)
    if (level >= CPU_AVX512)
        return &combine_avx512;
    if (level >= CPU_AVX2)
        return &combine_avx2;
#elif defined(__aarch64__)
    if (level >= CPU_NEON)
        return &combine_neon;
#endif
    return &combine_portable;
}

const struct combine_kernels *combine_kernels(void)
{
    return combine_kernels_at(cpu_level());
}

enum { PIECE = 1024 }; /* its F16 numbers stay in the first-level cache */

static inline void round_to_bf16(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bool nan = (bits & 0x7fffffff) > 0x7f800000;
        bits = nan ? bits | 0x00400000 : bits + 0x7fff + (bits >> 16 & 1);
        bits &= 0xffff0000;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

#define DEFINE_ROUNDING_AT(name, level, ...)                                                                           \
    __VA_ARGS__ static void name##_##level(float *values, size_t n)                                                    \
    {                                                                                                                  \
        name(values, n);                                                                                               \
    }
DEFINE_LEVELS(DEFINE_ROUNDING_AT, round_to_bf16)

static void (*const round_to_bf16_at[CPU_LEVELS])(float *values, size_t n) = {
    [CPU_PORTABLE] = round_to_bf16_portable,
    [CPU_NEON] = round_to_bf16_portable,
    [CPU_AVX2] = ON_X86(round_to_bf16_avx2),
    [CPU_AVX512] = ON_X86(round_to_bf16_avx512),
};

static void round_to_f16(float *values, size_t n)
{
    uint16_t halves[PIECE];
    struct kernels kernels = dtype_kernels(&f16_dtype);
    for (size_t done = 0, piece; done < n; done += piece) {
        piece = n - done < PIECE ? n - done : PIECE;
        kernels.encode(values + done, halves, piece);
        kernels.decode(halves, values + done, piece);
    }
}

struct rounded rounded_in(const struct dtype *dtype)
{
    struct rounded in = {.dtype = dtype, .kernels = combine_kernels()};
    assert(dtype == &f32_dtype || dtype == &f16_dtype || dtype == &bf16_dtype);
    if (dtype == &f16_dtype)
        in.round = round_to_f16;
    else if (dtype == &bf16_dtype)
        in.round = round_to_bf16_at[cpu_level()];
    return in;
}

void rounded_values(const struct rounded *in, float *values, size_t n)
{
    if (in->round != NULL)
        in->round(values, n);
}

void rounded_each(const struct rounded *in, enum combination op, float *values, size_t n, const float *others)
{
    in->kernels->with_each(op, values, n, others);
    rounded_values(in, values, n);
}

void rounded_one(const struct rounded *in, enum combination op, float *values, size_t n, float other)
{
    in->kernels->with_one(op, values, n, other);
    rounded_values(in, values, n);
}

float rounded_number(const struct dtype *dtype, double number)
{
    float value = (float)number;
    struct rounded in = rounded_in(dtype);
    rounded_values(&in, &value, 1);
    return value;
}
