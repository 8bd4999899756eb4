/* The entries of a TensorFlow checkpoint's index: tensors, and slices of tensors. Source: tensor_bundle.proto,
 * tensor_bundle.cc and saved_tensor_slice_util.cc of TensorFlow. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/protobuf.h"
#include "formats/shape.h"

enum { BUNDLE_MAX_SHARDS = 65536 };

struct bundle_header {
    uint32_t n_shards;
    bool big_endian;
};

struct bundle_entry {
    const struct dtype *dtype;
    const char *refusal; /* the reason why the elements have no values: texts; NULL: none */
    unsigned rank;
    uint64_t shape[SHAPE_MAX_RANK];
    uint64_t shard, offset, size;
    bool is_sliced; /* the elements are in slices, which have entries of their own */
};

/* A place in a tensor: sizes[i] elements from first[i] on; BUNDLE_WHOLE means all of a dimension. */
static const uint64_t BUNDLE_WHOLE = UINT64_MAX;

struct bundle_slice {
    unsigned rank;
    uint64_t first[SHAPE_MAX_RANK], sizes[SHAPE_MAX_RANK];
};

/* Read a value of the table; the message holds all of it. bundle_read_entry() also reads the dtype and shape of a
 * TensorProto, which has the same fields for them. */
bool bundle_read_header(struct protobuf message, struct bundle_header *ret_header, struct error *error);
bool bundle_read_entry(struct protobuf message, struct bundle_entry *ret_entry, struct error *error);

/* Decodes the key of a slice, which begins with a NUL: the tensor's name, of at most `length` bytes, into `name`, and
 * the place. Returns false if the key is damaged. */
bool bundle_read_slice_key(const char *key, size_t length, char *name, size_t *ret_name_length,
                           struct bundle_slice *ret_slice);

/* Constants of TensorFlow's graphs. */

/* Adds the constants in the first graph of a SavedModel and in its functions, by the names that graph.c gives them, to
 * `tensors`, which lives in the checkpoint's arena, like the file. A graph without constants is no error. */
bool saved_model_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      struct error *error);
