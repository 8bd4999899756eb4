/* Values that differ by layer: lists of hyperparameters, and keys with one value a layer. */
#pragma once

#include "models/families/shared.h"
#include "models/family/layer_marks.h"

/* One value a layer. */
struct layers {
    uint64_t n;
    double *values; /* in the arena of the model; 0 to begin with */
};

/* Makes a value for each layer of the dimensions; fails for no layers, or more than MAX_LISTED_LAYERS. */
bool layers_new(const struct model_builder *builder, struct layers *ret_layers, struct error *error);

/* Makes a 0 for each element of a list, which may have more or fewer than the model has layers. */
bool layers_of_list(const struct model_builder *builder, const struct json *list, struct layers *ret_layers,
                    struct error *error);

/* Sets a key to the same F32, I32 or BOOL for each layer. */
bool layers_set_all(struct model_builder *builder, const char *key, enum gguf_type type, double value,
                    struct error *error);

/* Sets swiglu_clamp_exp and swiglu_clamp_shexp to a number of config.json for each layer: I32 if it is spelled as a
 * whole number, for a list in Python keeps the type. On the way back, layers_clamp() returns it. */
bool layers_set_clamps(struct model_builder *builder, const struct json *value, struct error *error);
const char *layers_clamp(const struct config_material *material);

/* Sets 1 for each layer with `text` in the list of strings `list`, or with its name in later releases of transformers:
 * "attention" has become "full_attention", "mamba" "linear_attention". Other layers keep their value. */
void layers_mark(struct layers *layers, const struct json *list, const char *text);

/* Notes that a list has the later names, none of which the converter knows. */
void layers_note_later_names(const struct model_builder *builder, const struct json *list);

/* Copies the numbers and bools of a list; layers beyond the list keep their value. */
void layers_fill(struct layers *layers, const struct json *list);

/* Sets a key to an array of I32; fails where a value does not fit in one. */
bool layers_set_i32(struct model_builder *builder, const char *key, const struct layers *layers, struct error *error);

/* Sets a key to an array of F32 or BOOL. */
void layers_set(struct model_builder *builder, const char *key, enum gguf_type type, const struct layers *layers);

/* Sets a key to a hyperparameter's list of numbers, as F32; sets nothing if it is not a list. */
bool layers_emit_listed(struct model_builder *builder, const char *key, const char *from, struct error *error);

/* Marks a layer in the dimensions of the model, for family.rename: layers that the names of tensors do not tell apart.
 * Layers from MAX_REMEMBERED_LAYERS on are not marked. */
enum { MAX_REMEMBERED_LAYERS = 256 };
void layers_remember(struct dimensions *dimensions, uint64_t layer);
bool layers_recall(const struct dimensions *dimensions, uint64_t layer);

/* Sets attention.head_count_kv: num_key_value_heads for the layers marked in `layers`, 0 for the others. */
bool layers_set_kv_heads(struct model_builder *builder, const struct layers *layers, struct error *error);

/* Sets attention.sliding_window_pattern, as bools: true for layers with "sliding_attention" in layer_types. There are
 * as many as layer_types has, whatever the number of layers; no key for none. Fails without layer_types. */
bool emit_listed_windows(struct model_builder *builder, struct error *error);

/* Sets first_k_dense_replace, the number of leading dense layers, where config.json has a list of the layers' types
 * instead: for family.adjust. Fails if it has neither, or both and they differ. */
bool layers_count_dense(struct model_builder *builder, struct error *error);
