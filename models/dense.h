/* The dense layer after some models that embed: of a sentence-transformers model it is in a folder of its own, and goes
 * into the GGUF with the others (family.dense_folder). */
#pragma once

#include "formats/checkpoint.h"

/* Opens that folder, where the checkpoint's family has one and it is there, for a checkpoint that nobody uses yet,
 * which keeps it. What cannot be opened is noted. */
void dense_open(struct checkpoint *checkpoint);

/* Its matrix, linear.weight. NULL without an error where there is no such folder. */
const struct tensor *dense_find(const struct checkpoint *checkpoint, const char *folder, struct error *error);
