/* Shared by the BERT families. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row bert_tensors[];

/* Lines of config.json of a classifier. */
extern const struct config_row bert_label_rows[];

extern const struct key_row bert_keys[]; /* after base_keys */

/* Sets the flag "labels" if config.json has labels of its own. */
void bert_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams);

/* Removes a class's prefix from the tensors around a classifier; for family.rename. */
const char *bert_rename(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                        const char *name, const char *prefix);

/* Sets RoBERTa's dimensions for positions: "padding", and context_length. */
void roberta_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams);
extern const struct key_row roberta_keys[]; /* after base_keys */
extern const struct config_row roberta_config_rows[];
