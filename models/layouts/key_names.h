/* Names translated by a dictionary, section by section, as TensorRT-LLM's ModelWeightsLoader does: what one of its
 * parameters is called in a checkpoint. {"attention": "self_attn", "qkv": ["q_proj", "k_proj", "v_proj"]} makes three
 * names of layers.0.attention.qkv.weight. A list gives as many names, its texts in turn; '' leaves a section out.
 *
 * With the newer rules a key may be several sections ("layers.3") and replaces text wherever it is, but only if it is
 * whole sections of the name that was given. With the older ones each section of the name is looked up for itself.
 *
 * Source: tensorrt_llm/models/model_weights_loader.py and docs/source/architecture/model-weights-loader.md, 0.17
 * and 1.2. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "formats/json.h"

enum { KEY_NAMES_MAX = 16, KEY_DICTIONARIES_MAX = 4 };

/* Dictionaries in the order in which they are merged: what a later one says of a key takes the place of what is there.
 */
struct key_names {
    const struct json *dictionaries[KEY_DICTIONARIES_MAX];
    unsigned n_dictionaries;
    bool by_sections; /* the older rules */
};

/* Fails where a value is neither a text nor a list of texts, and where there are more than KEY_NAMES_MAX names. */
bool key_names_translate(const struct key_names *keys, const char *name, struct arena *arena,
                         const char *ret_names[KEY_NAMES_MAX], unsigned *ret_count, struct error *error);
