#define TERM(a, b, sum) __builtin_fma(a, b, sum)
#define ADD_TERMS       add_terms_avx512
#include "quant/views/product_loops.h"
