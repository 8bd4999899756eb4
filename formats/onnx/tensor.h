/* Tensors of ONNX: TensorProto messages, and numbers in attributes. Source: onnx.proto and numpy_helper.py of onnx.
 *
 * Elements are mapped where they lie: in raw_data, in packed float_data or double_data, or in another file. Other typed
 * data are decoded when the file is read, into memory of at most ONNX_DECODED_MOST bytes for a file: exporters use them
 * for constants. Elements of 2 or 4 bits stay packed, but an odd
 * number of F4, which safetensors does not have, is shown as codes in a byte each.
 *
 * Stricter than onnx.load(): raw and typed data in one tensor are refused. */
#pragma once

#include "base/buffer.h"
#include "base/text_index.h"
#include "formats/checkpoint_builder.h"
#include "formats/protobuf.h"
#include "sources/location.h"

enum { ONNX_DECODED_MOST = 256 * 1024 * 1024 };

/* A file being read. */
struct onnx_reader {
    struct checkpoint *checkpoint;
    struct source *file;
    const struct location *location; /* of files that it names; NULL: it may name none */
    struct tensor_set *tensors;
    struct window window;
    struct buffer path;                /* put before the names of tensors: "outer/then_branch/" */
    uint64_t names_left, decoded_left; /* bytes of names and of decoded elements */

    /* files that it names, by name */
    struct text_index file_names;
    struct source **files;
    size_t n_files;
};

/* Adds the tensor of a TensorProto. Its name is the path and `name`, a field of text, or, if that is NULL, the
 * message's own name. */
bool onnx_add_tensor(struct onnx_reader *reader, const struct protobuf *message, const struct protobuf_field *name,
                     struct error *error);

/* Lists the tensor of a SparseTensorProto without values. `name` as in onnx_add_tensor(). */
bool onnx_list_sparse(struct onnx_reader *reader, const struct protobuf *message, const struct protobuf_field *name,
                      struct error *error);

/* Adds the numbers of a field of an AttributeProto: a vector of F32 (`encoding` fixed) or I64 (varints), or a scalar.
 */
bool onnx_add_numbers(struct onnx_reader *reader, const struct protobuf *message, uint32_t number,
                      enum protobuf_wire encoding, bool is_scalar, const struct protobuf_field *name,
                      struct error *error);
