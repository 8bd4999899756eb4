/* The K formats, sixteen sub-blocks at a time. */
#define LANES        16
#define K_NAME(name) name##_avx512
#include "quant/k_simd.h"
