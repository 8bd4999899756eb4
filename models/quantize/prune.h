/* --prune-layers of llama-quantize: a model without some of its layers, the others renumbered.
 *
 * The tool renames the tensors of a layer that stays, but then looks up their bytes by the new name: the layer keeps
 * its shapes and types, and gets the *values* of the layer that had its new number before. wfs does the same, but
 * refuses a layer whose values do not fit, where the tool writes wrong bytes.
 *
 * Source: remap_layer() and llama_model_quantize_impl() in src/llama-quant.cpp, load_data_for() in
 * src/llama-model-loader.cpp of llama.cpp. */
#pragma once

#include "formats/tensor_set.h"

/* Layers, ascending, each once. */
struct layer_list {
    const uint32_t *layers;
    size_t n_layers; /* 0: none */
};

/* Parses the tool's spelling: numbers with commas between them. The list is made in the arena. */
bool layer_list_parse(const char *text, struct arena *arena, struct layer_list *ret_list, struct error *error);

/* A tensor of the file. */
struct kept_tensor {
    const struct tensor *tensor;   /* the written tensor */
    const struct tensor *original; /* the model's tensor */
};

/* Removes the tensors of the listed layers from `tensors`, which are in the tool's order and belong to the sealed
 * `set`, and gives the others their new names and values; new tensors are in the arena. *ret_n_layers becomes the
 * block_count that the tool writes. */
bool prune_layers(const struct layer_list *list, const struct tensor_set *set, struct arena *arena,
                  struct kept_tensor *tensors, size_t *n_tensors, uint64_t *ret_n_layers, struct error *error);
