/* Adapters of low rank, as peft saves them: adapter_config.json beside adapter_model.safetensors or .bin.
 *
 * An adapter has two matrices for each weight W that it adapts, A [rank, in] and B [out, rank]: W + scale B A. Here
 * they are found and checked; they are written as a GGUF of their own (gguf_adapter_new()), or added to a base model
 * (models/derive/merge.h).
 *
 * Sources: peft, tuners/lora and utils/save_and_load.py; convert_lora_to_gguf.py of llama.cpp. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"
#include "models/convert/model.h"

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

/* NULL where adapter_config.json is missing, is not of LoRA, or halves are missing or do not fit. */
struct adapter *adapter_open(const struct checkpoint *checkpoint, struct error *error);
void adapter_close(struct adapter *adapter); /* NULL is allowed */

/* What peft multiplies the product of the matrices of "MODULE.weight" with, which are of that rank: alpha / rank, or
 * alpha / sqrt(rank) of rsLoRA. The patterns are adapter_config.json's. Fails where that says another rank. */
struct module_patterns;
bool adapter_scale(const struct json *config, const struct module_patterns *ranks, const struct module_patterns *alphas,
                   const char *name, uint64_t rank, double *ret_scale, struct error *error);

/* Returns a description for people, in the arena: "LoRA of 14 weights of ORG/NAME, rank 8, alpha 16". */
const char *adapter_summary(const struct checkpoint *checkpoint, struct arena *arena);

/* The base that adapter_config.json names, as a directory in the local hub cache; NULL where it names none, or it is
 * not there. */
const char *adapter_find_base(const struct checkpoint *checkpoint, struct arena *arena, struct error *error);

/* Tensors under the names of the model `base`, and where they are GGUF's: products of two matrices stay products. Has
 * no keys; of the base nothing but the configuration and the names of its tensors counts. */
struct gguf_model *gguf_related_new(const struct tensor_set *set, const struct checkpoint *base, struct error *error);

/* What convert_lora_to_gguf.py makes of an adapter of the model `base`, of which nothing but the configuration and the
 * names of its tensors counts. NULL where it cannot be made. With `folds_scale` every lora_b is multiplied with what
 * peft's scale is more than alpha / rank, which is all that llama.cpp knows: rsLoRA, alpha_pattern. */
struct gguf_model *gguf_adapter_new(const struct checkpoint *checkpoint, const struct checkpoint *base,
                                    bool folds_scale, struct error *error);

/* Notes where llama.cpp applies the GGUF at another strength than peft, or that the scale is folded in. */
void gguf_adapter_note_scale(const struct checkpoint *checkpoint, bool folds_scale);
