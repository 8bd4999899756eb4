/* llama-quantize: which type every tensor gets in gguf/model-Q4_K_M.gguf and its kin.
 *
 * The output is the tool's for the f32 conversion. It differs from the converter's output in this: tensors
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

/* Returns the number of quantizable tensors that the importance matrix lacks: the tool quantizes these without
 * importances if the type allows it, with a warning for each. *ret_n is the number of quantizable tensors, *ret_first
 * the first that the matrix lacks. Only tensors of layers count, because llama-imatrix leaves the others out. */
size_t quantize_unweighed(const struct gguf_model *model, const struct quantize_options *options, size_t *ret_n,
                          const char **ret_first);

/* Fails, with the reason, where the tool refuses. */
bool quantize_artifact(const struct gguf_model *model, const struct mix *mix, const struct quantize_options *options,
                       struct artifact *ret_artifact, struct error *error);
