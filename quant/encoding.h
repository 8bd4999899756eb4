/* Encodings: a dtype, with what else its encoder goes by.
 *
 * Most dtypes are encoded in one way, which their row says. Where there are others they are rules: encoders that take
 * the place of the dtype's own, to blocks of the same layout. Many can besides go by the importance of columns. */
#pragma once

#include "quant/dtype.h"

struct rule {
    const char *name;
    encode_function *encode[CPU_LEVELS]; /* as kernels of a dtype: an absent level falls back to the one before */
};

/* How much each column of a tensor's rows matters; stacked matrices (experts) have columns of their own. */
struct importance {
    const float *columns; /* of the first matrix, then of the second ...; NULL: nothing is known */
    uint64_t n_columns, n_matrices;
};

struct encoding {
    const struct dtype *dtype;
    const struct rule *rule;      /* NULL: the dtype's own */
    struct importance importance; /* without columns: all matter alike */
    const char *tensor;           /* whose values are encoded, for messages; NULL: unknown */
};

/* `dtype` as its row has it. */
static inline struct encoding encoding_of(const struct dtype *dtype)
{
    return (struct encoding){.dtype = dtype};
}

/* The best kernels at `level` or below; encode_weighted is NULL where it makes no difference. */
struct kernels encoding_kernels_at(struct encoding encoding, enum cpu_level level);

/* The best kernels for this processor. */
struct kernels encoding_kernels(struct encoding encoding);

/* Q4_0 as some engines quantize at load time: d = amax / 7, round half away from zero, clamp to -8..7. */
extern const struct rule q4_0_absmax7_rule;
