/* Writing safetensors: a length, a JSON header padded with spaces to a multiple of 8, the elements of all tensors
 * without gaps; to the byte what the safetensors library writes (0.4 to 0.8; safetensors/src/tensor.rs). Laying a file
 * out reads no values.
 *
 * The container sorts tensors as the library does, by dtype and then by name; metadata are texts. It fails if it cannot
 * hold a tensor (safetensors_refusal()), sizes overflow, or the header is longer than readers accept. */
#pragma once

#include "formats/artifact.h"

extern const struct container safetensors_container;

/* Writes as mlx does: a header sorted by name, without padding, and the elements of all tensors without gaps, in the
 * order in which a hash table of C++ (hash_order.h) gives back names that were put into it in the order of the
 * artifact. Source: mlx, mlx/io/safetensors.cpp, save_safetensors(). */
extern const struct container mlx_container;

/* Compares the places of two tensors in a file by their dtypes and names: less than, equal to or greater than 0. */
int safetensors_compare(const struct artifact_tensor *a, const struct artifact_tensor *b);

/* Returns the reason why a file cannot have a tensor of that name and dtype, or NULL. Refuses a tensor "__metadata__":
 * the library writes it, but no reader accepts the file. */
const char *safetensors_refusal(const char *name, size_t name_length, const struct dtype *type);
