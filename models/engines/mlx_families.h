/* The classes of mlx-lm: the names of their modules, in the order in which a class makes them, and how each comes from
 * a checkpoint's tensors. A family is a row of the table.
 *
 * Lists hold names separated by blanks. A name stands for a module, whose tensors are NAME.weight and NAME.bias; a
 * module that is a matrix, or a stack of matrices, can be quantized. Before a name, '=' marks a module that is never
 * quantized, '#' a tensor that is no module and has the name itself. {} stands for the numbers from 0 on, and
 * X.{}.a,b for X.0.a, X.0.b, X.1.a ... What a model lacks is passed over.
 *
 * Source: mlx-lm, mlx_lm/models/: __init__(), sanitize(), quant_predicate() and cast_predicate() of each class. */
#pragma once

#include "base/buffer.h"
#include "quant/views/view.h"
#include "text/json.h"

#define MLX_CONVOLUTION "c 1 k -> c k 1" /* of a kernel that is not arranged so already */
#define MLX_FLAT        "flat"           /* all elements in one dimension */
#define MLX_SCALAR      "scalar"         /* no dimension, of a single element */
#define MLX_PART        "part"           /* the rows of one expert, in a matrix of the rows of all */
#define MLX_TURNED_PART "turned part"    /* those rows as columns */

/* How a module comes from tensors of other names, or in another arrangement. */
struct mlx_row {
    const char *module;
    /* Names of modules or tensors, separated by ", ": all that the rearrangement reads. {} is the number of an expert:
     * all experts are stacked along a new first axis. | separates alternatives, the first one present counts. NULL: the
     * same name */
    const char *from;
    const char
        *axes; /* a rearrangement of the weight (models/relation/rearrangement.h), or MLX_FLAT; NULL: unchanged */
};

/* Changes the values of a module's weight as a class does; returns `view` if it leaves them alone, NULL if its shape
 * does not fit the configuration of the text model. `name` is that of the module, without the prefix. */
typedef const struct view *mlx_change(struct arena *arena, const struct json *config, const char *name,
                                      const struct view *view);

/* A member that a class adds to the configuration of the text model if it is missing, with its JSON text. */
struct mlx_default {
    const char *key, *value;
};

struct mlx_family {
    const char *modules; /* of mlx_lm.models, separated by blanks */
    const char *prefix;  /* before all names; NULL: none */
    const char *before;  /* the modules before the layers */
    const char *layers;  /* "model.layers" */
    const char *layer;   /* the modules of a layer, without the layer's name; "" if the family is not known */
    const char *after;   /* the modules after the layers */

    /* What checkpoints have instead of the prefix, if not what multimodal models usually have, and instead of `layers`;
     * NULL: the same. */
    const char *stored, *stored_layers;

    const struct mlx_row *rows; /* modules of a layer, or whole names; ends with one without a module. NULL: none */
    const char *dropped;        /* parts of the names of tensors that are left out; NULL: none */
    bool drops_layers;          /* leaves out layers beyond the number in config.json */
    bool drops_shared;          /* leaves out keys and values of layers that use those of others */
    bool is_untied;             /* without "tie_word_embeddings" in config.json, lm_head.weight counts */

    const char *in_8_bits; /* endings of modules that have 8 bits in groups of 64 columns, affine; NULL: none */
    bool names_bits_alone; /* config.json names their bits, but no columns */
    const char *plain;     /* endings of modules that are not quantized unless by a recipe; NULL: none */
    /* endings of modules that are not quantized either in layers that have a module with the other ending; NULL: none
     */
    const char *plain_beside, *beside;
    const char
        *refused; /* a flag of config.json that makes the class change values in a way not known here; NULL: none */
    const char *uncast; /* parts of the names of tensors that keep their type; NULL: none */

    /* Changes of the text model's configuration, which the tool writes as the class left it. */
    const struct mlx_default *text_defaults; /* ends with one without a key; NULL: none */
    uint64_t n_vocabulary;  /* not 0: vocab_size becomes that of the whole model, or this number if that is missing */
    bool renames_rope_type; /* rope_parameters has "type" instead of "rope_type" */
    bool reads_fp8;         /* the class dequantizes FP8, and leaves its description in the configuration */

    mlx_change *change; /* NULL: changes none */
};

extern const struct mlx_family mlx_families[]; /* up to NULL modules */

/* Returns the family of a configuration, or NULL if wfs or mlx-lm has none. */
const struct mlx_family *mlx_family_of(const struct json *config);

/* Returns what to say of mlx-lm's class for a configuration that has no family: "is not supported". */
const char *mlx_refusal_of(const struct json *config);

/* Reports whether `word` is one of the words of a list, ends with one, or has one in it; false for NULL. */
bool mlx_list_has(const char *list, const char *word);
bool mlx_list_ends(const char *list, const char *word);
bool mlx_list_within(const char *list, const char *word);

/* Returns the name of the module of mlx-lm that loads a "model_type" and the first of "architectures", or NULL if
 * mlx-lm has none. Both may be NULL. Source: _get_classes() in utils.py. scripts/tables writes the names. */
const char *mlx_module_of(const char *model_type, const char *class_name);

/* Appends the JSON text of a configuration after a family's class has read it: the tool writes the changed one. */
void mlx_class_config(const struct mlx_family *family, const struct json *config, struct buffer *out);

/* What rows of the table name. */

/* Add 1 to the norms of a layer's ends, of queries and of keys; to all norms. Source: qwen3_next.py, qwen3_5.py;
 * step3p5.py. */
mlx_change mlx_norms_plus_one, mlx_all_norms_plus_one;

/* Multiplies weights by the multipliers of config.json. A multiplier is rounded to the weights' type first. Source:
 * falcon_h1.py. */
mlx_change mlx_falcon_h1_multipliers;

/* How the modules of classes come from tensors of checkpoints. Source: sanitize() of each class. */
extern const struct mlx_row mlx_rows_experts[], mlx_rows_mixtral[], mlx_rows_latent[], mlx_rows_gpt2[],
    mlx_rows_dots1[], mlx_rows_apertus[], mlx_rows_llama4[], mlx_rows_mixer[], mlx_rows_nemotron_h[],
    mlx_rows_exaone_moe[], mlx_rows_mamba[], mlx_rows_lfm2[], mlx_rows_lfm2_moe[], mlx_rows_minicpm[],
    mlx_rows_qwen3_next[], mlx_rows_qwen3_5[], mlx_rows_qwen3_vl_moe[], mlx_rows_gemma4[], mlx_rows_granite_experts[],
    mlx_rows_granite_dense[], mlx_rows_kimi_linear[], mlx_rows_kimi_k3[], mlx_rows_bailing_moe[],
    mlx_rows_bailing_moe_v3[], mlx_rows_step3p5[], mlx_rows_gpt_oss[], mlx_rows_longcat[], mlx_rows_gptj[],
    mlx_rows_bailing_hybrid[], mlx_rows_laguna[], mlx_rows_phixtral[], mlx_rows_spark2_5[], mlx_rows_olmo_hybrid[],
    mlx_rows_recurrent_gemma[], mlx_rows_gear[], mlx_rows_dbrx[], mlx_rows_rwkv7[];
