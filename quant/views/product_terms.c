#define TERM(a, b, sum) ((sum) + (double)(a) * (double)(b))
#define ADD_TERMS       add_terms_portable
#include "quant/views/product_loops.h"

add_terms_function *add_terms_at(enum cpu_level level)
{
#if defined(__x86_64__)
    if (level >= CPU_AVX512)
        return add_terms_avx512;
    if (level >= CPU_AVX2)
        return add_terms_avx2;
#elif defined(__aarch64__)
    if (level >= CPU_NEON)
        return add_terms_neon;
#endif
    return add_terms_portable;
}
