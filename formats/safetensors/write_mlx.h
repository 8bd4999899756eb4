/* Writing safetensors as mlx does: a header sorted by name, without padding, and the elements of all tensors without
 * gaps, in the order in which a hash table of C++ (hash_order.h) gives back names that were put into it in the order of
 * the artifact. Laying a file out reads no values.
 *
 * It fails if the format cannot hold a tensor (safetensors_refusal()), or if sizes overflow. Source: mlx,
 * mlx/io/safetensors.cpp, save_safetensors(). */
#pragma once

#include "formats/artifact.h"

extern const struct container mlx_container;
