/* Qwen 3 and Qwen3-VL as they rank documents: of the output there are but the rows of two tokens, "yes" and "no". The
 * configuration says nothing of it; as the converter does, it is told by "qwen3-reranker" or "qwen3-vl-reranker" in
 * the name or path of the checkpoint, in config.json's model_type, or after "# " in README.md, and by an architecture
 * that classifies sequences. conversion/qwen.py, Qwen3Model. */
#pragma once

#include "models/families/shared.h"

/* For family.adjust: whether it ranks, and the two tokens. */
bool reranker_look(struct model_builder *builder, struct error *error);

/* For family.arrange: cls.output.weight before the embedding, where that is the output, too, or else in its place. */
void reranker_arrange(struct model_builder *builder);

/* Keys of one that ranks; after pooling_type. */
bool emit_reranker(struct model_builder *builder, struct error *error);
