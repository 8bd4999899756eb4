/* The part of `wfs info` about a source's components. It opens each of them. */
#pragma once

#include "base/buffer.h"
#include "fs/cli/info/profile.h"
#include "fs/tree/component_files.h"
#include "text/json_write.h"

/* Appends a text about a component: "unet/: UNet2DConditionModel, 860 million parameters ...". */
void component_text(struct tree *tree, const struct component *component, struct buffer *text);

/* Writes "components": an object for each, where put(writer, profile) writes the same members as for a source. */
typedef void put_component_profile(struct json_writer *writer, const struct profile *profile);
void put_components(struct json_writer *writer, struct tree *tree, put_component_profile *put);
