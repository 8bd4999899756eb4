/* The K formats, eight sub-blocks at a time. */
#define LANES        8
#define K_NAME(name) name##_avx2
#include "quant/k_simd.h"
