/* The order of NVFP4 tensors in a GGUF, and of the scales after each.
 *
 * The converter gathers experts by themselves: a layer's down, gate and up, as their names are sorted, whatever the
 * order that the family has. It knows that it has all of them where config.json gives their number as num_local_experts
 * or num_experts; with other names, such as n_routed_experts, it writes them after all others. Follows
 * _generate_nvfp4_tensors() of the converter. */
#pragma once

#include "formats/tensor_set.h"

#include <stdbool.h>
#include <stddef.h>

/* Puts tensors [first, end) of a set that is not sealed, which lie as the family has them, in that order. */
void nvfp4_order(struct tensor_set *set, size_t first, size_t end, bool experts_are_last);
