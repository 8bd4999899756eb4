/* Packings: how quantized checkpoints spread one weight over several tensors, and how it is put together again.
 *
 * Unpacking turns a set into a plain one before any family sees it: a packing recognizes a weight by its key tensor (by names,
 * dtypes and shapes, and by config.json's quantization_config), checks that all of its parts are there and fit, and gives one
 * tensor in their place, a view over them. That view holds the format's formula in F32. Where ggml has blocks of the same bits,
 * the view is of those blocks, or of blocks with their axes permuted (models/rearrangement.h): a family's rows move them whole,
 * and outputs keep them as they are.
 *
 * A packing is one file in this folder exporting `const struct packing x_packing`, and a row in packings.c. */
#pragma once

#include "formats/json.h"
#include "formats/tensor_set.h"

enum { PACKING_MAX_PARTS = 8, PACKING_MAX_METHODS = 4 };

struct packing_input {
    struct arena *arena;            /* of what is made */
    const struct tensor_set *set;   /* as stored, sealed */
    const struct json *config;      /* quantization_config, NULL where there is none */
    const struct packing *declared; /* the packing of config.json's quant_method; NULL: none */
};

/* Where plain tensors stand in the order of the converter. */
enum packing_place { BEFORE_ALL, IN_PLACE, AFTER_ALL };

/* One weight. */
struct unpacked {
    const struct packing *packing;
    const char *name;
    const struct view *view;
    const struct tensor *parts[PACKING_MAX_PARTS]; /* that are in it, the key first; in no other weight */
    unsigned n_parts;
};

struct packing {
    const char *name;                         /* "mxfp4" */
    const char *methods[PACKING_MAX_METHODS]; /* values of quant_method that declare it, up to a NULL */
    const char *summary;                      /* for people */
    enum packing_place place;
    uint32_t file_type; /* general.file_type of F32, F16 and BF16 outputs of what it declares; 0: their own */

    /* Whether `tensor` is the key of a weight: cheap, asked of every tensor. */
    bool (*is_key)(const struct packing_input *input, const struct tensor *tensor);

    /* Puts one weight together. Fails where parts are missing or do not fit. */
    bool (*unpack)(const struct packing_input *input, const struct tensor *key, struct unpacked *ret_unpacked,
                   struct error *error);
};

/* All packings, NULL at the end. */
extern const struct packing *const packings[];

/* The packing of a quant_method, or NULL. */
const struct packing *packing_of_method(const char *method);

/* A set with plain tensors in the place of packed ones. */
struct plain_set {
    const struct tensor_set *set;     /* in the order of the stored one, but for what comes before or after all */
    const struct unpacked **unpacked; /* of each tensor; NULL: it was plain. All NULL: nothing was packed */
};

/* Unpacks all that is packed. `input->declared` is filled in from its config. The set is sealed; it is input->set itself where
 * nothing is packed. */
bool packings_unpack(struct packing_input *input, struct plain_set *ret_plain, struct error *error);

/* For packings: the tensor called as `tensor` with `suffix` at the end in the place of `own`; NULL where there is none. */
const struct tensor *packing_partner(const struct packing_input *input, const struct tensor *tensor, const char *own,
                                     const char *suffix);

/* Whether the name ends so. */
bool packing_has_suffix(const struct tensor *tensor, const char *suffix);
