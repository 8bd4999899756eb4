/* The base model of an adapter, or the target model of a draft model (speculative decoding). An adapter's GGUF is made
 * by the base's configuration, and a draft model's GGUF includes its target's tokenizer and some of its sizes: -o base=
 * names the directory, as --base and --target-model-dir do for the converter.
 *
 * The derivation keeps that model as BASE_TARGET: for an adapter with its tensors, whose names are used; for a draft
 * model only its side files, unless the draft replaces a row of the target's embedding. The row is then BASE_MASK. A
 * path without a model is an error, even if the checkpoint does not need one. */
#pragma once

#include "formats/checkpoint.h"

/* Opens the base of an adapter: with its tensors under the names that adapters use, or with its side files only if the
 * weights are missing or cannot be opened, which a hint of the adapter says. */
const struct checkpoint *base_open(const char *path, const struct checkpoint *adapter, struct error *error);
