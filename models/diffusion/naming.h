/* The names that diffusers gives to the tensors of a component, and those of the model's makers: relations, with
 * diffusers' names here and the makers' there (models/relation/relation.h).
 *
 * diffusers itself only converts from the makers' names, by the scripts that each row's file follows. Both directions
 * are exact to the bit. To add a naming, write its table and its row in naming.c. */
#pragma once

#include "formats/checkpoint.h"
#include "models/relation/relation.h"

struct diffusion_naming {
    const char *class_name;   /* _class_name in the component's config.json: "FluxTransformer2DModel" */
    const char *architecture; /* diffusion_architecture.name */
    const struct relation_row *rows;
    const char *width; /* the makers' name of a tensor with as many rows as queries, keys and values have */

    /* A module of the last block with a row of its own, in which "last." follows the number of the block. By the side:
     * the beginning of the names of blocks, and the module; NULL: none. */
    const char *blocks[2], *last_module[2];
};

/* Returns the naming for a component, by its config.json; NULL: there is none, or none is needed. */
const struct diffusion_naming *diffusion_naming_of(const struct checkpoint *checkpoint);

/* Returns the naming for a model under its makers' names, by its architecture; NULL: there is none. */
const struct diffusion_naming *diffusion_naming_for(const char *architecture);

/* Returns the tensors of a sealed set under the names of the other side, in no particular order and not sealed, in the
 * arena: FORWARD goes to the makers' names. Returns NULL if a tensor has a name that the side does not know, or one is
 * missing. */
struct tensor_set *diffusion_rename(const struct diffusion_naming *naming, enum direction direction,
                                    const struct tensor_set *set, struct arena *arena, struct error *error);

/* FluxTransformer2DModel. Source: scripts/convert_flux_to_diffusers.py of diffusers. */
extern const struct relation_row flux_names[];

/* SD3Transformer2DModel. Source: scripts/convert_sd3_to_diffusers.py of diffusers. */
extern const struct relation_row sd3_names[];
