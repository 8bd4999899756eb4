/* Adapters of low rank, as peft saves them: adapter_config.json beside adapter_model.safetensors or .bin.
 *
 * An adapter has two matrices for each weight W that it adapts, A [rank, in] and B [out, rank]: W + scale B A. Here
 * they are found and checked; they are written as a GGUF of their own (gguf_adapter_new()), or added to a base model
 * (models/merge.h).
 *
 * Sources: peft 0.17, tuners/lora and utils/save_and_load.py; convert_lora_to_gguf.py of llama.cpp 34af94cd9. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"
#include "models/model.h"

/* One weight that is adapted. */
struct adapter_pair {
    const char *name; /* of the weight, without what peft puts before it: "model.layers.0.mlp.up_proj.weight" */
    const struct tensor *a, *b;      /* both are there, matrices of one rank */
    const struct view *left, *right; /* b and a */
    bool is_embedding;               /* left right is the weight's transpose */
};

struct adapter {
    const struct checkpoint *checkpoint;
    struct arena *arena;
    struct document *document;
    const struct json *config; /* adapter_config.json */

    struct adapter_pair *pairs; /* in the order in which the file has their first halves */
    size_t n_pairs;

    /* Tensors that are not half of a pair, in their order, and the names of what they are for. */
    const struct tensor **others;
    const char **other_names;
    size_t n_others;
};

/* Whether a checkpoint is an adapter and not a model. */
bool adapter_is_source(const struct checkpoint *checkpoint);

/* NULL where adapter_config.json is missing, is not of LoRA, or halves are missing or do not fit. */
struct adapter *adapter_open(const struct checkpoint *checkpoint, struct error *error);
void adapter_close(struct adapter *adapter); /* NULL is allowed */

/* What it is, for people, in the arena: "LoRA of 14 weights of ORG/NAME, rank 8, alpha 16". */
const char *adapter_summary(const struct checkpoint *checkpoint, struct arena *arena);

/* The base that adapter_config.json names, as a directory in the local hub cache; NULL where it names none, or it is
 * not there. */
const char *adapter_find_base(const struct checkpoint *checkpoint, struct arena *arena, struct error *error);

/* Tensors under the names of the model `base`, and where they are GGUF's: products of two matrices stay products. Has
 * no keys; of the base nothing but the configuration and the names of its tensors counts. */
struct gguf_model *gguf_related_new(const struct tensor_set *set, const struct checkpoint *base, struct error *error);

/* What convert_lora_to_gguf.py makes of an adapter of the model `base`, of which nothing but the configuration and the
 * names of its tensors counts. NULL where it cannot be made. */
struct gguf_model *gguf_adapter_new(const struct checkpoint *checkpoint, const struct checkpoint *base,
                                    struct error *error);
