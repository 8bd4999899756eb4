/* The base model of an adapter, or the target model of a draft model (speculative decoding). An adapter's GGUF includes
 * the base's configuration, and a draft model's GGUF its target's tokenizer and some of its sizes: -o base= names the
 * directory, as --base and --target-model-dir do for the converter.
 *
 * The derivation keeps that model as BASE_TARGET: with its side files alone for a draft model, and for an adapter with
 * its tensors, whose names are used. A path without a model is an error, even if the checkpoint does not need one. */
#pragma once

#include "formats/checkpoint.h"

/* Opens the base of an adapter: with its tensors under the names that adapters use, or, without weights, its side files
 * alone. */
const struct checkpoint *base_open(const char *path, bool follow_links, struct error *error);
