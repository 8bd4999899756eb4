/* Hyperparameters: config.json as transformers' AutoConfig would show it to the converter.
 *
 * What the converter reads is not config.json but the class defaults of its model_type overlaid with it: with
 * attribute_map renames, values the class computes (llama's head_dim), and a multimodal model's text_config merged on
 * top. The classes are data (config_class.h); where the model type has no row, config.json is all there is. Presence
 * matters: a key that is present with null is present.
 *
 * Source: transformers configuration classes; conversion/base.py of llama.cpp. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"

struct hparams;

/* Reads config.json among the side files. NULL where there is none (*ret_absent set to true) or where it is not valid.
 */
struct hparams *hparams_load(const struct checkpoint *checkpoint, bool *ret_absent, struct error *error);

/* The same from text, which takes the place of the file; `text` need not outlive the call. */
struct hparams *hparams_parse(const char *text, size_t length, struct error *error);
void hparams_free(struct hparams *hparams); /* NULL is allowed */

/* Where config.json describes the parts of a multimodal model that see and hear: dotted keys, the first present one
 * counts ("whisper_config|audio_config"); NULL for what it has not. */
struct tower_config {
    const char *vision, *audio;
    const char *audio_file; /* a side file that is the description itself, in the place of `audio`; NULL: none */
};

/* The same configuration as the converter's classes for projectors see it: the keys of the part that sees, or else of
 * that which hears, with the defaults of its class. Those that begin with "text." are of the text model, which is
 * `text`, owned by the result; "outer." of the whole without its text part; "audio." of the part that hears;
 * "preprocessor." of processor_config.json and preprocessor_config.json. NULL where config.json has neither part. */
struct hparams *hparams_of_tower(struct hparams *text, const struct checkpoint *checkpoint,
                                 const struct tower_config *configs, struct error *error);

/* Reports whether config.json describes one of them. */
bool hparams_has_tower(const struct hparams *text, const struct tower_config *configs);

/* The architecture that chooses the projector, which vision_config may name; NULL where none is named. */
const char *hparams_tower_architecture(const struct hparams *text);

/* The effective value of a key, or NULL where it is absent. A dotted key is a path: "attn_config.clip_qkv". */
const struct json *hparams_get(const struct hparams *hparams, const char *key);

/* The value of the first *present* key of "rms_norm_eps|norm_eps", as the converter's find_hparam; NULL where none is
 * present. What is present may be null. */
const struct json *hparams_find(const struct hparams *hparams, const char *keys);

/* A value of the rope parameters after the converter's normalization: rope_parameters or rope_scaling, with rope_theta,
 * rope_type, partial_rotary_factor and original_max_position_embeddings filled in from the top level. Where full and
 * sliding attention have parameters of their own, hparams_rope() means the former. */
const struct json *hparams_rope(const struct hparams *hparams, const char *key);
const struct json *hparams_rope_sliding(const struct hparams *hparams, const char *key);

/* The value of the first key present as a number, for shapes and counts: false, with an error that names the key, where
 * it is missing, null, not a whole number, or outside [low, high]. */
bool hparams_count(const struct hparams *hparams, const char *keys, uint64_t low, uint64_t high, uint64_t *ret_count,
                   struct error *error);

/* Makes `key` have `value` from here on, whatever config.json says: for families that correct it. */
bool hparams_override(struct hparams *hparams, const char *key, uint64_t value, struct error *error);

/* Adds defaults for keys that config.json and its class lack: an object, spelled with ' for the quotation mark. */
bool hparams_default(struct hparams *hparams, const char *defaults, struct error *error);

/* config.json as it is in the file. */
const struct json *hparams_raw(const struct hparams *hparams);

/* The architecture that chooses the family: "LlamaForCausalLM"; NULL where none is named. */
const char *hparams_architecture(const struct hparams *hparams);
