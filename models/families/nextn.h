/* Layers that predict more than one token ahead (multi-token prediction, "NextN"): whole layers after the last one,
 * with a few tensors of their own.
 *
 * Checkpoints either count them on (model.layers.{N+i}), or have them below "mtp.", where those that all share lie
 * beside mtp.layers.{i}. In a GGUF they are layers like any other: block_count counts them. The fact "nextn" is their
 * number, and facts.n_layers includes them. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row nextn_tensors[];

/* Facts from num_nextn_predict_layers. */
void nextn_add_facts(struct facts *facts, const struct hparams *hparams);

/* Sets the fact to `n`, whatever it was. */
void nextn_set(struct facts *facts, uint64_t n);

/* Makes block_count count the layers of the facts: for family.adjust. */
bool nextn_count_blocks(struct draft *draft, struct error *error);

/* nextn_predict_layers, where there are any. */
bool nextn_emit(struct draft *draft, struct error *error);

/* family.rename of those that lie below "mtp." */
const char *nextn_rename(struct arena *arena, const struct facts *facts, enum direction direction, const char *name);
