/* A Stable Diffusion pipeline as one checkpoint, with the names of the first release, as diffusers' scripts write it.
 *
 * The scripts rename tensors (single_file_names.h) and put the prefix of their component before each name. They join
 * the queries, keys and values of an OpenCLIP text encoder, and turn the matrices of the VAE's attention into
 * convolutions. Source: scripts/convert_diffusers_to_original_stable_diffusion.py and
 * scripts/convert_diffusers_to_original_sdxl.py of diffusers, with --use_safetensors. */
#pragma once

#include "formats/artifact.h"

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
