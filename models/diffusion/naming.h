/* The names that diffusers gives to the tensors of a component, and those of the model's makers: relations, with
 * diffusers' names here and the makers' there (models/relation/relation.h).
 *
 * diffusers itself only converts from the makers' names, by the scripts that each row's file follows; the relations are
 * their inverse, exact to the bit. To add a naming, write its table and its row in naming.c. */
#pragma once

#include "formats/checkpoint.h"
#include "models/relation/relation.h"

struct diffusion_naming {
    const char *class_name;   /* _class_name in the component's config.json: "FluxTransformer2DModel" */
    const char *architecture; /* diffusion_architecture.name */
    const struct relation_row *rows;
    /* A module of the last block that the makers store otherwise; its row has "last." before the module. NULL: none */
    const char *blocks, *last_module; /* the beginning of the names of blocks; the module */
};

/* Returns the naming for a component, by its config.json; NULL: there is none, or none is needed. */
const struct diffusion_naming *diffusion_naming_of(const struct checkpoint *checkpoint);

/* Returns the component's tensors under the makers' names, in no particular order and not sealed, in the arena. Returns
 * NULL if a tensor has another name than diffusers gives it, or one is missing. */
struct tensor_set *diffusion_rename(const struct diffusion_naming *naming, const struct checkpoint *checkpoint,
                                    struct arena *arena, struct error *error);

/* FluxTransformer2DModel. Source: scripts/convert_flux_to_diffusers.py of diffusers. */
extern const struct relation_row flux_names[];

/* SD3Transformer2DModel. Source: scripts/convert_sd3_to_diffusers.py of diffusers. */
extern const struct relation_row sd3_names[];
