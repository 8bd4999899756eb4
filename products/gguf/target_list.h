/* The files of targets (models/targets.h) in a product's list, for products whose object is a gguf_edition. */
#pragma once

#include "models/targets.h"
#include "products/product.h"

/* Adds the file of a target, which is static or in the list's arena. Returns the file, for the caller to change until
 * the next is added. */
struct product_file *target_list_add(struct product_list *list, const struct target *target);

/* Adds gguf/ and the files of all targets of a kind of model. `of` is the product whose object is that model; NULL: the
 * one that lists them. */
void target_list_add_all(struct product_list *list, enum target_model model, const struct product *of);

/* Makes the artifact of a target from an edition. */
enum outcome target_list_make(const struct product_input *input, const void *edition, const void *target,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error);
