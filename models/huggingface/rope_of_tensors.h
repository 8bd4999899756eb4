/* rope_scaling of config.json from the tensors that stand for it in a GGUF: rope_freqs.weight of Llama 3, and
 * rope_factors_long and _short of Phi 3. These small tensors are read while outputs are planned, as are a few others of
 * packings and families. */
#pragma once

#include "formats/tensor_set.h"

/* Returns the text of the value, indented as a member of the top level, in the arena; NULL: there are no such tensors,
 * or they cannot be read. `theta` is the base of the rope.
 *
 * A table of Llama 3's kind determines its factor, and the other three numbers up to a common multiple: they are
 * computed from the table, taken as the smallest whole numbers, and accepted if they give the table back to 1e-6. Any
 * other table is written as longrope's, which gives the same frequencies. */
const char *rope_of_tensors(const struct tensor_set *tensors, double theta, struct arena *arena);
