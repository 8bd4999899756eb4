#include "quant/arithmetic/torch_sum.h"

#include "base/little_endian.h"

#include <math.h>
#include <string.h>

enum { STRIP = 512 }; /* numbers whose sums stay in the first-level cache */

static void add_products(float *restrict sums, const unsigned char *restrict numbers, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t upper;
        float value;
        memcpy(&upper, numbers + 2 * i, sizeof upper);
        little_endian(&upper, 1, sizeof upper);
        uint32_t bits = (uint32_t)upper << 16;
        memcpy(&value, &bits, sizeof value);
        sums[i] = fmaf(value, weight, sums[i]);
    }
}

void weighted_sum_portable(const struct weighted_terms *terms, size_t first, size_t count, unsigned char *out)
{
    float sums[STRIP];
    struct kernels bf16 = dtype_kernels_at(&bf16_dtype, CPU_PORTABLE);
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < STRIP ? count - done : STRIP;
        memset(sums, 0, sizeof sums);
        for (size_t j = 0; j < terms->n; j++)
            add_products(sums, terms->numbers[j] + 2 * (first + done), terms->weights[j], n);
        for (size_t i = 0; i < n; i++)
            sums[i] /= terms->divisor;
        bf16.encode(sums, out + 2 * done, n);
    }
}

weighted_sum_function *weighted_sum_at(enum cpu_level level)
{
#if defined(__x86_64__)
    if (level >= CPU_AVX2)
        return weighted_sum_avx2;
#elif defined(__aarch64__)
    if (level >= CPU_NEON)
        return weighted_sum_neon;
#endif
    return weighted_sum_portable;
}
