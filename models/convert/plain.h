/* The plain container: a GGUF of a checkpoint without a family, with its tensors' own names and shapes.
 *
 * Floating-point types are treated as in any other model. Other types become what GGUF can hold without loss: I8, I16,
 * I32, I64 and F64 as they are; BOOL as I8, U8 as I16, U16 as I32, U32 as I64; U64 as I64 of the same bits; F8 and F4
 * as F16, but F8_E8M0 as BF16; C64 and C128 as F32 and F64 with one axis of 2 more. Tensors of all other types, those
 * without values, and those that ggml does not take (gguf_tensor_refusal()) are left out, with a note. */
#pragma once

#include "models/convert/model.h"

bool plain_add_tensors(struct gguf_model *model, struct error *error);
