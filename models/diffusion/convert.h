/* A diffusion model as ComfyUI-GGUF's convert.py writes it, after fix_5d_tensors.py if it has tensors of five
 * dimensions, which convert.py leaves out.
 *
 * The model is a gguf_model: keys, and tensors in the order and in the types of that file. Source: tools/convert.py,
 * tools/fix_5d_tensors.py of ComfyUI-GGUF. */
#pragma once

#include "models/diffusion/architecture.h"
#include "models/family/gguf_model.h"

enum { DIFFUSION_VIDEO_RANK = 5 }; /* dimensions from which on only fix_5d_tensors.py writes a tensor */

/* Returns the GGUF of a checkpoint with a state dict (state_dict.h); the caller frees it with gguf_model_free().
 * Returns NULL if the converter refuses the model. */
struct gguf_model *diffusion_model_new(const struct checkpoint *checkpoint, struct error *error);

/* Returns the architecture that general.architecture names, of a model made here or read from a GGUF; NULL: another. */
const struct diffusion_architecture *diffusion_architecture_of_model(const struct gguf_model *model);

/* Makes the artifact of the file, which the model must outlive; the caller frees it with artifact_free(). */
void diffusion_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact);
