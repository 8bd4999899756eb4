/* Hyperparameters: config.json as transformers' AutoConfig shows it to the converter.
 *
 * The converter reads config.json on top of the class defaults of its model_type, with attribute_map renames, values
 * the class computes (llama's head_dim), and a multimodal model's text_config merged on top. The classes are data
 * (config_class.h); without a row for the model type, config.json stands alone. A key with the value null is present.
 *
 * Source: transformers configuration classes; conversion/base.py of llama.cpp. */
#pragma once

#include "formats/checkpoint.h"
#include "text/json.h"

struct hparams;

/* Reads the side file config.json, or Mistral's own params.json. Returns NULL if it is missing, with *ret_absent true,
 * or invalid. All but models/facts.h ask there, where the file is read once. */
struct hparams *hparams_load(const struct checkpoint *checkpoint, bool *ret_absent, struct error *error);

const char *hparams_file(const struct checkpoint *checkpoint); /* that file's name */

/* Returns hyperparameters on top of others of a text model, which must outlive them and which changes do not reach. */
struct hparams *hparams_over(const struct hparams *below);

/* Like hparams_load(), from text instead of the file; `text` need not outlive the call. */
struct hparams *hparams_parse(const char *text, size_t length, struct error *error);
void hparams_free(struct hparams *hparams); /* NULL is allowed */

/* The objects of config.json that describe the vision and audio encoders of a multimodal model: dotted keys, of which
 * the first present one counts ("whisper_config|audio_config"); NULL: it has no such encoder. */
struct tower_config {
    const char *vision, *audio;
    const char *vision_layers; /* a number above 0 of config.json, which then describes the vision encoder beside the
                                  text model, instead of `vision`; NULL: none */
    const char *audio_file;    /* a side file with the description, instead of `audio`; NULL: none */
};

/* Returns the configuration as the converter's classes for projectors read it: the keys of the vision encoder, or else
 * of the audio encoder, with the defaults of its class. Keys that begin with "text." belong to the text model `text`;
 * "outer." to config.json without its text_config; "audio." to the audio encoder; "preprocessor." to
 * processor_config.json and preprocessor_config.json. Takes ownership of `text`, also on failure. Returns NULL if
 * config.json describes neither encoder, or a file is invalid. */
struct hparams *hparams_of_tower(struct hparams *text, const struct checkpoint *checkpoint,
                                 const struct tower_config *configs, struct error *error);

/* Reports whether config.json describes one of these encoders. */
bool hparams_has_tower(const struct hparams *text, const struct tower_config *configs);

/* Returns the Hugging Face class that chooses the projector: vision_config's, or else config.json's; NULL: none. */
const char *hparams_tower_class(const struct hparams *text);

/* Returns the effective value of a key, or NULL. A dotted key is a path: "attn_config.clip_qkv". */
const struct json *hparams_get(const struct hparams *hparams, const char *key);

/* Returns the value, which may be null, of the first *present* key of "rms_norm_eps|norm_eps", like the converter's
 * find_hparam(); NULL: none is present. Keys of 64 bytes or more are never found. */
const struct json *hparams_find(const struct hparams *hparams, const char *keys);

/* Reports whether Python takes the value for true: no 0, and nothing empty. */
bool hparams_truth(const struct json *value);

/* Gets a number; true and false are numbers in Python. */
bool hparams_number(const struct json *value, double *ret_number);

/* Return a rope parameter after the converter's normalization, or NULL: from rope_parameters or rope_scaling, where
 * rope_type may be called type; hparams_rope() fills in rope_theta, partial_rotary_factor and
 * original_max_position_embeddings from the top level. If full and sliding attention have parameters of their own, it
 * reads those of full attention. */
const struct json *hparams_rope(const struct hparams *hparams, const char *key);
const struct json *hparams_rope_sliding(const struct hparams *hparams, const char *key);

/* Like hparams_rope(), for values that the converter looks up beside those of full and sliding attention. */
const struct json *hparams_rope_of_all(const struct hparams *hparams, const char *key);

/* Gets the value of the first present key, for shapes and counts. Fails, with an error that names the key, if it is
 * missing, null, not a whole number, or outside [low, high]. */
bool hparams_count(const struct hparams *hparams, const char *keys, uint64_t low, uint64_t high, uint64_t *ret_count,
                   struct error *error);

/* Sets `key` to `value`, which replaces config.json's value. */
bool hparams_override(struct hparams *hparams, const char *key, uint64_t value, struct error *error);

/* Puts the keys of an object, in JSON, before config.json's. */
bool hparams_put_first(struct hparams *hparams, const char *text, size_t length, struct error *error);

/* Adds defaults for keys that config.json and its class lack: an object, spelled with ' for the quotation mark. */
bool hparams_default(struct hparams *hparams, const char *defaults, struct error *error);

/* Returns the root of the file itself, without defaults. */
const struct json *hparams_raw(const struct hparams *hparams);

/* Returns the Hugging Face class that chooses the family, "LlamaForCausalLM"; NULL: none is named. */
const char *hparams_class(const struct hparams *hparams);
