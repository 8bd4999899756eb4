/* What the BERT families share. */
#pragma once

#include "models/families/family.h"

extern const struct tensor_row bert_tensors[];
extern const struct key_row bert_keys[]; /* behind base_keys */

/* Old spellings of weight and bias, and heads by the labels of config.json. */
const char *bert_rename(const struct synthesis *synthesis, const char *name);
