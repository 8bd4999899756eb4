/* The gated delta net, a linear attention that Qwen3-Next and Qwen 3.5 mix with full attention, and other parts that
 * the two share: norms stored minus one, experts, and a layer that predicts one more token. conversion/qwen.py.
 *
 * Each key head has `share` value heads: Qwen 3.5 stores them key head by key head; llama.cpp expects the first of
 * every key head, then the second ... Dimensions: group (key heads), share, key_dim, value_dim, gate_dim. */
#pragma once

#include "models/families/drafts/nextn.h"

extern const struct relation_row gated_delta_tensors[];         /* for both */
extern const struct relation_row gated_delta_grouped_tensors[]; /* for Qwen 3.5: reorders the value heads */
extern const struct key_row gated_delta_keys[];                 /* after moe_keys */

void gated_delta_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams);

/* family.adjust: sets the number of layers that predict, from config.json, or from the tensors' names, as the converter
 * does. */
bool gated_delta_count_predicting(struct model_builder *builder, struct error *error);

/* Sets the sections of the rope to those of the released models, if config.json has none. */
bool gated_delta_emit_sections(struct model_builder *builder, struct error *error);
