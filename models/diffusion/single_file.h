/* A Stable Diffusion pipeline as one checkpoint, with the names of the first release, as diffusers' scripts write it.
 *
 * The scripts rename tensors (below) and put the prefix of their component before each name. They join
 * the queries, keys and values of an OpenCLIP text encoder, and turn the matrices of the VAE's attention into
 * convolutions. Source: scripts/convert_diffusers_to_original_stable_diffusion.py and
 * scripts/convert_diffusers_to_original_sdxl.py of diffusers, with --use_safetensors. */
#pragma once

#include "formats/artifact.h"
#include "formats/tensor_set.h"

enum { SINGLE_FILE_MAX_PARTS = 4 };

/* The folders of the components that a script reads, up to NULL: for Stable Diffusion 1 and 2, and for XL. */
extern const char *const single_file_parts[SINGLE_FILE_MAX_PARTS + 1];
extern const char *const single_file_xl_parts[SINGLE_FILE_MAX_PARTS + 1];

/* Makes the tensors of the file, in the arena, from those of the components: parts[i] belongs to the folder with that
 * number. Returns a sealed set; NULL if a script would fail: a tensor is missing, or two would have one name. */
const struct tensor_set *single_file_new(const struct tensor_set *const *parts, bool is_xl, struct arena *arena,
                                         struct error *error);

/* Makes the artifact of the file, or with `is_half` that of the script's --half, in `arena`; the set must outlive it.
 * The caller frees it. Fails if a tensor has no half-precision form. */
bool single_file_artifact(const struct tensor_set *tensors, bool is_half, struct arena *arena,
                          struct artifact *ret_artifact, struct error *error);

/* The names that tensors of a Stable Diffusion model have in a single file, which are those of its first release, and
 * in the components of a diffusers pipeline.
 *
 * diffusers' scripts rename tensors by replacing texts, one rule after the other, and a name that no rule knows stays
 * as it is. The same rules, applied in reverse, lead back. Names in a single file are without the prefix of their
 * component. Source: scripts/convert_diffusers_to_original_stable_diffusion.py and
 * scripts/convert_diffusers_to_original_sdxl.py of diffusers. */

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
