/* Translates names of an engine's parameters to names in a checkpoint, section by section (the texts between dots),
 * like TensorRT-LLM's ModelWeightsLoader. {"attention": "self_attn", "qkv": ["q_proj", "k_proj", "v_proj"]} makes three
 * names from layers.0.attention.qkv.weight: a list makes a name for each of its texts. The text '' drops a section.
 *
 * With the newer rules, a key may have several sections ("layers.3") and replaces its text everywhere, if it is whole
 * sections of the original name. With the older rules, each section of the name is looked up by itself.
 *
 * Source: tensorrt_llm/models/model_weights_loader.py and docs/source/architecture/model-weights-loader.md, 0.17
 * and 1.2. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "text/json.h"

enum { KEY_NAMES_MAX = 16, KEY_ENTRIES_MAX = 16384 };

struct key_entry {
    const char *key;
    const struct json *value; /* a text, or a list of texts */
    const char *file;         /* the file with the entry, for errors */
};

struct key_names {
    struct key_entry *entries;
    size_t n_entries;
    bool by_sections; /* the older rules */
};

/* Merges a dictionary, which must outlive `keys`, into those before it: its entry for a key replaces an earlier one.
 * Fails if a value is neither a text nor a list of texts, or there are too many. An error has the file and the line. */
bool key_names_add(struct key_names *keys, const struct json *dictionary, const char *file, struct arena *arena,
                   struct error *error);

/* Fails if there are more than KEY_NAMES_MAX names, or one is longer than 1024 bytes. An error has the file and the
 * line of the entry, except for a long name by the older rules. */
bool key_names_translate(const struct key_names *keys, const char *name, struct arena *arena,
                         const char *ret_names[KEY_NAMES_MAX], unsigned *ret_count, struct error *error);
