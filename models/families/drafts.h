/* Shared by the families of draft models: they use parts of the model that they draft for
 * (models/derive/target.h). */
#pragma once

#include "formats/documents.h"
#include "models/families/shared.h"

/* Opens config.json of that model; an error says how to name it where nobody has. */
bool draft_open_target(const struct model_builder *builder, struct document **ret_config, struct error *error);

/* A value of it, of its text model where it is multimodal. */
const struct json *draft_target_value(const struct document *config, const char *key);

/* target_layers: `n_layers` layers of that model. */
void draft_set_target_layers(struct model_builder *builder, const int64_t *layers, size_t n_layers);

/* The same of a list of numbers, each plus `added`; no key where the list is absent or empty. */
bool draft_list_target_layers(struct model_builder *builder, const struct json *list, int64_t added,
                              struct error *error);
