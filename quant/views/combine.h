/* The kernels of unpack.h for each processor level: arithmetic on runs of F32, in place, rounding every operation, and
 * cutting words into fields. All levels give the same results. */
#pragma once

#include "quant/views/unpack.h"

struct combine_kernels {
    void (*with_one)(enum combination op, float *values, size_t n, float other);
    void (*with_each)(enum combination op, float *values, size_t n, const float *others);

    /* Cuts words of four bytes, with eight fields each, into a byte for each field. NULL: not at this level. */
    void (*cut_eights)(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned char *out);
};

extern const struct combine_kernels combine_portable, combine_neon, combine_avx2, combine_avx512;

/* Return the best kernels for this processor, and for a level. */
const struct combine_kernels *combine_kernels(void);
const struct combine_kernels *combine_kernels_at(enum cpu_level level);
