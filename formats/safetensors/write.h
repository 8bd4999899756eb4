/* Writing safetensors: a length, a JSON header padded with spaces to a multiple of 8, the elements of all tensors
 * without gaps; to the byte what the safetensors library writes (0.4 to 0.8; safetensors/src/tensor.rs). Nothing is
 * read of the values. */
#pragma once

#include "base/buffer.h"
#include "formats/tensor_set.h"

/* A tensor of the file. */
struct safetensors_place {
    const struct tensor *tensor;
    const struct dtype *type; /* what it is written as: one that the format has */
    /* for safetensors_lay_out() to say */
    unsigned order;  /* of the dtype, in which the format sorts */
    uint64_t offset; /* from the start of the data */
};

/* Why a file cannot have a tensor of that name as that dtype; NULL where it can. A tensor "__metadata__" is refused:
 * the library writes it, and nobody reads the file. */
const char *safetensors_refusal(const char *name, size_t name_length, const struct dtype *type);

/* Sorts the places as the library does, by dtype and then by name, sets their offsets, and makes the header: all that
 * comes before the data, length and padding with it. Values of the metadata are texts; `metadata` ends with a NULL
 * key, and may be NULL. Fails where sizes overflow, and where the header is longer than readers take. */
struct safetensors_metadata {
    const char *key, *value;
};
bool safetensors_lay_out(struct safetensors_place *places, size_t n_places, const struct safetensors_metadata *metadata,
                         struct buffer *ret_header, uint64_t *ret_data_size, struct error *error);
