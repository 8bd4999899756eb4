/* Models whose output is their embedding, with both apart.
 *
 * An adapter that has trained a copy of one of them (modules_to_save) leaves the other one as it was: what was one
 * tensor is two from then on, and config.json says so, as peft's merge_and_unload() does. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"

/* Whether what adapter_config.json says parts the output of a model from its embedding. */
bool untie_is_wanted(const struct json *adapter_config);

/* Gives a checkpoint that nobody uses yet the output that it shares with its embedding, and takes from config.json that
 * it is shared. Does nothing where it has one, or none that is known. */
bool untie(struct checkpoint *checkpoint, struct error *error);
