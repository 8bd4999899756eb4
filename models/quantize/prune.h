/* --prune-layers of llama-quantize: a model without some of its layers, the others renumbered.
 *
 * What the tool writes under a new number has the name, shape and type of the layer that stays, and the *values* of the
 * layer that had that number before: it renames tensors, and looks for their bytes by the new name. That is followed,
 * and a layer whose values would not fit is refused, where the tool would write bytes of something else.
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

/* The tool's spelling: numbers with commas between them. */
bool layer_list_parse(const char *text, struct arena *arena, struct layer_list *ret_list, struct error *error);

/* A tensor of the file. */
struct kept_tensor {
    const struct tensor *tensor;   /* as it is written */
    const struct tensor *original; /* as the model has it */
};

/* Takes tensors of those layers out of the list, which is in the tool's order, and gives the others their new names and
 * values, from the sealed set that they are of; new tensors are in the arena. Returns in `ret_n_layers` what the tool
 * then writes as block_count. */
bool prune_layers(const struct layer_list *list, const struct tensor_set *set, struct arena *arena,
                  struct kept_tensor *tensors, size_t *n_tensors, uint64_t *ret_n_layers, struct error *error);
