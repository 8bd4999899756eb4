/* The canonical model as a checkpoint: what a GGUF would be as a Hugging Face directory, its tensors' names and layout,
 * and config.json. For those who look for weights by what Hugging Face calls them. */
#pragma once

#include "formats/checkpoint.h"

/* NULL where the GGUF's names cannot be told from its metadata. The GGUF must live longer. */
struct checkpoint *canonical_checkpoint_new(const struct checkpoint *gguf, struct error *error);
