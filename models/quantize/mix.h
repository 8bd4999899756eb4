/* Mixes: file types of llama-quantize, and the type that each gives to every tensor of a model.
 *
 * A mix is a row of data: the type that most tensors get, and rules for the others, by the tensor's role, its place in
 * the model and the model's structure. To add a mix, write its row in mixes.c.
 *
 * Source: llama_tensor_get_type() and its callees in src/llama-quant.cpp of llama.cpp. */
#pragma once

#include "models/quantize/imatrix.h"
#include "models/quantize/prune.h"
#include "models/references/references.h"

struct mix_rule; /* mix_rules.h */

struct mix {
    const char *name;         /* "Q4_K_M", as the tool spells it */
    uint32_t file_type;       /* general.file_type */
    const char *alias;        /* the tool's other name for it, or NULL */
    const char *default_type; /* name of the dtype that most tensors get */
    const struct mix_rule *rules;
    bool is_lowest; /* exempt from the tool's rules for all other mixes */
};

/* In the order in which the files are listed; a NULL name at the end. */
extern const struct mix mixes[];

/* Returns the mix of that name, also of a type without blocks (F32, F16, BF16); NULL: none. */
const struct mix *mix_find(const char *name);

/* Returns the mix with that general.file_type in either table; NULL: none. */
const struct mix *mix_of_file_type(uint64_t file_type);

/* The tool's options; zeroed, they have the tool's defaults. */
struct quantize_options {
    bool pure, leave_output_tensor;
    const struct dtype *token_embedding_type, *output_tensor_type; /* NULL: by the rules */
    const char *const *tensor_types;                               /* "PATTERN=TYPE", NULL-terminated; NULL: none */
    const struct imatrix *imatrix;                                 /* NULL: none */
    struct imatrix_filter filter;                                  /* the entries that count */
    /* keep the splits of a GGUF in splits, and their order of tensors */
    bool keep_split;
    bool requantize;              /* also quantize tensors that are quantized already */
    struct layer_list pruned;     /* layers to leave out */
    const struct rule *q4_0_rule; /* no option of the tool: how Q4_0 rounds; NULL: like the tool */
};

/* Returns the output type of that name, in upper or lower case, like the tool ("q4_K"). Returns NULL if there is none;
 * the error lists the types. */
const struct dtype *quantize_type(const char *name, struct error *error);

/* Checks the patterns and types of tensor_types, so that an error appears when options are read, not when a file is. */
bool quantize_options_check(const struct quantize_options *options, struct error *error);

/* The tool's facts about a model. */
struct mix_model {
    const char *architecture;                          /* general.architecture */
    uint64_t n_layers, n_heads, n_kv_heads, n_experts; /* heads: the first layer's; 0: unknown */
    const struct references *references;               /* the builds to follow; NULL: the newest */
};

/* The traits of a tensor that all mixes use, from its name and shape; computed once for all mixes. */
struct mix_traits {
    uint16_t role; /* enum tensor_role */
    bool may_be_quantized;
};
struct mix_traits mix_traits(const struct tensor *tensor);

/* Chooses the types of a file's tensors, given in the file's order. types[i] is the input type of tensor i, and becomes
 * its output type; a tensor that is not quantized keeps its own. Fails, with the reason, if the tool refuses; `types`
 * is undefined then. */
bool mix_choose_types(const struct mix *mix, const struct quantize_options *options, const struct mix_model *model,
                      const struct tensor *const *tensors, const struct mix_traits *traits, const struct dtype **types,
                      size_t n_tensors, struct error *error);

/* Reports whether a tensor with these traits needs importances to be written as `type`: the tool refuses without them,
 * or `type` has no other encoder. mix_wants_imatrix() reports whether any type of a mix may need them. */
bool mix_needs_importance(const struct mix *mix, struct mix_traits traits, const struct dtype *type);
bool mix_wants_imatrix(const struct mix *mix);

/* Gets the N of a tensor's name that begins "blk.N."; false for other names. */
bool mix_layer_of(const char *name, uint64_t *ret_layer);
