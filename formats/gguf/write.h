/* Writing GGUF: version 3, little-endian. Header, keys, records of tensors, data, each aligned to what
 * general.alignment says, or 32. Any keys, any tensors; nothing is read of their values, and a long value that lies in
 * another GGUF stays there.
 */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "quant/encoding.h"

/* A tensor of the file. */
struct gguf_place {
    const struct tensor *tensor;
    struct encoding encoding; /* what it is written as */
    uint64_t offset;          /* from the start of the data section; for gguf_lay_out() to say */
};

/* What a file holds. The keys may share the values of others, which live longer. */
struct gguf_plan {
    struct gguf_kvs kvs;
    struct gguf_place *places; /* in the order of the file */
    size_t n_tensors;
    struct arena *arena; /* of tensors that are in no model; NULL: there are none */
    bool trim_ones;      /* dimensions of 1 before a shape are left out of the tensor's record, as ggml does */
};

void gguf_plan_free(struct gguf_plan *plan);

/* Bytes of a header: literally, or as U8 elements of a view. */
struct gguf_piece {
    const void *bytes; /* NULL: see view */
    const struct view *view;
    uint64_t length;
};

struct gguf_layout {
    struct gguf_piece *pieces; /* everything before the first tensor's data, padding included */
    size_t n_pieces;
    uint64_t data, size; /* where the data begins; of the whole file: each tensor's data is padded with zeros */
};

/* Sets the offsets of the places, and makes the header in `arena`, which may be freed before the plan or after it;
 * the values that the plan's keys borrow must live as long as the layout. Fails where sizes overflow. */
bool gguf_lay_out(struct gguf_plan *plan, struct arena *arena, struct gguf_layout *ret_layout, struct error *error);
