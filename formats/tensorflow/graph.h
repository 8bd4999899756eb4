/* Constants of TensorFlow's graphs. */
#pragma once

#include "formats/checkpoint.h"

/* Adds the constants in the first graph of a SavedModel and in its functions, by the names that graph.c gives them, to
 * `tensors`, which lives in the checkpoint's arena, like the file. A graph without constants is no error. */
bool saved_model_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      struct error *error);
