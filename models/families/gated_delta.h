/* The gated delta net, a linear attention that Qwen3-Next and Qwen 3.5 mix with full attention, and what else the two
 * share: norms that are stored less one, experts, and a layer that predicts one more token. conversion/qwen.py.
 *
 * The value heads belong to key heads, `share` of them to each: stored key head by key head in Qwen 3.5, where
 * llama.cpp wants the first of every key head, then the second ... Facts: group (key heads), share, key_dim, value_dim,
 * gate_dim. */
#pragma once

#include "models/families/nextn.h"

extern const struct relation_row gated_delta_tensors[];         /* of both */
extern const struct relation_row gated_delta_grouped_tensors[]; /* of Qwen 3.5: the value heads go into another order */
extern const struct key_row gated_delta_keys[];                 /* after moe_keys */

void gated_delta_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams);

/* family.adjust: how many layers predict. The converter has it from config.json, or from the tensors' names. */
bool gated_delta_count_predicting(struct model_builder *builder, struct error *error);
