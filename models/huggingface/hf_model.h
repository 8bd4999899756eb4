/* A checkpoint of any format as Hugging Face's tools would have saved it: plain tensors under Hugging Face's names and
 * in its arrangement, from which model.safetensors and hf/ are written.
 *
 * Everything lives in the model's arena until hf_model_free(). */
#pragma once

#include "formats/checkpoint.h"

struct hf_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    const struct tensor_set *tensors; /* sealed, without tensors that safetensors cannot hold; the checkpoint's own
                                       * set if both are equal */
    const struct dtype *type;         /* that all floating-point tensors are written as; NULL: each as its own */
    const struct dtype *of_blocks;    /* the type of dequantized matrices, where there is no type for all; NULL: there
                                       * are no blocks */
    uint32_t *shard_begins; /* of a GGUF, whose order may tell of shards: the first tensor of each but the first */
    size_t n_shards;        /* 0: nothing is known of them */
    const char *kept_names; /* of a GGUF: why tensors keep its names; NULL: they do not */
    uint64_t n_layers;      /* of a GGUF of a known family */
    const char *model_type; /* of config.json; NULL: none */
    const char *config;     /* the text of config.json, if it is not the source's; NULL: none */
    size_t config_length;
    const char *architecture; /* the class that this config.json names */
    struct source *whole;     /* the file, if the model is one safetensors file already; else NULL */
};

/* Returns NULL, with the reason, if nothing can be shown. `type` is written for floating-point tensors; NULL keeps the
 * source's. Tensors left out are noted.
 *
 * Tensors that share their place in a torch file are left out as save_pretrained() does: where the model ties its
 * output to the embedding, the names that its class derives from others. All others are written once for each name. */
struct hf_model *hf_model_new(const struct checkpoint *checkpoint, const struct dtype *type, struct error *error);
void hf_model_free(struct hf_model *model); /* NULL is allowed */

/* Returns the dtype of floating-point matrices without making the model; NULL if each keeps its own. *ret_reason says
 * why, in words. */
const struct dtype *hf_type(const struct checkpoint *checkpoint, const struct dtype *type, const char **ret_reason);

/* The type that a tensor of the model is written as. */
const struct dtype *hf_written(const struct hf_model *model, const struct tensor *tensor);

/* Reports whether its class generates texts, and has a generation_config.json. */
bool hf_generates(const struct hf_model *model);

/* For those that fill it in: why a file of safetensors cannot have a tensor as hf_written() has it; NULL: it can. */
const char *hf_refusal(const struct hf_model *model, const struct tensor *tensor);
