/* config.json of an unpacked model: the packed source's, without its description of the packing. */
#pragma once

#include "base/buffer.h"
#include "text/json.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends a JSON object as transformers saves it, without the members that describe a packing, at any depth. */
void plain_config(const struct json *config, struct buffer *out);

/* Reports whether a side file of that name only describes a packing. */
bool plain_config_lacks(const char *name);
