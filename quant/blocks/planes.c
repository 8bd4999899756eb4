#include "quant/blocks/planes_loops.h"

DEFINE_PLANES_OF_ALL(16)
DEFINE_PLANES_OF_ALL(32)

const struct planes_kernels planes_portable[PLANES_WIDTHS] = {
    {split16_all, join16_all}, {split32_all, join32_all}, {split64_all, join64_all}};

const struct planes_kernels *planes_kernels_at(unsigned width, enum cpu_level level)
{
    const int row = width == 2 ? 0 : width == 4 ? 1 : 2;
#if defined(__x86_64__)
    if (level >= CPU_AVX2)
        return &planes_avx2[row];
#elif defined(__aarch64__)
    if (level >= CPU_NEON)
        return &planes_neon[row];
#endif
    return &planes_portable[row];
}

const struct planes_kernels *planes_kernels(unsigned width)
{
    return planes_kernels_at(width, cpu_level());
}
