/* The weights of a directory for an engine in which linear modules are quantized: the files, and their index.
 *
 * The files are the source's, or model.safetensors alone (models/engines/ct_model.h). A way to quantize puts the parts
 * of each weight; all other tensors stay as they are. */
#pragma once

#include "formats/artifact.h"
#include "models/engines/ct_model.h"
#include "products/product.h"

struct weights_maker;

/* How the weights are quantized. */
struct weights_way {
    const struct ct_model *model;
    const void *scheme;  /* what the functions below need */
    unsigned most_parts; /* that put() makes of a weight */
    const char *format;  /* the "format" that each file names; NULL: none */

    /* Puts the parts of a target. Fails, with the reason, if it cannot be quantized. */
    bool (*put)(struct weights_maker *maker, const struct tensor *tensor);

    /* Returns the file of the parts of a tensor; NULL: the file of the tensor. */
    size_t (*file_of)(const struct weights_way *way, const struct tensor *tensor, bool is_target);
};

/* The making of one file, for put(). */
struct weights_maker {
    const struct weights_way *way;
    struct artifact *artifact;
    size_t capacity;
    struct arena *arena;
    struct error *error;
};

/* Adds a view as a part of a weight: with the suffix after the name of the weight's module, or of a weight that is none
 * of a module. */
void weights_put_part(struct weights_maker *maker, const struct tensor *of, const char *suffix,
                      const struct view *view);

/* Returns the values of a weight in the dtype in which the model is saved. */
const struct view *weights_matrix(const struct weights_maker *maker, const struct tensor *tensor);

/* Makes the artifact of a file, with tensors in the arena. Fails, with the reason, if a target cannot be quantized. */
bool weights_make(const struct weights_way *way, size_t file, struct arena *arena, struct artifact *ret_artifact,
                  struct error *error);

/* Appends the text of model.safetensors.index.json. Fails like weights_make(). */
bool weights_write_index(const struct weights_way *way, struct buffer *out, struct error *error);

/* Makes the model, in which the matrices of modules are targets, except those that the patterns `kept` match
 * (ct_ignored.h), or those that the user named instead. Experts with inputs before outputs stay as they are stored
 * (ct_model.h). Returns NULL, with the reason, if no target is left. */
struct ct_model *weights_model_new(const struct product_input *input, const char *const *kept, struct arena *arena,
                                   struct error *error);

/* Adds the weights files and their index to the list of a product whose object is a struct weights_way. */
void weights_add_files(const struct checkpoint *checkpoint, struct product_list *list);

/* Returns config.json with this member in place of any other packing's description, keys sorted as Python sorts them:
 * appends the text. `description` is {"quantization_config": ...} as JSON. Fails if there is no config.json. */
bool weights_write_config(const struct weights_way *way, const struct buffer *description, struct buffer *out,
                          struct error *error);
