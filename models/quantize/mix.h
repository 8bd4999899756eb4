/* Mixes: file types of llama-quantize, and which type each gives to every tensor of a model.
 *
 * A mix is a row of data: the type most tensors get, and rules for those that get another, by what the tensor is for,
 * where in the model it is and how the model is built. To add one, write its row in mixes.c.
 *
 * Source: llama_tensor_get_type() and what it calls in src/llama-quant.cpp of llama.cpp. */
#pragma once

#include "models/quantize/imatrix.h"
#include "models/quantize/prune.h"

struct mix_rule; /* mix_rules.h */

struct mix {
    const char *name;         /* "Q4_K_M", as the tool spells it */
    uint32_t file_type;       /* general.file_type */
    const char *default_type; /* name of the dtype most tensors get */
    const struct mix_rule *rules;
    bool is_lowest;    /* the tool's rules for all other mixes do not hold */
    const char *alias; /* what the tool also calls it, or NULL */
};

/* NULL name at the end; the order in which the files are listed. */
extern const struct mix mixes[];

/* The tool's targets that are not blocks, for models that are a GGUF already: F32, F16 and BF16. */
extern const struct mix plain_mixes[];

/* The row of that name, in either table; NULL where there is none. */
const struct mix *mix_find(const char *name);

/* The row of that general.file_type, in either table; NULL where there is none. */
const struct mix *mix_of_file_type(uint64_t file_type);

/* The tool's options; zeroed: its defaults. */
struct quantize_options {
    bool pure, leave_output_tensor;
    const struct dtype *token_embedding_type, *output_tensor_type; /* NULL: by the rules */
    const char *const *tensor_types;                               /* "PATTERN=TYPE", NULL-terminated; NULL: none */
    const struct imatrix *imatrix;                                 /* NULL: none */
    struct imatrix_filter filter;                                  /* of its entries */
    /* in the parts and the order of a GGUF that has parts */
    bool keep_split;
    bool requantize;              /* also what is quantized already */
    struct layer_list pruned;     /* layers that are left out */
    const struct rule *q4_0_rule; /* not the tool's: how Q4_0 rounds; NULL: as the tool does */
};

/* The type of that name that a tensor may be written in, in any case, as the tool takes it ("q4_K"). NULL where there
 * is no such type: the error lists those there are. */
const struct dtype *quantize_type(const char *name, struct error *error);

/* Checks patterns and types, for a message when options are read rather than when a file is. */
bool quantize_options_check(const struct quantize_options *options, struct error *error);

/* The tool's facts about a model. */
struct mix_model {
    const char *architecture;                          /* general.architecture */
    uint64_t n_layers, n_heads, n_kv_heads, n_experts; /* heads: of the first layer */
};

/* A tensor's traits for every mix, from its name and rank without the layer number: found once for all mixes. */
struct mix_traits {
    uint16_t role; /* enum tensor_role */
    bool may_be_quantized;
};
struct mix_traits mix_traits(const struct tensor *tensor);

/* Chooses the types of the tensors of a file, given in its order: of each, types[i] is what it is before, which it
 * stays where it is not quantized, and becomes the answer. Fails, with the reason, where the tool refuses: nothing is
 * said about the types then. */
bool mix_choose_types(const struct mix *mix, const struct quantize_options *options, const struct mix_model *model,
                      const struct tensor *const *tensors, const struct mix_traits *traits, const struct dtype **types,
                      size_t n_tensors, struct error *error);

/* Reports whether the tool refuses to write the tensor of those traits as `type` without knowing the importance of its
 * columns, or nobody could; and whether that may be so of any tensor of a model. */
bool mix_needs_importance(const struct mix *mix, struct mix_traits traits, const struct dtype *type);
bool mix_wants_imatrix(const struct mix *mix);

/* The N of a tensor's name "blk.N."; false for a name of another kind. */
bool mix_layer_of(const char *name, uint64_t *ret_layer);
