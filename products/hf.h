/* The files beside the weights that from_pretrained() needs, for any directory. */
#pragma once

#include "products/product.h"

/* Adds the source's side files, without the description of a packing, and for a GGUF the files made from its keys.
 * Names that are taken stay as they are. `prefix` begins the path of each: "". */
void hf_add_beside(const struct product_input *input, const char *prefix, struct product_list *list);

/* Adds chat_template.jinja if the source has the template within another file. */
void hf_add_template(const struct product_input *input, struct product_list *list);
