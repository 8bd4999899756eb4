#define COMBINE_KERNELS combine_portable
#define CUT_EIGHTS      NULL
#include "quant/combine_loops.h"

const struct combine_kernels *combine_kernels(void)
{
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return &combine_avx2;
#endif
    return &combine_portable;
}
