/* A GGUF as a checkpoint with Hugging Face's tensor names, arrangements and config.json, for code that finds weights by
 * these names. */
#pragma once

#include "formats/checkpoint.h"

/* Returns NULL if the GGUF's metadata do not determine the names. The GGUF must outlive the checkpoint: the caller may
 * let the checkpoint keep it. */
struct checkpoint *hf_checkpoint_new(const struct checkpoint *gguf, struct error *error);
