/* rope_scaling of config.json from the tensors that stand for it in a GGUF: rope_freqs.weight of Llama 3, and
 * rope_factors_long and _short of Phi 3. These small tensors are the only ones that are read before somebody asks for
 * their values. */
#pragma once

#include "formats/tensor_set.h"

/* The text of the value, indented as a member of the top, in the arena; NULL where there are no such tensors, or they
 * cannot be read. `theta` is the base of the rope.
 *
 * A table of Llama 3's kind tells its factor, and of the other three numbers just how they relate: those of the
 * published models are tried, and compared bit by bit. Any other table is shown as one of the longrope kind, which
 * gives the same frequencies. */
const char *rope_of_tensors(const struct tensor_set *tensors, double theta, struct arena *arena);
