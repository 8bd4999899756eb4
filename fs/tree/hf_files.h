/* The files beside the weights that from_pretrained() needs, for any directory. */
#pragma once

#include "fs/tree/tree.h"

/* Adds the source's side files, without the description of a packing, and for a GGUF the files made from its keys.
 * Names that are taken stay as they are. */
void hf_files_add_beside(struct tree *tree, node_id directory);

/* Adds chat_template.jinja if the source has the template within another file. */
void hf_files_add_template(struct tree *tree, node_id directory);
