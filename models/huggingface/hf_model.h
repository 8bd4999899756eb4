/* A checkpoint of any format as Hugging Face's tools would have saved it: unpacked tensors under Hugging Face's names
 * and in its arrangement, for model.safetensors and hf/.
 *
 * A model lives as long as the arena that it is made in. */
#pragma once

#include "formats/checkpoint.h"

struct hf_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    const struct tensor_set *tensors; /* sealed, without tensors that safetensors cannot hold; the checkpoint's own
                                       * set if both are equal */
    const struct dtype *type;         /* the type of all written floating-point tensors; NULL: each keeps its own */
    const struct dtype *of_blocks;    /* the type of dequantized matrices if `type` is NULL; NULL: the source has no
                                       * blocks */
    bool keeps_codes;                 /* see hf_model_with_codes() */
    uint32_t *shard_begins; /* for a GGUF in the order of shards: the first tensor of each shard but the first */
    size_t n_shards;        /* 0: unknown; see shards_of_order() */
    const char *kept_names; /* why the tensors keep a GGUF's names; NULL: they do not */
    uint64_t n_layers;      /* for a GGUF of a known family; else 0 */
    const char *model_type; /* config.json's; NULL: none */
    const char *config;     /* the text of config.json if it is made from a GGUF's keys; else NULL */
    size_t config_length;
    const char *class_name; /* the class that `config` names; NULL: none */
    struct source *whole;   /* the source, if it is one safetensors file with the same content; else NULL */
};

/* Makes a model in the arena. Returns NULL, with the reason, if no tensor can be stored. `type` becomes the type of all
 * floating-point tensors; NULL keeps the source's. Notes which tensors are left out. The checkpoint must outlive the
 * model.
 *
 * Tied tensors are left out as save_pretrained() does: if config.json may tie weights and several tensors have the same
 * bytes of a file, those with names that classes tie to others. All others are written once for each name. */
const struct hf_model *hf_model_new(struct arena *arena, const struct checkpoint *checkpoint, const struct dtype *type,
                                    struct error *error);

/* Makes a model like hf_model_new(), whose dequantized tensors are exact: F32 that remembers its codes (packings/
 * packed.h), or a GGUF's blocks. */
const struct hf_model *hf_model_with_codes(struct arena *arena, const struct checkpoint *checkpoint,
                                           struct error *error);

/* Returns the one model of a checkpoint in the types of the source, which lives as long as the checkpoint. */
const struct hf_model *hf_model_of(const struct checkpoint *checkpoint, struct error *error);

/* Returns the dtype of floating-point matrices without making the model; NULL if each keeps its own. *ret_reason is the
 * reason for either, as text for users. */
const struct dtype *hf_type(const struct checkpoint *checkpoint, const struct dtype *type, const char **ret_reason);

/* Returns the type that a tensor of the model is written as. */
const struct dtype *hf_written(const struct hf_model *model, const struct tensor *tensor);

/* Reports whether the model comes from a GGUF and its class generates text, so that it has a generation_config.json. */
bool hf_generates(const struct hf_model *model);

/* Returns the only weights file if it is in safetensors, so that model.safetensors may be the file itself; else NULL.
 */
struct source *hf_only_file(const struct checkpoint *checkpoint);

/* For code that fills in the model: why safetensors cannot hold a tensor in the type hf_written(); NULL: it can. */
const char *hf_refusal(const struct hf_model *model, const struct tensor *tensor);

/* Returns a GGUF as a checkpoint with Hugging Face's tensor names, arrangements and config.json, for code that finds
 * weights by these names; NULL if the GGUF's metadata do not determine them. The GGUF must outlive the checkpoint: the
 * caller may let the checkpoint keep it. */
struct checkpoint *hf_checkpoint_new(const struct checkpoint *gguf, struct error *error);
