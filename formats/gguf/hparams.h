/* Hyperparameters: config.json as transformers' AutoConfig would show it to the converter.
 *
 * What the converter reads is not config.json but the class defaults of its model_type overlaid with it: with
 * attribute_map renames, computed values (llama's head_dim), and a multimodal model's text_config merged on top. The
 * defaults are data: JSON text in a table, one row a model type (config_defaults.c). Where the model type is unknown, config.json
 * stands alone. Presence matters: a key that is present with null is present.
 *
 * Source: transformers 4.57 configuration classes; conversion/base.py of llama.cpp 34af94cd9. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"

struct hparams;

/* Reads config.json among the side files. NULL where there is none (*ret_absent set to true) or where it is not valid. */
struct hparams *hparams_load(const struct checkpoint *checkpoint, bool *ret_absent, struct error *error);
void hparams_free(struct hparams *hparams);

/* The effective value of a key, or NULL where it is absent. */
const struct json *hparams_get(const struct hparams *hparams, const char *key);

/* The first *present* key of a NULL-terminated list, as the converter's find_hparam: NULL where none is, or the first present
 * is null. */
const struct json *hparams_find(const struct hparams *hparams, const char *const *keys);

/* config.json as it is in the file. */
const struct json *hparams_raw(const struct hparams *hparams);

/* The architecture that chooses the family: "LlamaForCausalLM"; NULL where none is named. */
const char *hparams_architecture(const struct hparams *hparams);
