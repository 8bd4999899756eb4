/* llama-quantize: which type every tensor gets in gguf/model-Q4_K_M.gguf and its kin.
 *
 * What is planned is the tool's output for the f32 conversion. It differs from the converter's output in this: tensors
 * sorted by layer and name, trailing dimensions of 1 dropped, general.quantization_version and general.file_type moved
 * to the end.
 *
 * Source: src/llama-quant.cpp, tools/quantize/quantize.cpp of llama.cpp. */
#pragma once

#include "models/convert/model.h"
#include "models/quantize/mix.h"

/* Computes what all quantizations of a model share, into its arena: before the functions below. */
void quantize_prepare(struct gguf_model *model);

/* Reports whether the tool takes a model that is a GGUF, with the keys that are overridden: the error says why not. */
bool quantize_takes(const struct gguf_model *model, struct error *error);

/* Of how many tensors that may be quantized the matrix of the options says nothing: the tool quantizes these as if
 * there were no matrix, where the type allows it, and says so of each. *ret_n is how many there are, *ret_first the
 * first one without. Only those of layers count, since llama-imatrix leaves the others out. */
size_t quantize_unweighed(const struct gguf_model *model, const struct quantize_options *options, size_t *ret_n,
                          const char **ret_first);

/* Fails, with the reason, where the tool refuses. */
bool quantize_artifact(const struct gguf_model *model, const struct mix *mix, const struct quantize_options *options,
                       struct artifact *ret_artifact, struct error *error);
