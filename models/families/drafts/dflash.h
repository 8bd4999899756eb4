/* DFlash: layers of Qwen 3 that draft a block of tokens for a target model, from the hidden states of some of its
 * layers; and DSpark, which adds a Markov head. conversion/qwen.py.
 *
 * Shared by the families whose GGUF has the architecture dflash. Their values are in dflash_config, in config.json, or
 * in either. */
#pragma once

#include "models/families/drafts/drafts.h"

extern const struct relation_row dflash_tensors[];
extern const struct key_row dflash_keys[]; /* after base_keys */

/* Rows of config.json: for all, and for DSpark. */
extern const struct config_row dflash_common_rows[], dspark_rows[];

/* Returns a value of dflash_config; NULL: it has none. */
const struct json *dflash_own(const struct model_builder *builder, const char *key);

/* Returns a value of dflash_config or, if that lacks it or, for older builds, is missing, of config.json. */
const struct json *dflash_value(const struct model_builder *builder, const char *key);

/* family.rename: leaves out an embedding or a head that is the target's. */
const char *dflash_rename(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                          const char *name);

/* family.adjust: decides whether the draft has an embedding and a head of its own, or the target's: the dimensions
 * "embedding" and "own_head". */
bool dflash_adjust(struct model_builder *builder, struct error *error);

/* family.add_extras: checks that there is a target, and adds its tokens if the draft has fewer. */
bool dflash_check_target(struct model_builder *builder, struct error *error);

/* Sets the keys of DSpark's heads. */
bool dspark_emit(struct model_builder *builder, struct error *error);
