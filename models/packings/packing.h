/* Packings: how quantized checkpoints spread one weight over several tensors, how to dequantize that weight, and how to
 * make the tensors from a weight.
 *
 * Unpacking turns a set into a plain one before any family sees it: a packing recognizes a weight by its key tensor (by
 * names, dtypes and shapes, and by config.json's quantization_config), checks that all parts exist and fit, and
 * replaces them by one tensor, a view over the parts. That view holds the format's formula in F32, operation by
 * operation. If ggml has blocks of the same bits, a second view has those blocks, or blocks with their axes permuted
 * (quant/views/block_views.h): a family's rows move whole blocks, and outputs keep their bits.
 *
 * If the parts of a weight disagree, packings_find() keeps the weight with its refusal and without a view;
 * packings_unpack() fails with that refusal.
 *
 * Packing makes views of parts from the view of a weight, with the dtypes, shapes and names that an engine expects, and
 * writes the packing into the engine's configuration. A packer is one such way; outputs name it (models/layouts/
 * NOTATION.md, "scaled").
 *
 * A packing is one file in this folder exporting `const struct packing x_packing`, declared below, and a row in
 * packings.c. Its packers are rows in that file. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "models/references/references.h"
#include "text/json.h"
#include "text/json_write.h"

enum { PACKING_MAX_PARTS = 8, PACKING_MAX_METHODS = 8, PACKING_MAX_TITLES = 4 };

struct packing_input {
    struct arena *arena;              /* owns every result */
    const struct tensor_set *set;     /* as stored, sealed */
    const struct json *config;        /* quantization_config, or its equivalent; NULL: none */
    const char *method;               /* its quant_method; "" if it names none */
    const struct dtype *dtype;        /* the model's dtype before packing */
    struct arena *scratch;            /* for packings_find(): memory that no view keeps */
    const struct json *model;         /* config.json; NULL: none */
    bool is_known;                    /* a packing declares the method */
    const struct gguf_kvs *metadata;  /* of the checkpoint's header; NULL: none */
    const struct gguf_kvs *differing; /* its keys that several files have with other values; NULL: none */
    const struct json *comfy_layers;  /* ComfyUI's description of layers in the header, by name; NULL: none */
    bool has_comfy_marks;             /* ComfyUI's descriptions count, not names (comfy.c); packings_find() finds out */
    bool has_old_comfy_marks;         /* some weights are described as ComfyUI did before; packings_find() finds out */
    const char *unread; /* why the configuration cannot be read, so that no weight has values; NULL: it can */
};

/* The place of unpacked weights in the converter's order of tensors. */
enum packing_place { BEFORE_ALL, IN_PLACE, AFTER_ALL };

/* Optional forms of a weight; each may be NULL. */
struct unpacked_forms {
    const struct view *blocks;        /* its values as ggml's blocks */
    const struct view *repacked;      /* blocks of another kind that decode to the same values */
    const struct code_groups *groups; /* the codes of its values (packed.h) */
    const struct view *factors[2];    /* F32 [1]: multipliers of the blocks' values, and of inputs; NULL: 1 */
    const struct view *converted;     /* the converter's values, if they differ from the format's */
    enum upstream_change mended; /* the builds with this rule do not write `converted`; CHANGE_NONE: all write it */
    const struct dtype *dtype;   /* before packing, if the weight itself names it */
};

/* One weight. There may be 200,000. */
struct unpacked {
    const struct packing *packing;
    const char *name;
    const struct view *view;      /* its values, F32 */
    struct unpacked_forms *forms; /* filled in by `unpack`; weights without extra forms share one empty record */
    const struct tensor **parts;  /* its stored tensors, the key first; no other weight shares them */
    const char *beyond;           /* the feature that makes the converter refuse it; NULL: none */
    const char *refusal;          /* the reason why `view` is NULL; else NULL */
    uint32_t stem;                /* the length of the start that the key's name shares with its parts' names */
    uint8_t bits;                 /* of an element */
    uint8_t n_parts;
    uint8_t title;       /* index into the packing's titles */
    bool is_twin : 1;    /* an earlier weight has the same name */
    bool is_of_some : 1; /* the converter accepts it only from families that keep MXFP4, and copies its blocks */
};

