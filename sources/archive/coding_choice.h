/* Which coding a tensor gets: the one that makes samples of it smallest.
 *
 * An offer is a coding with its second input, if it needs one. The packer offers what it knows of a tensor: bases of
 * the same length, and the weights that a tensor may have been quantized from, as F32, and rounded to F16 or BF16
 * first, because tools convert before they quantize. Codings that need no other tensor are always offered.
 *
 * A second input makes reading slower and ties tensors together, so such an offer is taken only if it is
 * CHOICE_LEAST_GAIN percent smaller than the best without. Bytes that no coding makes 1 % smaller stay raw. */
#pragma once

#include "sources/archive/coding.h"

enum { CHOICE_LEAST_GAIN = 10, CHOICE_SAMPLES = 3 /* of chunks */ };

struct coding_offer {
    const struct coding *coding;
    struct coding_input input; /* unset for CODING_ALONE */
};

/* A tensor that is packed. */
struct coding_tensor {
    const struct dtype *dtype; /* NULL: bytes of unknown meaning */
    uint64_t n_bytes;
    bool (*read)(void *context, uint64_t offset, size_t length, void *out, struct error *error);
    void *context;
};

/* Reports whether a coding applies to tensors of that type and length. */
bool coding_suits(const struct coding *coding, const struct dtype *dtype, uint64_t n_bytes);

/* Returns the coding of tensors of that type that has such an input; NULL: there is none. */
const struct coding *coding_with(enum coding_input_kind input, const struct dtype *dtype);

/* Chooses the coding of a tensor among `n_offers` offers, and all codings without an input. Offers that do not suit are
 * left out, as are those whose input cannot be read. Fails if the tensor cannot be read. */
bool coding_choose(struct coder *coder, const struct coding_tensor *tensor, const struct coding_offer *offers,
                   size_t n_offers, struct coding_offer *ret_choice, struct error *error);
