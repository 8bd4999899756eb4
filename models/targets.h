/* Targets: the GGUF files that are made from a model, a row each.
 *
 * A target is the path of its file, the kind of its model, and the maker of its artifact: the converter,
 * llama-quantize, for diffusion models ComfyUI-GGUF's own of both, or for a GGUF a copy. products/gguf/ lists the
 * files. To add a target, write its row in targets.c. Every mix (models/quantize/mix.h) is also a target:
 * gguf/model-MIX.gguf. */
#pragma once

#include "models/quantize/quantize.h"

enum target_model {
    OF_CHECKPOINT,
    OF_PACKED_CHECKPOINT,
    OF_GGUF,
    OF_PROJECTOR,
    OF_MTP,
    OF_ADAPTER,
    OF_DIFFUSION_MODEL
};

/* Makes the artifact of `type`, which is one of the maker's own; the caller frees it with artifact_free(). FAILED: the
 * error has the reason; REPORTED: a note of the checkpoint has it. */
typedef enum outcome target_maker(const struct gguf_edition *edition, const char *type,
                                  const struct quantize_options *options, struct artifact *ret_artifact,
                                  struct error *error);

struct target {
    const char *path; /* the file's: "gguf/model-F16.gguf" */
    enum target_model of;
    target_maker *make;
    const char *type; /* the converter's --outtype, or the name of a mix; NULL: the maker has only one type */
};

extern const struct target targets[]; /* up to a NULL path; those for one kind of model in the order of listing */

/* Makes the artifact that llama-quantize makes, or ComfyUI-GGUF's for a diffusion model; `type` is the name of a mix.
 */
target_maker target_quantize;
