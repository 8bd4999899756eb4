#include "quant/blocks/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct dtype f8_e5m2_dtype, f8_e8m0_dtype, f8_e4m3fnuz_dtype, f8_e5m2fnuz_dtype;
extern const struct dtype f6_e2m3_dtype, f6_e3m2_dtype, f4_dtype, i4_dtype, u4_dtype, i2_dtype, u2_dtype, c32_dtype,
    c64_dtype, c128_dtype;
extern const struct dtype i8_dtype, i16_dtype, u16_dtype, u32_dtype, u64_dtype, bool_dtype;

extern const struct dtype q4_1_dtype, q5_0_dtype, q5_1_dtype, q8_0_dtype, iq4_nl_dtype, iq4_xs_dtype;
extern const struct dtype iq1_s_dtype, iq1_m_dtype, iq2_xxs_dtype, iq2_xs_dtype, iq2_s_dtype, iq3_xxs_dtype,
    iq3_s_dtype;
extern const struct dtype tq1_0_dtype, tq2_0_dtype, mxfp4_dtype, nvfp4_dtype, q1_0_dtype, q2_0_dtype, q8_1_dtype,
    q8_k_dtype;
extern const struct dtype q2_k_dtype, q3_k_dtype, q4_k_dtype, q5_k_dtype, q6_k_dtype;

/* One line for each row. */
/* clang-format off */
const struct dtype *const dtypes[] = {
    &f32_dtype,
    &f16_dtype,
    &bf16_dtype,

    &q4_0_dtype,
    &q4_1_dtype,
    &q5_0_dtype,
    &q5_1_dtype,
    &q8_0_dtype,
    &q2_k_dtype,
    &q3_k_dtype,
    &q4_k_dtype,
    &q5_k_dtype,
    &q6_k_dtype,
    &iq1_s_dtype,
    &iq1_m_dtype,
    &iq2_xxs_dtype,
    &iq2_xs_dtype,
    &iq2_s_dtype,
    &iq3_xxs_dtype,
    &iq3_s_dtype,
    &iq4_nl_dtype,
    &iq4_xs_dtype,
    &tq1_0_dtype,
    &tq2_0_dtype,
    &mxfp4_dtype,
    &nvfp4_dtype,
    &q1_0_dtype,
    &q2_0_dtype,
    &q8_1_dtype,
    &q8_k_dtype,

    &f64_dtype,
    &f8_e5m2_dtype,
    &f8_e4m3_dtype,
    &f8_e8m0_dtype,
    &f8_e4m3fnuz_dtype,
    &f8_e5m2fnuz_dtype,
    &f6_e2m3_dtype,
    &f6_e3m2_dtype,
    &f4_dtype,
    &i4_dtype,
    &u4_dtype,
    &i2_dtype,
    &u2_dtype,
    &i8_dtype,
    &i16_dtype,
    &i32_dtype,
    &i64_dtype,
    &u8_dtype,
    &u16_dtype,
    &u32_dtype,
    &u64_dtype,
    &bool_dtype,
    &c32_dtype,
    &c64_dtype,
    &c128_dtype,
    NULL,
};
/* clang-format on */

const struct dtype *dtype_by_name(const char *name)
{
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if (strcmp((*dtype)->name, name) == 0)
            return *dtype;
    return NULL;
}

const struct dtype *dtype_by_ggml_type(uint32_t ggml_type)
{
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if ((*dtype)->ggml_type >= 0 && (uint32_t)(*dtype)->ggml_type == ggml_type)
            return *dtype;
    return NULL;
}

struct kernels encoding_kernels_at(struct encoding encoding, enum cpu_level level)
{
    struct kernels best = dtype_kernels_at(encoding.dtype, level);
    for (int i = CPU_PORTABLE; encoding.rule != NULL && i <= (int)level; i++)
        if (encoding.rule->encode[i] != NULL)
            best.encode = encoding.rule->encode[i];
    if (encoding.rule != NULL || encoding.importance == NULL)
        best.encode_weighted = NULL;
    return best;
}

struct kernels encoding_kernels(struct encoding encoding)
{
    return encoding_kernels_at(encoding, cpu_level());
}

void loss_add(struct loss *loss, const float *exact, const float *stored, size_t n, const float *weights)
{
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)exact[i] - (double)stored[i]),
               weight = weights != NULL ? (double)weights[i] : 1;
        loss->squares += weight * difference * difference;
        loss->values += weight * (double)exact[i] * (double)exact[i];
        loss->weights += weight;
        loss->largest = difference > loss->largest ? difference : loss->largest;
    }
}

double loss_relative(const struct loss *loss)
{
    return loss->values > 0 ? sqrt(loss->squares / loss->values) : 0;
}

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const level_names[CPU_LEVELS] = {"portable", "neon", "avx2", "avx512"};

const char *cpu_level_name(enum cpu_level level)
{
    return level_names[level];
}

#if defined(__x86_64__)
/* clang 14 does not know "f16c" in __builtin_cpu_supports. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

static enum cpu_level detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return CPU_PORTABLE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi"))
        return CPU_AVX512;
    return CPU_AVX2;
#elif defined(__aarch64__)
    return CPU_NEON;
#else
    return CPU_PORTABLE;
#endif
}

static bool is_of_architecture(enum cpu_level level)
{
#if defined(__aarch64__)
    return level <= CPU_NEON;
#else
    return level != CPU_NEON;
#endif
}

enum cpu_level cpu_level(void)
{
    static int known = -1; /* several threads may set it, to the same value */
    int level = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (level < 0) {
        level = (int)detect();
        const char *wanted = getenv("WFS_CPU");
        for (int i = 0; wanted != NULL && i < level; i++)
            if (is_of_architecture((enum cpu_level)i) && strcmp(wanted, level_names[i]) == 0)
                level = i;
        __atomic_store_n(&known, level, __ATOMIC_RELAXED);
    }
    return (enum cpu_level)level;
}

bool cpu_runs(enum cpu_level level)
{
    return level <= cpu_level() && is_of_architecture(level);
}

struct kernels dtype_kernels_at(const struct dtype *dtype, enum cpu_level level)
{
    struct kernels best = dtype->kernels[CPU_PORTABLE];
    for (int i = CPU_PORTABLE + 1; i <= (int)level; i++) {
        if (dtype->kernels[i].decode != NULL)
            best.decode = dtype->kernels[i].decode;
        if (dtype->kernels[i].encode != NULL)
            best.encode = dtype->kernels[i].encode;
        if (dtype->kernels[i].encode_weighted != NULL)
            best.encode_weighted = dtype->kernels[i].encode_weighted;
    }
    return best;
}

struct kernels dtype_kernels(const struct dtype *dtype)
{
    return dtype_kernels_at(dtype, cpu_level());
}