/* A tensor that a weight is packed into. */
struct packed_part {
    const char *suffix; /* the end of its name, in place of the weight's ".weight": ".weight_scale" */
    const struct view *view;
};

/* A matrix of an output. */
struct output_weight {
    const char *name;            /* in the output, before packing */
    const struct packer *packer; /* NULL: it is not packed */
};

/* A way to pack weights. Its functions get their row: rows that differ in numbers share functions. */
struct packer {
    const char *name; /* as engines call it: "FP8_PER_CHANNEL_PER_TOKEN" */

    /* Makes the views of a weight's parts in `arena`, the first one in the weight's place, and returns their number, at
     * most PACKING_MAX_PARTS. Reads no value. Returns 0, with an error, if the weight cannot be packed this way. */
    unsigned (*pack)(const struct packer *packer, struct arena *arena, const struct view *weight,
                     struct packed_part *parts, struct error *error);

    /* Writes the members of the object that declares the packing in an engine's configuration. `weights` are the
     * output's matrices in its order, each name once, packed or not. Fails if they contradict the configuration. */
    bool (*write_config)(const struct packer *packer, const struct output_weight *weights, size_t n_weights,
                         struct json_writer *writer, struct error *error);
};

struct packed; /* packed.h */

/* A spelling of the names of a weight's tensors, which have the same beginning. */
struct packing_key {
    const char *suffix;        /* the end of the key's name */
    const char *partner;       /* the end of a required part's name; NULL: none is required */
    const char *dtype;         /* of the key; NULL: any */
    const char *partner_dtype; /* NULL: any */
    const char *weight;        /* the end of the weight's name; NULL: ".weight" */
    bool is_underscored;       /* B._weight_x is of B.weight, whatever its last word: `weight` does not count */
};

struct packing {
    const char *name;                       /* "gptq" */
    const char *titles[PACKING_MAX_TITLES]; /* the formats' names for people: "GPTQ"; NULL: named by the key's dtype */
    const char *methods[PACKING_MAX_METHODS]; /* values of quant_method that declare it, up to a NULL */
    const char *summary;                      /* for people */
    enum packing_place place;

    /* Name endings of tensors that may be stored beside the parts and do not change the values; up to a NULL. */
    const char *const *beside;

    const struct packing_key *keys; /* up to a NULL suffix; the first match counts */

    /* Reports whether a tensor with a key's suffix and dtype is a key. Called for every such tensor, so it must be
     * cheap. NULL: every such tensor is a key. */
    bool (*is_key)(const struct packing_input *input, const struct tensor *tensor);

    /* Makes the view of one weight, which has its name and its key as first part. Fails if parts are missing or
     * disagree: the error becomes the weight's refusal. */
    bool (*unpack)(struct packed *packed);

    const struct packer *packers; /* up to a NULL name; NULL: the packing only unpacks */
};

/* The packings, for the table in packings.c. */
extern const struct packing aqlm_packing, awq_packing, bitnet_packing, bitsandbytes_packing, comfy_packing,
    ctranslate2_packing, foreign_packing, fp8_ranks_packing, gemma_packing, gptq_packing, hqq_packing, mlx_packing,
    modelopt_int4_packing, mxfp4_packed_packing, mxfp6_packed_packing, mxfp4_packing, nvfp4_packing,
    pack_quantized_packing, quanto_packing, quark_packing, scaled_packing, sinq_packing, torchao_flat_packing,
    torchao_packing, unsupported_packing;

/* Returns the name of a part: the weight's name with `suffix` instead of ".weight". In the arena, or the weight's own.
 */
const char *packed_part_name(struct arena *arena, const char *weight, const char *suffix);

/* Returns the name of a weight's packing for people: "GPTQ 4 bit", "FP8", "MLX MXFP4". In the arena, or constant. */
const char *packing_label(const struct unpacked *weight, struct arena *arena);

/* Reports whether the tensor's name ends with the suffix. */
bool packing_has_suffix(const struct tensor *tensor, const char *suffix);

/* Returns the tensor with the name of `tensor`, but `suffix` instead of `own` at the end; NULL if it is missing. */
const struct tensor *packing_partner(const struct tensor_set *set, const struct tensor *tensor, const char *own,
                                     const char *suffix);
