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

/* Keeps the keys of a model that has all of them, and the notes that this thread has made from that one on
 * (checkpoint_notes_made()). */
void kept_keys_save(const struct gguf_model *model, uint64_t first_note);

/* How many bytes the entries of a tokenizer take in a GGUF's header, kept for later processes (findings_save_short())
 * with the notes about the tokenizer. The sizes of files then follow from tensors and config.json; the tokenizer is
 * parsed when the first header is read.
 *
 * Kept are tokenizers that take long to parse, and whose entries follow all others of the model and have no influence
 * on them, so that a file grows by just these bytes. */

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

/* Long arrays among a model's keys, such as tokens and merges: 8 to 15 MB of a usual vocabulary, needed only by who
 * reads a file's header. They are moved to a source that drops them when others are read (sources/source_kinds.h), and
 * makes the model again to have them back, or reads what is wanted of those that are kept. */

/* Moves the arrays of a finished model. Leaves all where they are if they are few, or a source may be remote: then they
 * could not be made while reads are answered. */
void long_keys_move(struct gguf_model *model);

/* Reports whether long arrays of the model's checkpoint can be made while reads are answered. */
bool long_keys_can_move(const struct gguf_model *model);

/* Reports whether an entry is a long array whose value is in memory. */
bool is_long_key(const struct gguf_kv *kv);

/* A long array without its value. */
struct absent_key {
    size_t place; /* in the model's keys; its entry has no value */
    enum gguf_type element_type;
    uint64_t n_elements, length; /* of the value, in bytes */
};

/* Gives entries of a model their values in a source that reads those that are kept, or makes the model again. */
void long_keys_are_absent(struct gguf_model *model, const struct absent_key *absent, size_t n_absent);
