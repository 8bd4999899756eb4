/* Known classes that a checkpoint of an unknown class fits exactly: a Llama, say, that was saved under a new name.
 *
 * A checkpoint fits a class if
 * - each of its tensors is one of the class, with the shape that config.json gives it, and each tensor that the class
 *   needs is present, in each layer and of each expert;
 * - config.json has each key that the class needs, and no other key that could change what a model computes: any key
 *   that is neither the class's nor harmless must be null, false or empty.
 * So a tensor or key too many, or one missing, leads to no suggestion, rather than to a wrong one. Classes that need
 * the same tensors and keys, as Llama and Mistral do, cannot be told apart.
 *
 * Source: modeling and configuration files of transformers. */
#pragma once

#include "formats/checkpoint.h"

/* Returns "; its tensors and keys are those of LlamaForCausalLM or MistralForCausalLM: -o
 * architecture=LlamaForCausalLM", the most common class first, in the arena; "" if no class fits. Tensors are compared
 * by names and shapes; no weight is read, except where a packing stores shapes in tensors. */
const char *fitting_class_hint(const struct checkpoint *checkpoint, struct arena *arena);
