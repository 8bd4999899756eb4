/* A model under construction, for the family's hooks to read and extend. */
#pragma once

#include "models/family/family.h"
#include "models/family/gguf_model.h"

struct model_builder {
    struct gguf_model *model; /* its arena, checkpoint, hparams, kvs */
    const struct family *family;
    const struct family_name *hf;
    struct dimensions dimensions;
    bool *is_partial; /* is_partial of the relation's job: the tensors may be a part of the model */
};

/* Applies the family's defaults, note and adjust hook, after its dimensions are read. */
bool builder_adjust(struct model_builder *builder, struct error *error);

/* For hooks: adds a tensor before tensor `place`. `name` and `view` live in the model's arena. */
void builder_insert_tensor(struct model_builder *builder, size_t place, const char *name, const struct view *view);

/* For family.arrange: puts the tensors with these names, patterns up to a NULL, before all others: layer by layer, and
 * within a layer in the order of the names. */
void builder_put_first(struct model_builder *builder, const char *const *names);

/* For family.arrange: puts one tensor, if it exists, after all others. */
void builder_put_last(struct model_builder *builder, const char *name);

/* Returns the name of a key of the architecture, in the model's arena: "llama.block_count". */
const char *builder_key(const struct model_builder *builder, const char *key);

/* Sets the keys of a table. */
bool builder_emit(struct model_builder *builder, const struct key_row *rows, struct error *error);

/* Gets the number of the hyperparameters, written as in key_row.from; `otherwise` if they are absent or null. Fails if
 * the value is not a number. */
bool builder_number(const struct model_builder *builder, const char *from, double otherwise, double *ret_value,
                    struct error *error);
