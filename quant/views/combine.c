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
