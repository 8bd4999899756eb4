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

enum { KEY_NAMES_MAX = 16, KEY_ENTRIES_MAX = 16384 };

struct key_entry {
    const char *key;
    const struct json *value; /* a text, or a list of texts */
    const char *file;         /* that it is in, for errors */
};

struct key_names {
    struct key_entry *entries;
    size_t n_entries;
    bool by_sections; /* the older rules */
};

/* Merges a dictionary into those before it: what it says of a key takes the place of what is there. Fails where a value
 * is neither a text nor a list of texts, or there are too many. An error has the file and the line. */
bool key_names_add(struct key_names *keys, const struct json *dictionary, const char *file, struct arena *arena,
                   struct error *error);

/* Fails where there are more than KEY_NAMES_MAX names, or one is too long. An error has the file and the line. */
bool key_names_translate(const struct key_names *keys, const char *name, struct arena *arena,
                         const char *ret_names[KEY_NAMES_MAX], unsigned *ret_count, struct error *error);
