/* Shared by Qwen3-VL with and without experts. */
#pragma once

#include "models/families/qwen.h"

extern const struct key_row qwen3vl_keys[];

/* "thinker.", which the Omni and ASR models have in their names. */
extern const char *const qwen3vl_dropped_parts[];

/* family.after_vocab: the models that speak or listen begin and end with <|im_end|>, and recognizers have a template of
 * their own. */
bool qwen3vl_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);
