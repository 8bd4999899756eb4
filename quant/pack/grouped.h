/* Matrices quantized by groups: codes of a few bits, with a scale for each group of neighbours, as compressed-tensors
 * and mlx compute them from weights alone.
 *
 * The arithmetic is that of a CPU in the weight's own dtype: each result is rounded to F32, BF16 or F16, one by one. A
 * group is part of a row, a whole row, or a block of rows and columns; blocks at the lower edge have fewer rows. The
 * views read nothing until they are read, and then whole groups: a code depends on all values of its group.
 *
 * Source: compressed-tensors, quantization/utils/helpers.py, calculate_qparams() and generate_gparam();
 * lifecycle/forward.py, _quantize(); utils/mxfp4_utils.py; compressors/ for the packing of codes. mlx,
 * backend/cpu/quantized.cpp, quantize(), and ops.cpp, fp_quantize(). comfy-quants, backends/torch_ref.py,
 * formats/mxfp8_blocked.py and nvfp4_blocked.py. comfy_kitchen, backends/eager/quantization.py,
 * quantize_int8_rowwise(). */
#pragma once

#include "quant/views/view.h"

enum group_scale {
    SCALE_SYMMETRIC,    /* the largest magnitude over the largest code */
    SCALE_ASYMMETRIC,   /* the range over the number of codes, and a zero point */
    SCALE_POWER_OF_TWO, /* stored as an exponent, F8_E8M0 in U8 */
    SCALE_OF_TENSOR,    /* F8_E4M3, in units of one scale for the tensor */
    SCALE_BY_FACTOR,    /* F8_E4M3, to be multiplied by one factor for the tensor, as ModelOpt has it */

    /* Those of comfy-quants and comfy_kitchen, for F32. */
    SCALE_ALIKE,         /* one for the whole tensor: the largest magnitude over the largest code */
    SCALE_BY_ANY_FACTOR, /* F8_E4M3 from 0 on, to be multiplied by one factor for the tensor, which may be 0 */
    SCALE_AT_MOST, /* the largest magnitude over the largest code, up to a power of two: F8_E8M0 in U8, 0 for zeros
                    */
    SCALE_OF_127,  /* the largest magnitude over 127 */

    /* Those of mlx. */
    SCALE_AFFINE, /* the range over the number of codes, so that 0 or the end farther from 0 is exact; and an edge */
    SCALE_CEILED, /* the largest magnitude over the largest code, up to a power of two: F8_E8M0 in U8 */
    SCALE_ABOVE,  /* the same without a logarithm, which rounds what is next to a power: as mlx's GPUs do it */
    SCALE_E4M3,   /* the largest magnitude over the largest code, F8_E4M3 in U8 */
};

enum group_code {
    CODE_E4M3,
    CODE_E2M1,        /* ties to even, and zeros with a sign */
    CODE_E2M1_SIGNED, /* like CODE_E2M1, and -0 has its sign, too, in groups with a scale */
    CODE_E2M1_DOWN,   /* ties towards zero, and one zero */
    CODE_INTEGER,
    CODE_NATURAL, /* from 0 on, counted from the edge */
};

struct grouping {
    uint32_t rows, columns; /* of a group; columns 0: a whole row, with `rows` 1 */
    enum group_scale scale;
    enum group_code code;
    uint8_t bits;       /* of a code */
    uint8_t width;      /* bits that it occupies */
    bool is_offset;     /* integers are stored as numbers from 0 on */
    bool adds_zero;     /* 0 is added to quotients, which makes -0 positive */
    bool is_high_first; /* of two codes in a byte, the first has the high half */
};

/* The scale of a few matrices together, found from their largest magnitude by the first read that needs it, and kept.
 * Matrices that an engine fuses share it. */
struct fused;

/* Reports whether a scale needs that record. */
static inline bool scale_needs_fused(enum group_scale scale)
{
    return scale == SCALE_OF_TENSOR || scale == SCALE_BY_FACTOR || scale == SCALE_ALIKE || scale == SCALE_BY_ANY_FACTOR;
}

/* Returns the record of `n` matrices for a scale that needs it, in `arena`, with copies of the pointers. The matrices
 * are F32, except for SCALE_OF_TENSOR. */
struct fused *fused_new(struct arena *arena, enum group_scale scale, const struct view *const *matrices, size_t n);

/* Fails, with the reason, if a view is not a matrix of F32, BF16 or F16, or if its rows are not whole groups. */
bool grouped_possible(const struct view *matrix, const struct grouping *grouping, struct error *error);

/* The following take a view for which grouped_possible(); `fused` is NULL unless scale_needs_fused(). */

/* Returns the codes of each row as a string of bits, the lowest first, in units of `dtype`: F8_E4M3, I8, U8, I32 or
 * U32. Shape: rows, and units of a row, rounded up. */
const struct view *view_group_codes(struct arena *arena, const struct view *matrix, const struct grouping *grouping,
                                    struct fused *fused, const struct dtype *dtype);

/* Returns the scales, for all but SCALE_ALIKE: in the weight's dtype, U8 exponents, or F8_E4M3. Shape: groups down and
 * across. */
const struct view *view_group_scales(struct arena *arena, const struct view *matrix, const struct grouping *grouping,
                                     struct fused *fused);

/* Returns the zero points of SCALE_ASYMMETRIC: those of a column of groups as a string of bits in I32, offset like
 * codes. Shape: words down, groups across. */
const struct view *view_group_zero_points(struct arena *arena, const struct view *matrix,
                                          const struct grouping *grouping);

/* Returns the edges of SCALE_AFFINE, the values of code 0, in the weight's dtype. Shape: that of the scales. */
const struct view *view_group_edges(struct arena *arena, const struct view *matrix, const struct grouping *grouping);

/* Returns the scale of the whole tensor, F32 [1]. */
const struct view *view_fused_scale(struct arena *arena, struct fused *fused);

/* What is stored of groups. */
enum group_part { GROUP_CODES, GROUP_SCALES, GROUP_EDGES };

/* Computes the bytes that these views have for `n` whole groups whose values are at hand, numbers of `dtype`, the type
 * of edges and of scales that are no codes. For groupings of one row whose codes fill bytes, with scales of one type
 * for all groups. */
void group_compute(const struct grouping *grouping, const struct dtype *dtype, enum group_part part,
                   const float *values, size_t n, uint8_t *out);
