/* LoRA adapters as peft saves them: adapter_config.json beside adapter_model.safetensors or .bin; and as mlx-lm does:
 * adapter_config.json, which has the scale itself, beside adapters.safetensors.
 *
 * An adapter has two matrices for each weight W that it adapts, A [rank, in] and B [out, rank]: W + scale B A.
 * adapter_open() finds and checks them; gguf_adapter_new() writes them as a GGUF of their own, and
 * models/derive/derive.h adds them to a base model.
 *
 * Sources: peft, tuners/lora and utils/save_and_load.py; convert_lora_to_gguf.py of llama.cpp. */
#pragma once

#include "base/error.h"
#include "formats/checkpoint.h"
#include "models/convert/model.h"
#include "models/derive/foreign_names.h"
#include "text/json.h"

/* An adapted weight. */
struct adapter_pair {
    const char *name;                /* the weight's, without peft's prefix: "model.layers.0.mlp.up_proj.weight" */
    const struct tensor *a, *b;      /* matrices of the same rank, never NULL */
    const struct view *left, *right; /* b [out, rank] and a [rank, in]; of mlx-lm's experts stacks of both */
    bool is_embedding;               /* the product left right is the weight's transpose */
    bool is_turned;                  /* mlx-lm's: left and right are the transposes of b and a, unless stacks */
    bool is_stored_turned;           /* mlx-lm's: the base stores the weight's transpose */
    enum mlx_half half;              /* mlx-lm's: the part of the base's tensor */
};

struct adapter {
    const struct checkpoint *checkpoint;
    struct arena *arena;
    struct document *document;
    const struct json *config; /* adapter_config.json */

    struct adapter_pair *pairs; /* in the order of their first matrices in the file */
    size_t n_pairs;

    /* The tensors outside pairs, in the order of the file, and their names without peft's prefix. */
    const struct tensor **others;
    const char **other_names;
    size_t n_others;
};

/* Returns NULL if adapter_config.json is missing, invalid or describes another kind of adapter than LoRA, or if a
 * matrix is missing, cannot be decoded or does not fit its counterpart. The checkpoint must outlive the adapter. */
struct adapter *adapter_open(const struct checkpoint *checkpoint, struct error *error);
void adapter_close(struct adapter *adapter); /* NULL is allowed */

/* Gives mlx-lm's pairs the names that the base has in transformers: of stacks with {} for the number of the expert. */
bool adapter_use_base_names(struct adapter *adapter, const struct checkpoint *base, struct error *error);

/* Reports whether mlx-lm made the adapter: its configuration has the scale itself. */
bool adapter_is_mlx(const struct json *config);

/* Return the name and the matrix of one expert of a stack. */
const char *adapter_expert_name(struct arena *arena, const struct adapter_pair *pair, uint64_t expert);
const struct view *adapter_expert_matrix(struct arena *arena, const struct view *stack, uint64_t expert);

/* Computes the scale by which peft multiplies B A of "MODULE.weight", whose matrices have this rank: alpha / rank, or
 * alpha / sqrt(rank) for rsLoRA. `ranks` and `alphas` are rank_pattern and alpha_pattern of adapter_config.json. Fails
 * if `config` gives the weight no rank or another one, or no alpha. */
struct module_patterns;
bool adapter_scale(const struct json *config, const struct module_patterns *ranks, const struct module_patterns *alphas,
                   const char *name, uint64_t rank, double *ret_scale, struct error *error);

/* Returns a description for people, in the arena: "LoRA of 14 weights of ORG/NAME, rank 8, alpha 16". */
const char *adapter_summary(const struct checkpoint *checkpoint, struct arena *arena);

/* Returns the directory, in the local hub cache, of the base model that adapter_config.json names. Fails
 * (NULL) if it names none, or the cache lacks it. */
const char *adapter_find_base(const struct checkpoint *checkpoint, struct arena *arena, struct error *error);

/* Relates tensors with the base's names to GGUF names and shapes; products of two matrices stay products. Only
 * the tensors of the result are meaningful. Only the base's configuration and tensor names are used. */
struct gguf_model *gguf_related_new(const struct tensor_set *set, const struct checkpoint *base, struct error *error);

/* Makes the GGUF that convert_lora_to_gguf.py makes of an adapter. Only the base's configuration and tensor names are
 * used. Returns NULL on failure. `references` may be NULL, for the newest builds. With `folds_scale`, each lora_b is
 * multiplied by the quotient of peft's scale and alpha / rank, the scale that llama.cpp applies: for rsLoRA and
 * alpha_pattern. */
struct gguf_model *gguf_adapter_new(const struct checkpoint *checkpoint, const struct checkpoint *base,
                                    const struct references *references, bool folds_scale, struct error *error);

/* Notes that llama.cpp applies the GGUF at another scale than peft, or that lora_b includes the difference. */
void gguf_adapter_note_scale(const struct checkpoint *checkpoint, bool folds_scale);

/* The base model of an adapter, or the target model of a draft model (speculative decoding). An adapter's GGUF is made
 * by the base's configuration, and a draft model's GGUF includes its target's tokenizer and some of its sizes: -o base=
 * names the directory, as --base and --target-model-dir do for the converter.
 *
 * The derivation keeps that model as BASE_TARGET: for an adapter with its tensors, whose names are used; for a draft
 * model only its side files, unless the draft replaces a row of the target's embedding. The row is then BASE_MASK. A
 * path without a model is an error, even if the checkpoint does not need one. */

/* Opens the base of an adapter: with its tensors under the names that adapters use, or with its side files only if the
 * weights are missing or cannot be opened, which a hint of the adapter says. */
const struct checkpoint *base_open(const char *path, const struct checkpoint *adapter, struct error *error);

/* Values for modules by name, which replace the common value: rank_pattern and alpha_pattern of adapter_config.json,
 * {"q_proj": 16, "layers.0.*": 8}.
 *
 * A pattern is a regular expression that matches a module's name, or its end after a dot; the first match counts.
 * Source: get_pattern_key() of peft, utils/other.py. Most patterns are plain names, whose number has no limit; the
 * number, the length and the search steps of all others are limited, and exceeding a limit is an error. */

struct module_patterns;

/* Reads the patterns of the member `key` of `config`, which must outlive the result, for lookups of `n_modules`
 * modules; a missing member means no patterns. Returns NULL if one is no regular expression, or there are too many. */
struct module_patterns *module_patterns_read(const struct json *config, const char *key, size_t n_modules,
                                             struct error *error);
void module_patterns_free(struct module_patterns *patterns); /* NULL is allowed */

/* Sets *ret_value to the value for a module of that name; NULL: no pattern matches. Fails if a match takes too long. */
bool module_patterns_find(const struct module_patterns *patterns, const char *module, size_t length,
                          const struct json **ret_value, struct error *error);
