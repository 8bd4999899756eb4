/* The model that an adapter or a draft model belongs to. Its configuration is part of the adapter's GGUF, and a draft
 * model's GGUF has its tokenizer and a few of its sizes, for which the converter wants its directory, too (--base,
 * --target-model-dir); here -o base= says where it is.
 *
 * A derivation keeps that model as BASE_TARGET. Of what a draft model drafts for it has the side files, of an adapter's
 * base the weights, too (the names of its tensors count), as base_open() opens them. A path that leads to no model is
 * an error, also where the checkpoint makes no use of it. */
#pragma once

#include "formats/checkpoint.h"

/* The base of an adapter with its tensors' names, as adapters call them, or its side files alone where there are no
 * weights. */
const struct checkpoint *base_open(const char *path, bool follow_links, struct error *error);
