/* The order of NVFP4 tensors in a GGUF, and of the scales after each.
 *
 * The converter gathers experts separately: a layer's down, gate and up, in the order of their names, not in the
 * family's order. It recognizes the last expert only if config.json has their number as num_local_experts or
 * num_experts; under other names, such as n_routed_experts, it writes the experts after all other tensors. Follows
 * _generate_nvfp4_tensors() of the converter. */
#pragma once

#include "formats/tensor_set.h"

#include <stdbool.h>
#include <stddef.h>

/* Puts tensors [first, end) of an unsealed set, which are in the family's order, in that order. */
void nvfp4_order(struct tensor_set *set, size_t first, size_t end, bool experts_are_last);
