/* The keys of models that are kept beyond the process (quant/views/finding.h): a tokenizer is read once for as long as
 * nothing changes that the keys could follow from.
 *
 * Two findings belong to a model: its keys, with the notes that were made about its tokenizer, but without the values
 * of long arrays; and those values. So a file's size costs some kilobytes of reading, and its header what it is long.
 */
#pragma once

#include "models/family/gguf_model.h"

/* Sets all keys of a model, and repeats the notes, as they are kept. False, and nothing changes: they are not. */
bool kept_keys_load(struct gguf_model *model);

/* Keeps the keys of a model that has all of them, and its checkpoint's notes from that one on. */
void kept_keys_save(const struct gguf_model *model, size_t first_note);
