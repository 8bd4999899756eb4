/* The state dict that ComfyUI-GGUF's converter makes of a checkpoint: the tensors of the diffusion model alone, without
 * the prefix of a whole checkpoint, in the order of the file that it reads.
 *
 * The order is that of the data in a safetensors file and of the pickle in a torch file. Shards, and files of other
 * formats, are joined as if save_file() had saved them in one. A component of a pipeline under diffusers' names
 * (naming.h) gives the tensors of its makers' file, as save_file() saves it. Source: tools/convert.py of ComfyUI-GGUF.
 */
#pragma once

#include "formats/checkpoint.h"
#include "models/diffusion/architecture.h"

struct state_dict {
    const struct diffusion_architecture *architecture;
    bool is_component;                /* the checkpoint has diffusers' names */
    const char *refusal;              /* why the converter takes no such model; NULL: it takes it */
    const struct tensor_set *tensors; /* sealed; NULL if diffusers' names could not be turned into the makers' */
};

/* Returns the state dict of a checkpoint, which lives as long; NULL: the checkpoint is no diffusion model that the
 * converter recognizes. Safe from any thread, and fast for other models. */
const struct state_dict *state_dict_of(const struct checkpoint *checkpoint);
