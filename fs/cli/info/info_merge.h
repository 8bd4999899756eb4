/* What `wfs info` shows of a recipe. */
#pragma once

#include "base/buffer.h"
#include "formats/checkpoint.h"

/* Appends one line about the merge; returns false if the checkpoint is none. */
bool append_merge(struct buffer *text, const struct checkpoint *checkpoint);

/* Prints a line for each tensor of a merge: its name, the method, the models and their parameters. */
void print_merge(const struct checkpoint *checkpoint);
