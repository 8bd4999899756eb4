/* Writing safetensors: a length, a JSON header padded with spaces to a multiple of 8, the elements of all tensors
 * without gaps; to the byte what the safetensors library writes (0.4 to 0.8; safetensors/src/tensor.rs). No value is
 * read.
 *
 * The container sorts tensors as the library does, by dtype and then by name; metadata are texts. It fails where it
 * cannot hold a tensor (safetensors_refusal()), where sizes overflow, and where the header is longer than readers
 * take. */
#pragma once

#include "formats/artifact.h"

extern const struct container safetensors_container;

/* Why a file cannot have a tensor of that name as that dtype; NULL where it can. A tensor "__metadata__" is refused:
 * the library writes it, and nobody reads the file. */
const char *safetensors_refusal(const char *name, size_t name_length, const struct dtype *type);
