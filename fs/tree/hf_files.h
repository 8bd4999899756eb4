/* The files that from_pretrained() needs beside the weights, in any directory. */
#pragma once

#include "fs/tree/tree.h"

/* Adds the side files of the model: those of the source, but for what says how it is packed; of a GGUF those that are
 * made of its keys. Names that are taken stay as they are. */
void hf_files_add_beside(struct tree *tree, node_id directory);
