/* The names that tensors of a Stable Diffusion model have in a single file, which are those of its first release, and
 * in the components of a diffusers pipeline.
 *
 * diffusers' scripts rename tensors by replacing texts, one rule after the other, and a name that no rule knows stays
 * as it is. The same rules, applied in reverse, lead back. Names in a single file are without the prefix of their
 * component. Source: scripts/convert_diffusers_to_original_stable_diffusion.py and
 * scripts/convert_diffusers_to_original_sdxl.py of diffusers. */
#pragma once

#include "formats/tensor_set.h"

/* What a component is, as far as names are concerned. */
enum single_file_part {
    SINGLE_FILE_UNET,
    SINGLE_FILE_VAE,
    SINGLE_FILE_CLIP,      /* a text encoder with the names of transformers */
    SINGLE_FILE_OPEN_CLIP, /* a text encoder with OpenCLIP's names; it has queries, keys and values in one tensor */
};

struct single_file_names;

/* Makes the rules for Stable Diffusion XL, or for 1 and 2. Names are made in the same arena, too. */
const struct single_file_names *single_file_names_new(struct arena *arena, bool is_xl);

/* Returns a tensor's name in a single file, by its name in a component. */
const char *single_file_name(const struct single_file_names *names, enum single_file_part part, const char *name);

/* Returns a tensor's name in a component, by its name in a single file; NULL if no component has such a tensor, or only
 * several make it up. */
const char *single_file_component_name(const struct single_file_names *names, enum single_file_part part,
                                       const char *name);

/* Returns the first name that a U-Net must have, and that the set lacks; NULL: it has them all. */
const char *single_file_missing_name(const struct single_file_names *names, const struct tensor_set *unet);

/* Reports whether the VAE's tensor of that name in a single file is a convolution of 1 by 1 there, and a matrix in the
 * component. */
bool single_file_is_convolved(const char *name);
