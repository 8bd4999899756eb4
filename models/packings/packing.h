/* Packings: how quantized checkpoints spread one weight over several tensors, and how it is put together again.
 *
 * Unpacking turns a set into a plain one before any family sees it: a packing recognizes a weight by its key tensor (by
 * names, dtypes and shapes, and by config.json's quantization_config), checks that all of its parts are there and fit,
 * and gives one tensor in their place, a view over them. That view holds the format's formula in F32, operation by
 * operation. Where ggml has blocks of the same bits there is a second view, of those blocks, or of blocks with their
 * axes permuted (models/block_views.h): a family's rows move them whole, and outputs keep them as they are.
 *
 * A weight that does not fit is refused, alone: it is in the plain set with the reason.
 *
 * A packing is one file in this folder exporting `const struct packing x_packing`, and a row in packings.c. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"
#include "formats/tensor_set.h"

enum { PACKING_MAX_PARTS = 8, PACKING_MAX_METHODS = 8 };

struct packing_input {
    struct arena *arena;          /* of what is made */
    const struct tensor_set *set; /* as stored, sealed */
    const struct json *config;    /* quantization_config, or what stands for it; NULL: none */
    const char *method;           /* its quant_method; "" where it names none */
    const struct dtype *dtype;    /* of the model before it was packed */
    struct arena *scratch;        /* of packings_find: what no view is made of */
    const struct json *model;     /* config.json; NULL: none */
};

/* Where plain tensors are in the order of the converter. */
enum packing_place { BEFORE_ALL, IN_PLACE, AFTER_ALL };

/* What else may be known of a weight. */
struct unpacked_forms {
    const struct view *blocks;     /* its values as ggml has them; NULL: it has none of the kind */
    const struct view *repacked;   /* blocks that decode to the same values; NULL: blocks, or none */
    const struct view *factors[2]; /* F32 [1]: what blocks, and inputs, are multiplied with; NULL: 1 */
    const struct view *converted;  /* what the converter makes of it, where that is something else; may be NULL */
    const struct dtype *dtype;     /* before it was packed, where it says so itself; may be NULL */
};

/* One weight. There may be 200,000. */
struct unpacked {
    const struct packing *packing;
    const char *name;
    const struct view *view;      /* its values */
    struct unpacked_forms *forms; /* there for whoever unpacks it to fill in; after that those that know nothing share
                                   * one */
    const struct tensor **parts;  /* that are in it, the key first; in no other weight */
    const char *beyond;           /* what the converter would refuse in it; NULL: nothing */
    const char *refusal;          /* why it has no values: no view is there then */
    uint32_t stem;                /* bytes of the key's name that those of its parts begin with */
    uint8_t bits;                 /* of an element */
    uint8_t n_parts;
    bool is_twin;    /* another one before it has the name */
    bool is_of_some; /* only of families that keep MXFP4 the converter takes it, and writes the blocks */
};

struct packing {
    const char *name;                         /* "gptq" */
    const char *methods[PACKING_MAX_METHODS]; /* values of quant_method that declare it, up to a NULL */
    const char *summary;                      /* for people */
    enum packing_place place;

    /* Endings of names that are found beside a weight of this packing, besides its parts, and say nothing of its
     * values; up to a NULL. */
    const char *const *beside;

    /* Whether `tensor` is the key of a weight: cheap, asked of every tensor. */
    bool (*is_key)(const struct packing_input *input, const struct tensor *tensor);

    /* Puts one weight together. The name is set in any case; fails where parts are missing or do not fit. */
    bool (*unpack)(const struct packing_input *input, const struct tensor *key, struct unpacked *ret_unpacked,
                   struct error *error);
};

/* All packings, NULL at the end. */
extern const struct packing *const packings[];

/* What a checkpoint says of its packing: in config.json, or in hf_quant_config.json beside it. Its values are there
 * until it is closed. */
struct packing_config {
    struct document *documents[2];
    const struct json *model;        /* all of config.json */
    const struct json *quantization; /* NULL: nothing is said */
    const char *method;              /* of the arena; "" where none is named */
    const struct dtype *dtype;
    bool is_nvfp4; /* the converter takes it for an NVFP4 checkpoint */
};

bool packing_config_open(const struct checkpoint *checkpoint, struct arena *arena, struct packing_config *ret_config,
                         struct error *error);
void packing_config_close(struct packing_config *config);

/* The packed weights of a set, each refused one with the reason; those of a name that came before are refused, too. */
struct unpacked_weights {
    struct unpacked *weights; /* in the order of their keys */
    size_t n_weights;
};
struct unpacked_weights packings_find(const struct packing_input *input);

/* The packed weights of a checkpoint. */
struct packed_weights {
    const struct checkpoint *checkpoint;
    const char *method; /* and so on: as in packing_config */
    const struct dtype *dtype;
    bool is_nvfp4;
    const char *unread; /* why its configuration cannot be read, which counts as one that says nothing; NULL: it can */
    struct unpacked_weights found;
};

/* Found once, for all who ask: it lives as long as the checkpoint. */
const struct packed_weights *packings_of(const struct checkpoint *checkpoint);

/* The same found anew, in the arena: for who changes the checkpoint after that. */
const struct packed_weights *packings_find_of(const struct checkpoint *checkpoint, struct arena *arena);

/* A set with plain tensors in the place of packed ones, as the converter has them: in its order, without what says
 * nothing of weights. Where the converter does not know the method at all it is what it would see of the model unpacked
 * and saved again: sorted by name, in the dtype of before. */
struct plain_set {
    const struct tensor_set *set;     /* not sealed, unless it is the stored one */
    const struct unpacked **unpacked; /* of each tensor; NULL: it was plain. NULL: nothing was packed, and the tensors
                                         are the stored ones */
    const char *beyond;               /* what the converter would refuse; NULL: nothing */
    bool is_saved_again;
};

/* What is wanted of it. */
struct plain_wish {
    struct arena *arena;   /* of views that are made; the set is in the other one */
    const uint32_t *order; /* of the stored tensors; NULL: their own */
    bool is_saved_again;   /* the model unpacked and saved again, whatever the converter knows */
    bool keeps_blocks;     /* blocks wherever they are exact */
    bool keeps_mxfp4;      /* of the model's family the converter writes packed MXFP4 as it is */
};
bool packings_unpack(const struct packed_weights *packed, const struct plain_wish *wish, struct arena *arena,
                     struct plain_set *ret_plain, struct error *error);

/* Whether a packing is known that a quant_method declares. */
bool packing_is_known(const char *method);

/* Whether the tensor's name ends so. */
bool packing_has_suffix(const struct tensor *tensor, const char *suffix);

/* The tensor called as `tensor` with `suffix` at the end in the place of `own`; NULL where there is none. */
const struct tensor *packing_partner(const struct packing_input *input, const struct tensor *tensor, const char *own,
                                     const char *suffix);
