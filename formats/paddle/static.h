/* Tensors of Paddle's static models, and the programs that name them.
 *
 * The file holds one tensor after the other in the order of their names, as bytes: u32 0, u64 number of levels of
 * detail, for each its u64 size and bytes, u32 0, i32 size of a protocol buffer (data_type, dims), and the row-major
 * elements. Names are those of the program's parameters (PIR, in JSON) or of its persistable variables (ProgramDesc, a
 * protocol buffer). Source: paddle/phi/core/framework/dense_tensor_serialize.cc, framework.proto;
 * paddle/fluid/pir/serialize_deserialize. */
#pragma once

#include "formats/checkpoint.h"

/* Adds the tensors of `file`, which the checkpoint owns. Fails if the program has more or fewer parameters than the
 * file has tensors; more bytes are allowed on request. */
bool paddle_static_read(struct checkpoint *checkpoint, struct source *file, const struct source *program, bool is_json,
                        bool allow_trailing, struct error *error);
