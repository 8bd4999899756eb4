/* A GGUF's model under Hugging Face's names as a checkpoint: tensor names, arrangements and config.json as in a Hugging
 * Face directory. For code that finds weights by these names. */
#pragma once

#include "formats/checkpoint.h"

/* Returns NULL if the GGUF's metadata do not tell the names. The GGUF must outlive the checkpoint: the caller may let
 * the checkpoint keep it. */
struct checkpoint *hf_checkpoint_new(const struct checkpoint *gguf, struct error *error);
