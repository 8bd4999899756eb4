/* How other frameworks name and lay out the weights of models that transformers knows. */
#pragma once

#include "formats/tensor_set.h"
#include "models/relation/relation.h"

/* The last part of a name there and here, and the rearrangement of the elements from there to here (axes.h). */
struct leaf {
    const char *there;
    unsigned rank; /* 0: any */
    const char *here;
    const char *axes; /* NULL: unchanged */
};

enum { SPELLING_MAX_TABLES = 2 };

/* A framework's spelling. The first of a table whose model types and mark fit counts. */
struct spelling {
    const char *framework;               /* for notes: "Flax" */
    const char *const *model_types;      /* of config.json, up to NULL */
    bool (*is_marked)(const char *name); /* whether a name can only be of this framework */

    /* One of both: */

    /* Tables from Hugging Face's names to the framework's. Tensors whose name begins with `stacked`, without a number
     * after it, have all layers on a first axis; NULL: none. `add_dimensions` adds dimensions; may be NULL. */
    const struct relation_row *relation[SPELLING_MAX_TABLES + 1];
    const char *stacked;
    void (*add_dimensions)(struct dimensions *dimensions, const struct hparams *hparams);

    /* Splits a name into the path of the module with '.' between its parts, in the arena, and the last part; false: the
     * tensor is left out. */
    bool (*split)(struct arena *arena, const char *name, const char **ret_path, const char **ret_leaf);
    const struct leaf *leaves; /* up to one without `there`; other last parts stay */
};

extern const struct spelling flax_spelling, keras_spelling, megatron_mixtral_spelling, megatron_qwen_spelling,
    megatron_spelling, tensorflow_bert_spelling, tensorflow_gpt2_spelling, torchtitan_spelling;
