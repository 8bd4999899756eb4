/* NVFP4 tensors of a GGUF, as _generate_nvfp4_tensors() and _tag_prec_a4() of the converter write them: their order,
 * their scales, and those whose activations stay in 16 bits. */
#pragma once

#include "formats/tensor_set.h"
#include "models/family/model_builder.h"
#include "models/packings/packing.h"
#include "models/relation/relation.h"

#include <stdbool.h>
#include <stddef.h>

/* The order of NVFP4 tensors in a GGUF, and of the scales after each.
 *
 * The converter gathers experts separately: a layer's down, gate and up, in the order of their names, not in the
 * family's order. It recognizes the last expert only if config.json has their number as num_local_experts or
 * num_experts; under other names, such as n_routed_experts, it writes the experts after all other tensors. Follows
 * _generate_nvfp4_tensors() of the converter. */

/* Puts tensors [first, end) of an unsealed set, which are in the family's order, in that order. */
void nvfp4_order(struct tensor_set *set, size_t first, size_t end, bool experts_are_last);

/* The scales of a GGUF's NVFP4 weights and of their inputs.
 *
 * A weight X.weight has X.scale and X.input_scale beside it, with one scale for each expert, but only if a scale is not
 * 1. So their values decide which tensors a file has: planning the file reads and keeps them. Follows
 * _generate_nvfp4_tensors() of the converter. */

struct nvfp4_scales;

/* Reads the scales of all unpacked tensors, under the job's resulting names. Returns NULL, with an error, on failure.
 */
struct nvfp4_scales *nvfp4_scales_read(const struct relation_job *job, const struct unpacked *const *unpacked,
                                       struct error *error);
void nvfp4_scales_free(struct nvfp4_scales *factors); /* NULL is allowed */

/* Calls `add` for each tensor of scales beside the weight `name`: F32, in the job's arena. */
void nvfp4_scales_beside(const struct nvfp4_scales *factors, const char *name,
                         void (*add)(void *context, const char *name, const struct view *view), void *context);

/* The NVFP4 weights of a GGUF whose activations stay in 16 bits, as ModelOpt's algorithm W4A16_NVFP4 says: the keys
 * general.tensor_extra.name and general.tensor_extra.prec_a4.
 *
 * A weight's algorithm is that of the longest prefix of its module's path in `quantized_layers`, else the checkpoint's.
 * Follows _tag_prec_a4() of the converter. Where the converter fails because `quantized_layers` names a module that the
 * checkpoint lacks, wfs ignores the entry. */

/* Sets model->weights_only to the sorted GGUF names. Fails if a configuration cannot be read. */
bool nvfp4_find_weights_only(struct model_builder *builder, const struct relation_job *job,
                             const struct unpacked *const *unpacked, struct error *error);

/* Sets the keys, if a tensor is listed. */
void nvfp4_write_weights_only(struct gguf_model *model);
