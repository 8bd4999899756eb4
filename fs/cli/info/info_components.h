/* The part of `wfs info` about a source's components. */
#pragma once

#include "base/buffer.h"
#include "fs/tree/component_files.h"

/* Appends a text about a component: "unet/: UNet2DConditionModel, 860 million parameters ...". */
void component_text(struct tree *tree, const struct component *component, struct buffer *text);
