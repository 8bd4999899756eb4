/* How other frameworks name and lay out the weights of models that transformers knows. */
#pragma once

#include "base/arena.h"
#include "formats/tensor_set.h"
#include "models/relation/relation.h"

#include <stdbool.h>

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

/* How CTranslate2 names the modules of a Whisper model, where transformers has others, for both ways.
 *
 * Source: CTranslate2, python/ctranslate2/converters/transformers.py, WhisperLoader and BartLoader. */

enum { CTRANSLATE2_STACKED = 3 };

/* A module there, and the modules here that are stacked in it. */
struct ctranslate2_module {
    const char *there, *here[CTRANSLATE2_STACKED];
    const char *side; /* the only one that has it, "encoder" or "decoder"; NULL: both have it */
};

/* The modules of a layer, and those beside the layers; each ends with one without a name. */
extern const struct ctranslate2_module ctranslate2_of_layers[], ctranslate2_of_sides[];

/* Where transformers has what a module of mlx-lm holds: sanitize() of the class in mlx-lm, undone (mlx_names.c). */

enum mlx_half { MLX_WHOLE, MLX_FIRST_HALF, MLX_SECOND_HALF };

struct mlx_place {
    const char *path;   /* of the module; with {}, a module for each matrix of a stack */
    bool is_transposed; /* the last two axes are swapped */
    enum mlx_half half; /* of the rows, or of the columns if it is transposed */
};

/* Returns the place of the module at `path`, which it is itself if mlx-lm does not change it; its text is in the
 * arena. */
struct mlx_place mlx_place_of(struct arena *arena, const char *model_type, const char *path);
