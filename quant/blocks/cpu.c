#include "quant/blocks/dtype.h"

#include <stdlib.h>
#include <string.h>
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
