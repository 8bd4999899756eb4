/* What the relatives of DeepSeek V2 share: multi-head latent attention (MLA), whose keys and values come from one short
 * vector, and its kind of experts. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row mla_tensors[];
extern const struct relation_row deepseek_moe_tensors[]; /* of other families, too: all but */
extern const struct relation_row deepseek_expert_tensors[];
extern const struct key_row mla_keys[]; /* after base_keys */

/* nope, value: the sizes of a head's parts. tie_word_embeddings. */
void mla_add_facts(struct facts *facts, const struct hparams *hparams);

/* leading_dense_block_count: without first_k_dense_replace, all layers are dense where there are no experts, and none
 * where there are. */
bool deepseek_dense_layers(const struct draft *draft, double *ret_value, struct error *error);

/* Whether the whole is DeepSeek-OCR or one of its kin, whatever its text model says it is. */
bool deepseek_is_ocr(const struct hparams *hparams);

/* family.adjust: what the converter's class takes for granted where config.json is silent. */
bool mla_adjust(struct draft *draft, struct error *error);
