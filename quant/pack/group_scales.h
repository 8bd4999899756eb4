/* The scales of groups, by the rules of llmcompressor, of mlx and of ComfyUI's tools: for grouped.c alone.
 *
 * A rule takes the range of a group's values. All results are rounded as the reference rounds them.
 *
 * Source: see grouped.h. */
#pragma once

#include "quant/pack/grouped.h"
#include "quant/pack/grouped_kernels.h"

/* Values at a time: nearly every row in one read of a file, whose F32 values stay in the second-level cache. */
enum { GROUPED_PIECE = 32768 };

/* Numbers of an element type, and its rounding. */
struct group_numbers {
    float epsilon, least; /* the least normal number */
    float (*round)(float value);
};
extern const struct group_numbers group_numbers[ROUNDINGS];

/* Gets the rounding of F32, BF16 or F16; returns false for other types. */
bool group_rounding(const struct dtype *dtype, enum rounding *ret_rounding);

struct scale {
    float divisor, zero_point;
    float stored; /* in the weight's dtype */
    uint8_t code; /* as it is stored otherwise */
};

/* Extends a range by another one. */
void range_extend(struct range *range, const struct range *by);

/* Returns the largest magnitude of a range, and of the codes of a grouping. */
float range_largest(const struct range *range);
float group_largest_code(const struct grouping *grouping);

/* Encodes numbers as F8_E4M3, limited to its range. */
void group_encode_e4m3(const float *numbers, size_t n, uint8_t *codes);

typedef struct scale group_rule(const struct grouping *grouping, enum rounding rounding, const struct range *range);

/* The rules of mlx. */
group_rule group_ceiled_scale, group_scale_above, group_e4m3_scale;
void group_affine_scales(const struct grouping *grouping, const struct range *ranges, size_t n, struct scale *scales);

/* Returns the exponent of the power of 2 at or above a number above 0, of its logarithm as an F32, which rounds what is
 * next to a power to it. */
int group_exponent_above(float number);

/* The rules of ComfyUI's tools. The factor is that of the tensor. */
group_rule group_scale_at_most, group_scale_of_127;
void group_scales_by_any_factor(const struct grouping *grouping, const struct range *ranges, size_t n, float factor,
                                struct scale *scales);

/* Gets the scales of `n` groups with these ranges. Fails if the largest magnitude of `fused`, NULL unless the scale
 * needs it, cannot be read. */
bool group_scales(const struct grouping *grouping, enum rounding rounding, struct fused *fused,
                  const struct range *ranges, size_t n, struct scale *scales, struct error *error);

/* Gets the scale of the whole tensor. */
bool fused_scale(struct fused *fused, float *ret_scale, struct error *error);

/* Names the bytes that the scale of the whole tensor depends on. */
struct dependencies;
void fused_depend(const struct fused *fused, struct dependencies *to);
