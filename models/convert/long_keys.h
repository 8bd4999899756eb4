/* Long arrays among a model's keys, such as tokens and merges: 8 to 15 MB of a usual vocabulary, needed only by who
 * reads a file's header. They are moved to a source that drops them when others are read (sources/source_kinds.h), and
 * makes the model again to have them back, or takes them from those that are kept (kept_keys.h). */
#pragma once

#include "models/family/gguf_model.h"

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

/* Loads the values of absent arrays, in empty buffers that the caller frees; false: they are not kept. */
typedef bool long_keys_load(const struct gguf_model *model, const struct absent_key *absent, size_t n_absent,
                            struct buffer *values);

/* Gives entries of a model their values in a source that loads them, or makes the model again, when they are read.
 * `absent` lives as long as the model. */
void long_keys_are_absent(struct gguf_model *model, const struct absent_key *absent, size_t n_absent,
                          long_keys_load *load);
