/* The canonical model: a checkpoint as Hugging Face's tools would have saved it, whatever it came as. Plain tensors
 * under Hugging Face's names and in its layout; what model.safetensors and hf/ are written from.
 *
 * No weight is read. Everything lives in the model's arena until canonical_model_free(). */
#pragma once

#include "formats/checkpoint.h"

struct canonical_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    const struct tensor_set *tensors; /* without those that a file of safetensors cannot have; sealed. The checkpoint's
                                       * own where it is the same */
    const struct dtype **types;       /* what each is written as; NULL: as what it is */
    const uint32_t *from;   /* of a GGUF: the place there of what each came of, of the last where there are several;
                             * NULL: nothing is known of it */
    const char *kept_names; /* of a GGUF: why tensors have its names and layout; NULL: they have not */
    uint64_t n_layers;      /* of a GGUF that is understood */
    const char *model_type; /* of config.json; NULL: none */
    const char *config;     /* the text of config.json, where it is not the source's own; NULL: none */
    size_t config_length;
    const char *architecture; /* the class that this config.json names */
    struct source *whole;     /* where the model is one file of safetensors already: that file; else NULL */
};

/* NULL where nothing can be shown: the error says why. `type` is what floating-point tensors are written as; NULL: as
 * the source has them. What is left out is noted.
 *
 * Tensors that share their place in a torch file are left out as save_pretrained() does: where the model ties its
 * output to the embedding, the names that its class derives from others. All others are written as often as they are
 * named. */
struct canonical_model *canonical_model_new(const struct checkpoint *checkpoint, const struct dtype *type,
                                            struct error *error);
void canonical_model_free(struct canonical_model *model); /* NULL is allowed */

/* What floating-point matrices are written as, for those who have not made the model: NULL where each is what it is.
 * *ret_reason is why, in words. */
const struct dtype *canonical_type(const struct checkpoint *checkpoint, const struct dtype *type,
                                   const char **ret_reason);

/* What tensor number `index` is written as. */
static inline const struct dtype *canonical_written(const struct canonical_model *model, size_t index)
{
    return model->types != NULL ? model->types[index] : model->tensors->tensors[index].dtype;
}

/* Whether its class generates texts, and has a generation_config.json. */
bool canonical_generates(const struct canonical_model *model);

/* For those that fill it in: why a tensor cannot be in a file of safetensors as that type; NULL where it can. */
const char *canonical_refusal(const struct tensor *tensor, const struct dtype *type);
