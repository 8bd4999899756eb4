/* Shared by the Qwen families. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row qwen_moe_tensors[];

/* For the language models of the vision models, whose three rope positions are the same for text. */
extern const struct config_form qwen2_half_forms[], qwen3_half_forms[], qwen3moe_half_forms[];

/* Qwen 3 and Qwen3-VL rerankers, whose output has only the rows of two tokens, "yes" and "no". The configuration does
 * not identify rerankers, so wfs, like the converter, looks for "qwen3-reranker" or "qwen3-vl-reranker" in the name or
 * path of the checkpoint, in config.json's model_type, or after "# " in README.md, and for a class that classifies
 * sequences. conversion/qwen.py, Qwen3Model. */

/* family.adjust: recognizes a reranker, and finds the two tokens. */
bool reranker_look(struct model_builder *builder, struct error *error);

/* family.arrange: puts cls.output.weight before the embedding if the embedding is the output, too, else in the output's
 * place. */
void reranker_arrange(struct model_builder *builder);

/* Sets the keys of a reranker; after pooling_type. */
bool emit_reranker(struct model_builder *builder, struct error *error);
