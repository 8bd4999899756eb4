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

/* Returns NULL if adapter_config.json is missing or describes another kind of adapter than LoRA, or if a matrix is
 * missing or does not fit its other half. */
struct adapter *adapter_open(const struct checkpoint *checkpoint, struct error *error);
void adapter_close(struct adapter *adapter); /* NULL is allowed */

/* Computes the scale by which peft multiplies B A of "MODULE.weight", whose matrices have this rank: alpha / rank, or
 * alpha / sqrt(rank) for rsLoRA. The patterns are those of adapter_config.json. Fails if it gives another rank. */
struct module_patterns;
bool adapter_scale(const struct json *config, const struct module_patterns *ranks, const struct module_patterns *alphas,
                   const char *name, uint64_t rank, double *ret_scale, struct error *error);

/* Returns a description for people, in the arena: "LoRA of 14 weights of ORG/NAME, rank 8, alpha 16". */
const char *adapter_summary(const struct checkpoint *checkpoint, struct arena *arena);

/* Returns the directory, in the local hub cache, of the base model that adapter_config.json names; NULL if it names
 * none, or the cache lacks it. */
const char *adapter_find_base(const struct checkpoint *checkpoint, struct arena *arena, struct error *error);

/* Relates tensors with the base's names to GGUF names and shapes; products of two matrices stay products. The result
 * has no keys. Only the base's configuration and tensor names are used. */
struct gguf_model *gguf_related_new(const struct tensor_set *set, const struct checkpoint *base, struct error *error);

/* Makes the GGUF that convert_lora_to_gguf.py makes of an adapter. Only the base's configuration and tensor names are
 * used. Returns NULL on failure. With `folds_scale`, each lora_b is multiplied by the quotient of peft's scale and
 * alpha / rank, the scale that llama.cpp applies: for rsLoRA and alpha_pattern. */
struct gguf_model *gguf_adapter_new(const struct checkpoint *checkpoint, const struct checkpoint *base,
                                    bool folds_scale, struct error *error);

/* Notes that llama.cpp applies the GGUF at another scale than peft, or that the difference is folded in. */
void gguf_adapter_note_scale(const struct checkpoint *checkpoint, bool folds_scale);
