/* A diffusion model as ComfyUI-GGUF's convert.py writes it, after fix_5d_tensors.py if it has tensors of five
 * dimensions, which convert.py leaves out.
 *
 * The model is a gguf_model: keys, and tensors in the order and in the types of that file. Source: tools/convert.py,
 * tools/fix_5d_tensors.py of ComfyUI-GGUF. */
#pragma once

#include "models/diffusion/architecture.h"
#include "models/family/gguf_model.h"
#include "models/quantize/mix.h"

enum { DIFFUSION_VIDEO_RANK = 5 }; /* dimensions from which on only fix_5d_tensors.py writes a tensor */

/* Returns the GGUF of a checkpoint with a state dict (state_dict.h); the caller frees it with gguf_model_free().
 * Returns NULL if the converter refuses the model. */
struct gguf_model *diffusion_model_new(const struct checkpoint *checkpoint, struct error *error);

/* Returns the architecture that general.architecture names, of a model made here or read from a GGUF; NULL: another. */
const struct diffusion_architecture *diffusion_architecture_of_model(const struct gguf_model *model);

/* Makes the artifact of the file, which the model must outlive; the caller frees it with artifact_free(). */
void diffusion_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact);

/* A diffusion model as ComfyUI-GGUF's llama-quantize writes it, an older one with a patch: the types of tensors follow
 * from their names, by rules that all architectures share, and the order of tensors stays. It quantizes matrices only,
 * and drops leading dimensions of 1. A tensor whose rows are not whole blocks of a type of 256 becomes F16.
 *
 * The files are those of a build without fused multiply-add. Source: tools/lcpp.patch of ComfyUI-GGUF, applied to
 * src/llama.cpp of llama.cpp c8c07d658. */

/* Reports whether the tool has a mix of that name. */
bool diffusion_has_mix(const char *name);

/* Makes the artifact of a mix that the tool has, which the caller frees, from a model of diffusion_model_new() or a
 * GGUF of one of the architectures. Fails, with the reason, if the tool refuses the model. */
bool diffusion_quantize(const struct gguf_edition *edition, const struct mix *mix, struct artifact *ret_artifact,
                        struct error *error);
