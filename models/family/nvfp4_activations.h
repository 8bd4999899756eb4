/* The NVFP4 weights of a GGUF whose activations stay in 16 bits, as ModelOpt's algorithm W4A16_NVFP4 says: the keys
 * general.tensor_extra.name and general.tensor_extra.prec_a4.
 *
 * A weight's algorithm is that of the longest prefix of its module's path in `quantized_layers`, else the checkpoint's.
 * Follows _tag_prec_a4() of the converter. Where the converter fails because `quantized_layers` names a module that the
 * checkpoint lacks, wfs ignores the entry. */
#pragma once

#include "models/family/model_builder.h"
#include "models/packings/packing.h"

/* Sets model->weights_only to the sorted GGUF names. Fails if a configuration cannot be read. */
bool nvfp4_find_weights_only(struct model_builder *builder, const struct relation_job *job,
                             const struct unpacked *const *unpacked, struct error *error);

/* Sets the keys, if a tensor is listed. */
void nvfp4_write_weights_only(struct gguf_model *model);
