/* Factors: what a GGUF's NVFP4 weights, and their inputs, are multiplied with.
 *
 * They are beside a weight X.weight as X.scale and X.input_scale, one for each expert, and only where one of them is
 * not 1. So which tensors a file has is in the weights: factors are read when it is planned, and kept. Follows
 * _generate_nvfp4_tensors() of the converter. */
#pragma once

#include "models/packings/packing.h"
#include "models/relation.h"

struct factors;

/* Reads the factors of all plain tensors that have some, under the names that the job leads to. NULL on failure. */
struct factors *factors_read(const struct relation_job *job, const struct unpacked *const *unpacked,
                             struct error *error);
void factors_free(struct factors *factors); /* NULL is allowed */

/* Calls `add` for each tensor of factors that the weight `name` has beside it, F32 in the job's arena. */
void factors_beside(const struct factors *factors, const char *name,
                    void (*add)(void *context, const char *name, const struct view *view), void *context);
