/* The values of a torch archive without its tensors: what a reader of several archives needs to join them. */
#pragma once

#include "formats/torch/pickle.h"
#include "sources/source.h"

/* Reads data.pkl of a zip archive of torch as a graph, in the arena, which must be freed before the source is closed.
 * Fails for other containers. */
bool torch_values_read(struct pickle *pickle, const struct source *source, struct arena *arena, struct error *error);
