/* Long arrays among a model's keys, such as tokens and merges: 8 to 15 MB of a usual vocabulary, needed only by who
 * reads a file's header. They are moved to a source that drops them when others are read (formats/source_remade.h), and
 * makes the model again to have them back. */
#pragma once

#include "models/family/gguf_model.h"

/* Fills in a new model of the same checkpoint and references; the caller frees it. Returns NULL on failure. */
typedef struct gguf_model *long_keys_remake(const struct gguf_model *model, void *context, struct error *error);

/* Moves the arrays of a finished model. Leaves all where they are if they are few, or a source may be remote: then they
 * could not be made while reads are answered. The context lives as long as the model. */
void long_keys_move(struct gguf_model *model, long_keys_remake *remake, void *context);
