/* A merge of adapters into a base (models/derive/merge.h) while it is made; for the files of the merge only.
 *
 * A `name` is the name that an adapter gives a tensor. Functions that fail set merging->error. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "models/derive/adapter.h"
#include "models/derive/merge_gguf.h"

/* The changes that an adapter can make to a tensor, each at most once. */
enum change {
    REPLACED = 1,
    PRODUCT_ADDED = 2,
    BIAS_ADDED = 4,
    TIED_PRODUCT_ADDED = 8,
    ROWS_REPLACED = 16,
    FIRST_HALF_ADDED = 32,
    SECOND_HALF_ADDED = 64
};

struct merging {
    const struct checkpoint *base;
    struct checkpoint *merged;      /* derived from the base */
    const struct tensor_set *named; /* the base's tensors, a GGUF's under Hugging Face's names */
    struct gguf_merging *gguf;      /* for a base that is a GGUF; else NULL */
    const struct adapter *adapter;
    double scale;
    struct module_patterns *ranks, *alphas;
    unsigned usual_fit;        /* how target_parameters that are not square fit; 0: unknown */
    const struct view **views; /* by tensor of `named`: its changed values in F32; NULL: unchanged */
    unsigned char *changes;    /* by tensor of `named`: the adapter's changes so far, enum change */

    /* Not for a GGUF: */
    struct tensor *added; /* modules that the base lacks, such as the score of a classifier */
    size_t n_added;
    bool has_new_shapes;                 /* the tensors of the result are not those of the base */
    uint64_t n_rows;                     /* of the embedding, if an adapter resizes it; else 0 */
    const struct checkpoint *resized_by; /* the adapter that does */
    const struct adapter *classified_by; /* the adapter that makes the model a classifier; NULL: none */
    uint64_t n_labels;                   /* of the classifier */
    struct error *error;
};

/* Returns the base tensor that an adapter names, even if files use other prefixes or Mixtral's older names; or NULL. */
const struct tensor *merging_tensor(const struct merging *merging, const char *name);

/* Reports whether an adapter can change a tensor; a missing one (NULL) is an error. */
bool merging_check(const struct merging *merging, const struct tensor *tensor, const char *name);

/* Sets the error that a tensor's shape differs from the adapter's [n_rows, n_columns]; returns false. */
bool merging_misfit(const struct merging *merging, const struct tensor *tensor, const char *name, uint64_t n_rows,
                    uint64_t n_columns);

/* Records a change to a tensor; fails if the adapter made the same change before, by another name of the tensor. */
bool merging_change(const struct merging *merging, const struct tensor *tensor, enum change change, const char *name);

/* Computes the scale of the product of the two matrices, of this rank, for "MODULE.weight". */
bool merging_scale(const struct merging *merging, const char *name, uint64_t rank, float *ret_scale);

/* Returns the place of a tensor's values so far (if packed, unrounded), to read or replace them. For a GGUF, only
 * what DoRA computes of them; gguf_merging_replace() takes the result. */
const struct view **merging_view(const struct merging *merging, const struct tensor *tensor);

/* Returns the embedding that serves as the output `name`, which the base lacks; NULL: `name` is no such output. */
const struct tensor *merging_tied(const struct merging *merging, const char *name);

/* Reports whether a tensor is an embedding or an output, which have a row for each token. */
bool merging_is_of_vocabulary(const struct tensor *tensor);

/* Reports whether a name is that of an output. */
bool merging_is_output(const char *name);

/* Reports whether `name` is such an output, and was trained to stay equal to the embedding (ensure_weight_tying). */
bool merging_stays_tied(const struct merging *merging, const char *name);

/* Checks that a tensor of the adapter can replace the base's tensor `name`, or be added to it: with its shape. */
bool merging_check_whole(const struct merging *merging, const struct tensor *whole, const struct tensor *tensor,
                         const char *name);

/* Merges a tensor outside pairs: a trained copy of a module, rows of an embedding, or a peft copy to leave out. `name`
 * is without peft's prefix. */
bool merge_whole(struct merging *merging, const struct tensor *whole, const char *name);

/* Reports whether the adapter has rows of an embedding. */
bool merging_has_rows(const struct merging *merging);

/* Gives config.json the resized vocabulary, and the merged checkpoint the adapter's tokenizer, if it has one. Fails if
 * the embedding and the output then differ in rows. */
bool merge_vocabulary(const struct merging *merging);

/* Reports whether a tensor belongs to a module that modules_to_save names. */
bool merging_is_saved_module(const struct merging *merging, const char *name);

/* Records that a module that the base lacks is the head of a classifier, if the adapter's task says so. */
void merging_note_classifier(struct merging *merging, const struct tensor *head);

/* Reports whether the merge lacks a tensor of the base: the output of what is now a classifier. */
bool merging_drops(const struct merging *merging, const struct tensor *tensor);

/* Gives config.json the class and the labels of a classifier, if the merge is one. */
bool merge_classifier(const struct merging *merging);

/* Add a product to a tensor of its shape; merging_add_once() checks the shape, and that no product was added before. */
void merging_add(const struct merging *merging, const struct tensor *tensor, float scale, const struct view *left,
                 const struct view *right);
bool merging_add_once(const struct merging *merging, const struct tensor *tensor, const char *name, float scale,
                      const struct view *left, const struct view *right);

/* DoRA: after its product was added, a layer's weight gets the norms that the adapter trained for its outputs. */

/* Reports whether the adapter is DoRA, of peft or of mlx-lm. */
bool merging_is_dora(const struct merging *merging);

/* Reports whether a tensor outside pairs has the norms of a layer; `name` is without peft's prefix. */
bool merging_is_norms(const char *name);

/* Gives a merged layer its norms; `is_turned`: the product was transposed to fit the weight. */
bool merge_norms(const struct merging *merging, const struct adapter_pair *pair, bool is_turned);

/* Adds the product of a pair for a stack of experts, or for a half of a tensor, and sets *ret_merged; false: the pair
 * belongs to a layer, and the caller merges it. */
bool merge_stack(const struct merging *merging, const struct adapter_pair *pair, bool *ret_merged);

/* Adds the product of a pair for a parameter of a module (target_parameters), and sets *ret_merged; false: the pair
 * belongs to a layer, and the caller merges it. Needs merge_find_usual_fit() first, which sets merging->usual_fit, and
 * fails if target_parameters has too many names. */
bool merge_parameter(const struct merging *merging, const struct adapter_pair *pair, bool *ret_merged);
bool merge_find_usual_fit(struct merging *merging);
