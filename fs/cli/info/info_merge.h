/* What `wfs info` shows of a recipe. */
#pragma once

#include "formats/checkpoint.h"
#include "text/json_write.h"

/* Appends one line about the merge; returns false if the checkpoint is none. */
bool append_merge(struct buffer *text, const struct checkpoint *checkpoint);

/* Prints a line for each tensor of a merge: its name, the method, the models and their parameters. */
void print_merge(const struct checkpoint *checkpoint);

/* Writes the member "merge": null if the checkpoint is none. */
void put_merge(struct json_writer *writer, const struct checkpoint *checkpoint);
