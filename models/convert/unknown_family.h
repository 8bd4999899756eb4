/* The plain container: a GGUF of a checkpoint without a family, with its tensors' own names and shapes.
 *
 * Packed weights are dequantized; if one cannot be, all stay in parts, with a note. Floating-point types are as in any
 * other model. Other types are stored without loss: I8, I16, I32, I64 and F64 unchanged; BOOL as I8, U8 as I16, U16 as
 * I32, U32 as I64; U64 as I64 of the same bits; F8 and F4 as F16, but F8_E8M0 as BF16; C64 and C128 as F32 and F64 with
 * one more axis of 2. All other tensors, and those that ggml refuses (gguf_tensor_refusal()), are left out. */
#pragma once

#include "models/convert/model.h"
#include "models/family/gguf_model.h"

/* Adds the tensors, with notes of those left out. Fails if the checkpoint has tensors and none can be stored. */
bool unknown_family_add_tensors(struct gguf_model *model, struct error *error);

/* Notes on a GGUF that the converter writes, too, and that llama.cpp refuses to load.
 *
 * Source: load_arch_tensors() in src/models/ and llama_vocab::impl::load() in src/llama-vocab.cpp of llama.cpp. */

/* Adds a note to the checkpoint for each reason. The model's tensors and keys must be complete. */
void loadable_note(const struct gguf_model *model);
