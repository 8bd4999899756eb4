/* config.json of a packed model unpacked: the source's own text, without what it says of the packing. */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends the text of a JSON object without the members that say how it is packed, of the object itself and of those
 * that are its members. The text is valid JSON: it has been parsed. */
void plain_config(const char *text, size_t length, struct buffer *out);

/* Whether a side file of that name says how a model is packed, and nothing else. */
bool plain_config_lacks(const char *name);
