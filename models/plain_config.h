/* config.json of a packed model unpacked: the source's own text, without what it says of the packing. */
#pragma once

#include "base/buffer.h"

#include <stddef.h>

/* Appends the text of a JSON object without the members of these names, an array that ends with NULL, of the object
 * itself and of those that are its members. The text is valid JSON: it has been parsed. */
void plain_config(const char *text, size_t length, const char *const *names, struct buffer *out);
