/* Shared by the families of draft models (speculative decoding), whose GGUF depends on their target model
 * (models/derive/adapter.h). */
#pragma once

#include "formats/documents.h"
#include "models/families/shared.h"

/* For forms of drafts. */
#define DRAFT_NOTE                                                                                                     \
    "a draft model: the tokenizer is that of the model it drafts for; its class, the usual one of several with the "   \
    "same GGUF, is in Python files that are not in the GGUF"

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

/* On the way back, turns d2t into differences again. */
extern const struct elementwise draft_steps;

/* Rows of config.json: vocab_size, by a matrix or the tokenizer, and draft_vocab_size, by d2t. */
extern const struct config_row draft_rows[];

/* The file of a draft model with a row for the token that stands for unknown ones, which the target has not trained:
 * {"mask_token_id": ID, "embedding": ROW}, as torch saves it. models/derive/attached.c opens it as BASE_MASK. */
#define DRAFT_MASK_FILE "mask_embedding.pt"

/* Reports whether the checkpoint has that file. */
bool draft_has_mask(const struct checkpoint *draft);

/* Adds the embedding with that row, for the token `mask_id`; before it the target's output head, unless the draft has
 * one. The embedding is the draft's own, which then is not related again, or the target's, whose weights must be open.
 * Source: conversion/qwen.py, DFlashModel.generate_extra_tensors. */
bool draft_add_masked(struct model_builder *builder, const struct json *mask_id, struct error *error);
