/* The classes of transformers that a family comes back as: the rows of config.json that its key rows do not give.
 *
 * A key row names the hyperparameters that a key may come from; backwards the key gives the one that the class of the
 * model knows. What the converter computed, dropped or took for granted comes from rows of its own (struct config_row),
 * one table a family. What no key and no row tells is left out: transformers then fills in what its class has. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"

enum config_from {
    FROM_KEY,        /* the value of `key` */
    FROM_NOWHERE,    /* no line, though the rope or a row of the family's keys makes one */
    FROM_TEXT,       /* `text`, as JSON with ' for the quotation mark */
    FROM_TENSOR,     /* whether the tensor `key` exists */
    FROM_NO_TENSOR,  /* whether the tensor `key` is missing */
    FROM_ROWS,       /* the rows of the tensor `key` */
    FROM_SUM,        /* `key` plus `other` */
    FROM_DIFFERENCE, /* `key` less `other` */
    FROM_QUOTIENT,   /* `key` divided by `other`, a whole number */
    FROM_HEAD_SHARE, /* `key` as a part of the size of a head: of `other`, else embedding_length / head_count */
    FROM_LABELS,     /* the texts of `key` as an object, by number */
    FROM_NUMBERS,    /* the same the other way: numbers by text */
    FROM_MOST,       /* the largest number of the array `key` */
    FROM_MARKED,     /* the number of the array `key` for the first layer that `other` marks */
    FROM_UNMARKED,   /* for the first layer that it does not mark */

    /* Of the layers that `key` marks: an array, or one number for all of them, by what is above 0; a tensor's name with
     * {} in it, by being there. */
    FROM_LAYERS, /* a list: for each layer what is before the '|' in `other`, or after it, as in FROM_TEXT */
    FROM_LISTED, /* a list of the numbers of those that are marked */
    FROM_PERIOD, /* how many layers it is from one that is marked to the next */
    FROM_OFFSET, /* the first of them */
};

/* The GGUF's contents, for values that no other kind of row gives. */
struct config_material {
    const char *architecture;
    const struct gguf_kvs *kvs;
    const struct tensor_set *tensors;
    uint64_t n_layers; /* without those that predict ahead */
    struct arena *arena;
    bool *failed; /* set, with the error, where a tensor cannot be read: there is no config.json then */
    struct error *error;
};

/* The number of a key of the architecture for a layer: of an array, or one for all; false where there is none. */
bool config_number_of_layer(const struct config_material *material, const char *key, uint64_t layer,
                            double *ret_number);

/* The number of `key` for the first layer that the key `mark` marks, or does not; NULL where there is none. Each key is
 * read once, however many layers there are. */
const char *config_number_of_first(const struct config_material *material, const char *mark, bool is_marked,
                                   const char *key);

/* One line of config.json. Keys go without the architecture's name, tensors with their suffix. */
struct config_row {
    const char *name; /* "rope_scaling.type": a member of that line, where there is one */
    enum config_from from;
    const char *key, *other;
    const char *text; /* of FROM_TEXT, with <KEY> for the value of a key, null without it; of others what is written
                         where the key is absent, NULL: no line */
    int plus;         /* added to a sum */

    /* Instead of all that but the name: the value as JSON, in the arena; NULL: `text`, or no line. */
    const char *(*make)(const struct config_material *material);
};

/* A class that the family may be: the first one whose condition holds. */
struct config_form {
    const char *architecture, *model_type;
    /* Conditions with blanks between them, all of which hold, or several such lists with '|' between them:
     * "key:expert_count", "key:expert_gating_func=2" (truth is 0 or 1), "tensor:blk.0.attn_q.bias",
     * "tensor:blk.{}.ffn_norm.weight" (of any layer), with a '!' before it what is not there or not so; NULL: always.
     */
    const char *when;
    /* Tables up to a NULL, each ended by a zeroed row. Of the hyperparameters that a key may come from, a key row gives
     * the one that a row here names, or that the class has; of two values for a line, the later counts. */
    const struct config_row *const *rows;
    const char *note; /* advice for users of the directory; NULL: none */
};

#define CONFIG_FORMS(...)  ((const struct config_form[]){__VA_ARGS__, {0}})
#define CONFIG_ROWS(...)   ((const struct config_row[]){__VA_ARGS__, {0}})
#define CONFIG_TABLES(...) ((const struct config_row *const[]){__VA_ARGS__, NULL})
