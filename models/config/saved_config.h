/* config.json and generation_config.json as save_pretrained() writes them after from_pretrained(): with the values that
 * the class fills in, without those that every class has.
 *
 * The classes are data. A model type without a row keeps its config.json as it is, up to the changes of all types; then
 * from_pretrained() fills in the rest.
 *
 * Source: transformers, configuration_utils.py and generation/configuration_utils.py, to_diff_dict();
 * configuration_*.py for the classes, checked against AutoConfig by tests/interop/test_bitsandbytes.py. */
#pragma once

#include "base/buffer.h"
#include "text/json.h"

#include <stdbool.h>

/* The versions that save: 5 has no defaults for generation, and so writes every value. */
enum transformers { TRANSFORMERS_4, TRANSFORMERS_5 };

struct saved_class {
    const char *model_type;
    const char *defaults; /* a JSON object, spelled with ' for the quotation mark; without the sizes of the model, which
                             every config.json has */
    bool has_head_dim;    /* a head_dim of null becomes hidden_size / num_attention_heads */
    bool has_window_layers; /* layer_types: sliding attention from the layer max_window_layers on */
    unsigned full_every;    /* layer_types: every such layer has full attention, the others sliding; 0: no such key */
};

/* Returns the row of a model type, or NULL. */
const struct saved_class *saved_class_find(const char *model_type);

/* Makes the document from config.json, an object; `dtype` is the type that the weights were loaded as: "bfloat16". The
 * members of `more`, an object or NULL, join it. Members are in the order of their keys. */
struct json_document *saved_config(const struct json *config, const char *dtype, const struct json *more,
                                   struct error *error);

/* Appends the text of generation_config.json: that of the source, or what saved_config() made has for it, if `source`
 * is NULL. */
void saved_generation_config(const struct json *source, const struct json *config, enum transformers version,
                             struct buffer *out);
