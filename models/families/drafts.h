/* Shared by the families of draft models (speculative decoding), whose GGUF depends on their target model
 * (models/derive/target.h). */
#pragma once

#include "formats/documents.h"
#include "models/families/shared.h"

/* Opens config.json of the target model; without one, the error names -o base=. */
bool draft_open_target(const struct model_builder *builder, struct document **ret_config, struct error *error);

/* Returns a value of that config.json, from its text_config if it has one. */
const struct json *draft_target_value(const struct document *config, const char *key);

/* Sets target_layers to the numbers of `n_layers` layers of the target model. */
void draft_set_target_layers(struct model_builder *builder, const int64_t *layers, size_t n_layers);

/* Like draft_set_target_layers(), for a list of numbers, each increased by `added`. Sets no key if the list is missing
 * or empty. */
bool draft_list_target_layers(struct model_builder *builder, const struct json *list, int64_t added,
                              struct error *error);

/* Adds the tensor d2t, if the checkpoint has it: the target model's token, below `n_vocab`, for each token of the draft
 * model, which stores the difference of the two numbers. */
bool draft_add_tokens(struct model_builder *builder, uint64_t n_vocab, struct error *error);
