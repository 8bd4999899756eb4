/* Hyperparameters that transformers 5 does not save, since its classes compute with one value alone.
 *
 * Published checkpoints spell them out, and keep them when they are saved again; a model that transformers 5 made
 * lacks them. Source: the modeling files of transformers 5.24. */
#pragma once

#include "models/config/hparams.h"

/* Adds those that config.json lacks, if transformers 5 or later wrote it. Returns the object that was added, spelled
 * with ' for the quotation mark, in *ret_added; NULL: none. */
bool hparams_add_constants(struct hparams *hparams, const char **ret_added, struct error *error);
