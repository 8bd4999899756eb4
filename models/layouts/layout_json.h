/* The JSON that a layout writes: its documents (config.json ...), and the manifest of raw files, in the style of
 * json.dumps() with an indentation of 4. */
#pragma once

#include "models/layouts/make.h"
#include "models/layouts/scope.h"

/* Appends {"tensors": [{"name": ..., "file": ..., "dtype": ..., "shape": [...], "bytes": ...}, ...]}. */
void layout_json_manifest(const struct layout_product *product, struct buffer *out);

/* Appends the members of the sections whose conditions hold; a later member replaces an earlier one of the same name. A
 * text that begins with '=' is an expression, and becomes its value. */
bool layout_json_document(const struct layout_document *document, struct scope *scope,
                          const struct checkpoint *checkpoint, struct buffer *out, struct error *error);
