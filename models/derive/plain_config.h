/* config.json of a packed model after unpacking: the source's, without its description of the packing. */
#pragma once

#include "base/buffer.h"
#include "formats/json.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends a JSON object as transformers saves it, without the members that describe a packing, at any depth. */
void plain_config(const struct json *config, struct buffer *out);

/* Reports whether a side file of that name says how a model is packed, and nothing else. */
bool plain_config_lacks(const char *name);
