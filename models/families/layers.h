/* What differs from layer to layer: lists of hyperparameters, and keys with one value a layer. */
#pragma once

#include "models/families/family.h"

enum { MAX_LISTED_LAYERS = 1 << 16 }; /* a number alone is not a reason to make long arrays */

/* One value a layer. */
struct layers {
    uint64_t n;
    double *values; /* in the arena of the model; 0 to begin with */
};

/* As many layers as the facts count; fails where those are none, or more than MAX_LISTED_LAYERS. */
bool layers_new(const struct draft *draft, struct layers *ret_layers, struct error *error);

/* 1 where the list of texts `list` has `text` for the layer, or what later releases of transformers call it:
 * "attention" has become "full_attention", "mamba" "linear_attention". Layers that the list does not have stay 0. */
void layers_mark(struct layers *layers, const struct json *list, const char *text);

/* Notes that a list has such names, where the converter knows the first ones alone. */
void layers_note_later_names(const struct draft *draft, const struct json *list);

/* The numbers and truth values of a list; layers that it does not have stay as they are. */
void layers_fill(struct layers *layers, const struct json *list);

/* Sets a key to an array of I32, F32 or BOOL. */
void layers_set(struct draft *draft, const char *key, enum gguf_type type, const struct layers *layers);

/* Sets a key to the numbers that a hyperparameter lists, as F32; to nothing where it is not a list. */
bool layers_emit_listed(struct draft *draft, const char *key, const char *from, struct error *error);

/* attention.head_count_kv: num_key_value_heads on the layers that `layers` marks, 0 on the others. */
bool layers_set_kv_heads(struct draft *draft, const struct layers *layers, struct error *error);

/* attention.sliding_window_pattern, as truth values: the layers that layer_types calls "sliding_attention". */
bool emit_sliding_layers(struct draft *draft, struct error *error);
