/* A Flux or Stable Diffusion 3 model under its makers' names as the transformer of a pipeline: tensors with diffusers'
 * names, and config.json with what their shapes say.
 *
 * Source: scripts/convert_flux_to_diffusers.py and scripts/convert_sd3_to_diffusers.py of diffusers. */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "formats/tensor_set.h"
#include "models/diffusion/state_dict.h"
#include "text/json_write.h"

/* Reports whether a model can become a component. */
bool component_is_known(const struct state_dict *dict);

/* Makes the artifact of a sealed set of tensors as save_pretrained() saves it. The set must outlive it, and the caller
 * frees it. */
void component_weights(const struct tensor_set *tensors, struct artifact *ret_artifact);

/* Makes the artifact of the weights, with names and views in `arena`; the checkpoint must outlive it. The caller frees
 * it. Fails if a tensor has a name that diffusers does not know, or one is missing. */
bool component_artifact(const struct state_dict *dict, struct arena *arena, struct artifact *ret_artifact,
                        struct error *error);

/* Appends config.json. Fails if a tensor is missing or has another rank. */
bool component_write_config(const struct state_dict *dict, struct buffer *out, struct error *error);

/* A config.json that is written from the shapes of a component's tensors. */

/* The component while its configuration is written; `failed` is set by the first tensor that does not fit. */
struct describing {
    const struct tensor_set *set; /* sealed */
    struct json_writer *writer;
    struct error *error;
    bool failed;
};

/* Returns a dimension of a tensor; 0, and a failure, if the tensor is missing or has no such dimension. */
uint64_t describing_size(struct describing *describing, const char *name, unsigned axis);

/* Puts a dimension of a tensor. */
void describing_put_size(struct describing *describing, const char *key, const char *tensor, unsigned axis);

/* Returns the number of blocks whose names begin so, by the highest number that follows. */
uint64_t describing_blocks(const struct tensor_set *set, const char *beginning);

/* Records a failure, unless there was one before. */
void describing_fail(struct describing *describing, const char *format, ...) __attribute__((format(printf, 2, 3)));
