/* Notes on a model that llama.cpp computes otherwise than transformers, since no key of a GGUF says what config.json
 * does: the file is the converter's all the same.
 *
 * Source: the graphs in src/models/ of llama.cpp, the modeling files of transformers, and logits of both. */
#pragma once

#include "models/family/gguf_model.h"

/* Adds a note to the checkpoint for each such hyperparameter. The model has hyperparameters; its tensors and the
 * family's keys must be complete. */
void unlike_note(const struct gguf_model *model);
