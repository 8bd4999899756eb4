/* Shared by the Granite families. */
#pragma once

#include "models/families/shared.h"

extern const struct key_row granite_keys[];
extern const struct relation_row granite_moe_tensors[];
extern const struct key_row granite_moe_keys[];

/* Leaves out the vision encoder of Granite 4 Vision and the audio encoder of Granite Speech; for family.rename. */
const char *granite_without_towers(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const char *name);

/* Granite 4 Vision: the layers of the text model that get results of the vision encoder.
 *
 * deepstack_layer_map and spatial_target_layers of config.json name a projector for each of them. A GGUF counts all
 * projectors in the order of those layers; the first one's result replaces tokens, the others' are added later. Source:
 * conversion/granite.py, get_normalized_projector_map(). */

enum { GRANITE_VISION_KINDS = 2, GRANITE_VISION_MOST = 8, GRANITE_VISION_ALL = 16 }; /* projectors of a kind, of both */

enum granite_vision_kind { GRANITE_LAYERWISE, GRANITE_SPATIAL };

struct granite_projector {
    uint64_t vision_layer, text_layer; /* from which layer, to which layer */
    enum granite_vision_kind kind;
    unsigned number; /* among those of its kind */
};

struct granite_projectors {
    struct granite_projector list[GRANITE_VISION_ALL]; /* as a GGUF counts them */
    unsigned n;
};

/* Fails if a layer does not exist, or there are more than GRANITE_VISION_MOST projectors of a kind. */
bool granite_projectors_read(const struct json *config, struct granite_projectors *ret_projectors, struct error *error);

/* Sets deepstack_mapping if config.json names such layers. */
bool emit_deepstack_mapping(struct model_builder *builder, struct error *error);
