/* What the BERT families share. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row bert_tensors[];
extern const struct key_row bert_keys[]; /* after base_keys */

/* "labels": config.json has labels of its own. */
void bert_add_facts(struct facts *facts, const struct hparams *hparams);
