/* Weights that were rotated before they were quantized. */
#pragma once

#include "models/packings/packed.h"

/* Rotates an unpacked weight back if quantization_config says that inputs are rotated, as AutoRound's `rotation_config`
 * does for MXFP4, MXFP8 and NVFP4: every linear module but lm_head multiplies groups of its inputs by a Hadamard
 * matrix, or by the module's own, B.hadamard_matrix. Then the weight has no blocks. Fails if the rotation is not
 * supported. */
bool rotation_undo(struct packed *packed);
