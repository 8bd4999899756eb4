/* The classes of transformers that a family can be converted back to: the lines of config.json that its key rows do not
 * give.
 *
 * A key row names the hyperparameters that a key may come from; backwards the key gives the one that the model's class
 * knows. Rows of their own (struct config_row), one table a family, give values that the converter computed, dropped or
 * assumed. Values without a key or row are left out: transformers then uses the defaults of its class. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"

enum config_from {
    FROM_KEY,        /* the value of `key` */
    FROM_NOWHERE,    /* no line, although the rope or a key row of the family makes one */
    FROM_TEXT,       /* `text`, as JSON with ' for " */
    FROM_TENSOR,     /* true if the tensor `key` exists */
    FROM_NO_TENSOR,  /* true if the tensor `key` is missing */
    FROM_ROWS,       /* the rows of the tensor `key` */
    FROM_SUM,        /* `key` plus `other` */
    FROM_DIFFERENCE, /* `key` less `other` */
    FROM_QUOTIENT,   /* `key` divided by `other`, a whole number */
    FROM_HEAD_SHARE, /* `key` divided by the size of a head: `other`, else embedding_length / head_count */
    FROM_LABELS,     /* an object with the texts of the array `key`, by number */
    FROM_NUMBERS,    /* the reverse: numbers by text */
    FROM_MOST,       /* the largest number of the array `key` */
    FROM_MARKED,     /* `key`'s number for the first layer that `other` marks */
    FROM_UNMARKED,   /* for the first layer that `other` does not mark */

    /* From the layers that `key` marks: an array, or one number for all layers, by values above 0; a tensor's name with
     * {} in it, by its presence. */
    FROM_LAYERS, /* a list: for each layer the text before the '|' in `other`, or after it, as in FROM_TEXT */
    FROM_LISTED, /* a list of the marked layers' numbers */
    FROM_PERIOD, /* the distance from one marked layer to the next */
    FROM_OFFSET, /* the first marked layer */
};

/* The GGUF's contents, for values that no other kind of row gives. */
struct config_material {
    const char *architecture;
    const struct gguf_kvs *kvs;
    const struct tensor_set *tensors;
    uint64_t n_layers; /* without layers that predict further tokens */
    struct arena *arena;
    bool *failed; /* set, with the error, if a tensor cannot be read: then config.json is missing */
    struct error *error;
};

/* Finds a layer's number for a key of the architecture, an array or one number for all layers; false if there is none.
 */
bool config_number_of_layer(const struct config_material *material, const char *key, uint64_t layer,
                            double *ret_number);

/* Returns `key`'s number for the first layer that the key `mark` marks, or does not mark; NULL: none. Reads each key
 * once, for any number of layers. */
const char *config_number_of_first(const struct config_material *material, const char *mark, bool is_marked,
                                   const char *key);

/* One line of config.json. Keys lack the architecture's name; tensors have their suffix. */
struct config_row {
    const char *name; /* "rope_scaling.type": a member of the line rope_scaling, if there is one */
    enum config_from from;
    const char *key, *other;
    const char *text; /* FROM_TEXT: the value, with <KEY> for the value of a key, null without it; others: the value if
                         the key is absent, NULL: no line */
    int plus;         /* added to a sum */

    /* Instead of all but `name`: returns the value as JSON, in the arena; NULL: `text`, or no line. */
    const char *(*make)(const struct config_material *material);
};

/* A class of the family; the first one whose condition holds counts. */
struct config_form {
    const char *architecture, *model_type;
    /* Conditions separated by blanks, which must all hold, or several such lists separated by '|': "key:expert_count",
     * "key:expert_gating_func=2" (a bool is 0 or 1), "key:expert_used_count=[]" (an array), "tensor:blk.0.attn_q.bias",
     * "tensor:blk.{}.ffn_norm.weight" (in any layer); '!' before a condition negates it; NULL: always. */
    const char *when;
    /* Tables up to a NULL, each ended by a zeroed row. Of the hyperparameters that a key may come from, a key row gives
     * the one that a row here names, or that the class has; the later of two values for a line counts. */
    const struct config_row *const *rows;
    const char *note; /* advice for users of the directory; NULL: none */
};

#define CONFIG_FORMS(...)  ((const struct config_form[]){__VA_ARGS__, {0}})
#define CONFIG_ROWS(...)   ((const struct config_row[]){__VA_ARGS__, {0}})
#define CONFIG_TABLES(...) ((const struct config_row *const[]){__VA_ARGS__, NULL})
