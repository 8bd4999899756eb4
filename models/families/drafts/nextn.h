/* Layers that predict more than one token ahead (multi-token prediction, "NextN"): whole layers after the last one,
 * with a few tensors of their own.
 *
 * Checkpoints either number them on (model.layers.{N+i}), or have them below "mtp.", with shared tensors beside
 * mtp.layers.{i}. In a GGUF they are ordinary layers: block_count counts them. The dimension "nextn" is their number,
 * and dimensions.n_layers includes them. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row nextn_tensors[];

/* Sets the dimension from num_nextn_predict_layers. */
void nextn_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams);

/* Sets the dimension to `n`, whatever it was. */
void nextn_set(struct dimensions *dimensions, uint64_t n);

/* Reduces the dimension to the layers that the checkpoint has, with a note: a fine-tune's config.json often promises
 * layers that were not saved, and llama.cpp refuses a GGUF without them. */
bool nextn_keep_present(struct model_builder *builder, struct error *error);

/* Makes block_count count the layers of the dimensions that the checkpoint has: for family.adjust. */
bool nextn_count_blocks(struct model_builder *builder, struct error *error);

/* Sets nextn_predict_layers if there are such layers. */
bool nextn_emit(struct model_builder *builder, struct error *error);

/* Sets nextn_predict_layers to config.json's number, also to 0. */
bool nextn_emit_stated(struct model_builder *builder, struct error *error);

/* For family.arrange: gives each further layer that predicts its own copies of the tensors shared with the first, after
 * the original: the tensors beside mtp.layers.{i}, or, with `all`, every tensor of the layer. */
void nextn_repeat(struct model_builder *builder, bool all);

/* family.rename for layers below "mtp." Backwards, leaves out copies of shared tensors. */
const char *nextn_rename(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                         const char *name);
