/* A merge of adapters into a base while it is made: for the files of the merge alone (models/derive/merge.h).
 *
 * Names are those that an adapter gives a tensor. Whatever fails sets merging->error. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "models/derive/adapter.h"
#include "models/derive/merge_gguf.h"
#include "models/derive/module_patterns.h"

/* Changes of an adapter to a tensor, each at most once. */
enum change { REPLACED = 1, PRODUCT_ADDED = 2, BIAS_ADDED = 4 };

struct merging {
    const struct checkpoint *base;
    struct checkpoint *merged;      /* derived from the base */
    const struct tensor_set *named; /* what adapters name: the base's tensors, or as Hugging Face calls them */
    struct gguf_merging *gguf;      /* where the base is one; else NULL */
    const struct adapter *adapter;
    double scale;
    struct module_patterns *ranks, *alphas;
    unsigned usual_fit;        /* of target_parameters: that of those that are not square */
    const struct view **views; /* of each tensor of the base: in F32; NULL: as it is */
    unsigned char *changes;    /* what the adapter has done to each */
    struct error *error;
};

/* Returns the base tensor that an adapter names; NULL if it is missing. Transformers 5 names Mixtral's experts mlp. */
const struct tensor *merging_tensor(const struct merging *merging, const char *name);

/* Reports whether a tensor can take what is added to it; it may be NULL, which is an error. */
bool merging_check(const struct merging *merging, const struct tensor *tensor, const char *name);

/* Sets the error that a tensor and what is added to it have other shapes; returns false. */
bool merging_misfit(const struct merging *merging, const struct tensor *tensor, const char *name, uint64_t n_rows,
                    uint64_t n_columns);

/* Notes what is done to a tensor; fails where that was done before, for two names may be those of one tensor. */
bool merging_change(const struct merging *merging, const struct tensor *tensor, enum change change, const char *name);

/* Finds the scale of the product of the matrices, of this rank, of "MODULE.weight". */
bool merging_scale(const struct merging *merging, const char *name, uint64_t rank, float *ret_scale);

/* The values of a tensor so far; of one that was packed not yet rounded to its dtype. Not of a GGUF's. */
const struct view **merging_view(const struct merging *merging, const struct tensor *tensor);

/* Adds a product to a tensor of its shape; the second one checks that it is, and that none was added before. */
void merging_add(const struct merging *merging, const struct tensor *tensor, float scale, const struct view *left,
                 const struct view *right);
bool merging_add_once(const struct merging *merging, const struct tensor *tensor, const char *name, float scale,
                      const struct view *left, const struct view *right);

/* Adds the product of a pair where that is of a parameter of a module (target_parameters), and says whether it was in
 * *ret_merged; a pair of a layer is left to the caller. After merge_find_usual_fit(), which sets merging->usual_fit and
 * fails where there are too many names. */
bool merge_parameter(const struct merging *merging, const struct adapter_pair *pair, bool *ret_merged);
bool merge_find_usual_fit(struct merging *merging);
