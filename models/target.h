/* What a draft model drafts for. Its tokenizer and a few of its sizes are a part of the draft model's GGUF, so that the
 * converter wants its directory, too (--target-model-dir); here -o base=DIR says where that is. */
#pragma once

#include "formats/checkpoint.h"

/* Opens the side files of the model at `path`, which may be ORG/NAME in the local hub cache, for a checkpoint that
 * nobody uses yet: its `target`. Nothing happens where `path` is NULL, and to what is an adapter or a GGUF. */
bool target_open(struct checkpoint *checkpoint, const char *path, struct error *error);
