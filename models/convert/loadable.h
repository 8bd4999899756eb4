/* Notes on a GGUF that the converter writes, too, and that llama.cpp refuses to load.
 *
 * Source: load_arch_tensors() in src/models/ and llama_vocab::impl::load() in src/llama-vocab.cpp of llama.cpp. */
#pragma once

#include "models/family/gguf_model.h"

/* Adds a note to the checkpoint for each reason. The model's tensors and keys must be complete. */
void loadable_note(const struct gguf_model *model);
