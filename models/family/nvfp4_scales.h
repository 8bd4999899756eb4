/* The scales of a GGUF's NVFP4 weights and of their inputs.
 *
 * A weight X.weight has X.scale and X.input_scale beside it, with one scale for each expert, but only if a scale is not
 * 1. So their values decide which tensors a file has: planning the file reads and keeps them. Follows
 * _generate_nvfp4_tensors() of the converter. */
#pragma once

#include "models/packings/packing.h"
#include "models/relation/relation.h"

struct nvfp4_scales;

/* Reads the scales of all unpacked tensors, under the job's resulting names. Returns NULL, with an error, on failure.
 */
struct nvfp4_scales *nvfp4_scales_read(const struct relation_job *job, const struct unpacked *const *unpacked,
                                       struct error *error);
void nvfp4_scales_free(struct nvfp4_scales *factors); /* NULL is allowed */

/* Calls `add` for each tensor of scales beside the weight `name`: F32, in the job's arena. */
void nvfp4_scales_beside(const struct nvfp4_scales *factors, const char *name,
                         void (*add)(void *context, const char *name, const struct view *view), void *context);
