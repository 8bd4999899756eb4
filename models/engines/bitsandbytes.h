/* Directories that transformers loads with bitsandbytes: every linear module but the output head in 4 or 8 bits, as
 * from_pretrained(quantization_config=BitsAndBytesConfig(...)) and save_pretrained() write them on a CPU.
 *
 * Weights are in one file, or in shards (models/huggingface/shards.h). With double quantization, the text of a weight
 * has a mean of all its blocks, whose length only reading them all tells: blanks fill it up, so that the file differs
 * from transformers' in its texts.
 *
 * Source: transformers, integrations/bitsandbytes.py and quantizers/quantizer_bnb_*.py; bitsandbytes, functional.py
 * (QuantState.as_dict()) and nn/modules.py. */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "models/engines/loaded.h"
#include "models/huggingface/shards.h"

struct bnb_type {
    const char *name;        /* of its directory: "nf4-double" */
    const float *levels;     /* of the codes of 4 bits (quant/bitsandbytes.h); NULL: 8 bits */
    const char *levels_name; /* "nf4"; NULL: 8 bits */
    bool is_double;          /* the largest magnitudes of blocks are quantized, too */
};

extern const struct bnb_type bnb_types[]; /* up to a NULL name */

/* Fails if no weight of the model would be quantized: its directories would hold another kind of model than they say.
 */
bool bnb_quantizes_any(const struct loaded_model *model, struct error *error);

/* Plans shards of at most `max_size` bytes, as shards_plan() does. */
bool bnb_plan_shards(const struct loaded_model *model, const struct bnb_type *type, uint64_t max_size,
                     struct arena *arena, struct shards *ret_shards, struct error *error);

/* Makes the artifact of a shard, or, if `shards` is NULL, of the whole model, with new tensors in `arena`; the caller
 * frees it with artifact_free(). */
void bnb_artifact(const struct loaded_model *model, const struct bnb_type *type, const struct shards *shards,
                  size_t shard, struct arena *arena, struct artifact *ret_artifact);

/* Appends the text of model.safetensors.index.json. */
void bnb_write_index(const struct loaded_model *model, const struct bnb_type *type, const struct shards *shards,
                     struct buffer *out);

/* Appends the text of config.json. */
bool bnb_write_config(const struct loaded_model *model, const struct bnb_type *type, struct buffer *out,
                      struct error *error);
