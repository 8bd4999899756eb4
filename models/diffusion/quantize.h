/* A diffusion model as ComfyUI-GGUF's llama-quantize writes it, an older one with a patch: the types of tensors follow
 * from their names, by rules that all architectures share, and the order of tensors stays. It quantizes matrices only,
 * and drops leading dimensions of 1. A tensor whose rows are not whole blocks of a type of 256 becomes F16.
 *
 * The files are those of a build without fused multiply-add. Source: tools/lcpp.patch of ComfyUI-GGUF, applied to
 * src/llama.cpp of llama.cpp c8c07d658. */
#pragma once

#include "models/diffusion/convert.h"
#include "models/quantize/mix.h"

/* Reports whether the tool has a mix of that name. */
bool diffusion_has_mix(const char *name);

/* Makes the artifact of a mix that the tool has, which the caller frees, from a model of diffusion_model_new() or a
 * GGUF of one of the architectures. Fails, with the reason, if the tool refuses the model. */
bool diffusion_quantize(const struct gguf_edition *edition, const struct mix *mix, struct artifact *ret_artifact,
                        struct error *error);
