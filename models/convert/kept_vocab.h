/* How many bytes the entries of a tokenizer take in a GGUF's header, kept for later processes (findings_save_short())
 * with the notes about the tokenizer. The sizes of files then follow from tensors and config.json; the tokenizer is
 * parsed when the first header is read.
 *
 * Kept are tokenizers that take long to parse, and whose entries follow all others of the model and have no influence
 * on them, so that a file grows by just these bytes. */
#pragma once

#include "models/family/gguf_model.h"

/* A model before its tokenizer's entries. */
struct before_vocab {
    bool is_wanted; /* else nothing is kept of the model */
    struct buffer entries;
    size_t n_keys;
    uint64_t n_notes; /* checkpoint_notes_made() */
};

struct before_vocab before_vocab(const struct gguf_model *model);

/* Keeps the size and notes of a model with all entries, or drops what is kept if it is another. Nothing changes unless
 * the entries were added. */
void kept_vocab_end(const struct gguf_model *model, bool added, struct before_vocab *before);

/* Reports whether the size is kept, and the tokenizer can be parsed while reads are answered. */
bool kept_vocab_exists(const struct checkpoint *checkpoint, bool is_repacked);

/* Gives a model without its tokenizer's entries their size, and repeats the notes. False, and nothing changes: they are
 * not kept. */
bool kept_vocab_load(struct gguf_model *model);
