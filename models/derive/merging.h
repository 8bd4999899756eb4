/* Inside the merging of adapters (merge.h): what the files merge_*.c share. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/checkpoint_builder.h"
#include "models/derive/adapter.h"
#include "quant/views/view.h"

/* Adapters merged into a base that is a GGUF (models/derive/derive.h).
 *
 * Adapters use Hugging Face's names for weights; the family's relations, read backwards, give them. The same relations
 * turn an adapter's two matrices into those for the GGUF's tensor, and their product is added to its values. Merged
 * tensors of block types become F32; all others keep their dtype. */

struct gguf_merging;

/* Returns a merge that lives as long as `merged`, which is derived from the base; NULL if no names can be derived. */
struct gguf_merging *gguf_merging_new(struct checkpoint *merged, const struct checkpoint *base, struct error *error);

/* Returns the base as transformers has it: its configuration, and its tensors under Hugging Face's names. */
const struct checkpoint *gguf_merging_base(const struct gguf_merging *merging);

/* Returns the base's tensors under Hugging Face's names, in its shapes. */
const struct tensor_set *gguf_merging_names(const struct gguf_merging *merging);

/* Record a change to one of these tensors: add scale left right, or replace all values by an F32 view. The next
 * gguf_merging_apply() first replaces, then adds; it fails if a tensor has two recorded changes of one kind. */
void gguf_merging_add(struct gguf_merging *merging, const char *name, float scale, const struct view *left,
                      const struct view *right);
void gguf_merging_replace(struct gguf_merging *merging, const char *name, const struct view *view);
bool gguf_merging_apply(struct gguf_merging *merging, struct error *error);

/* Reports whether changes were applied, so that the base's tensors under Hugging Face's names are not the merged ones.
 */
bool gguf_merging_is_changed(const struct gguf_merging *merging);

/* Gives the merged checkpoint its tensors. */
void gguf_merging_finish(const struct gguf_merging *merging);

/* Pairs of an adapter that change a parameter instead of a layer (target_parameters of adapter_config.json): the
 * stacked weights of experts, [experts, rows, columns], which are no layers of their own.
 *
 * A pair is named after the parameter's module; each further parameter of the module adds one ".base_layer" to the
 * name, so only its shape tells which parameter a pair changes. A stacks the matrices of all experts, [experts rank,
 * columns]; B has them side by side, [rows, rank experts], where the expert varies fastest. Earlier releases of peft,
 * and modules whose matrices are multiplied from the left, swap rows and columns: FITS_TURNED. A parameter that is a
 * matrix has a pair like that of any layer.
 *
 * Source: peft, ParamWrapper of tuners/lora/layer.py, _inject_parameters() of tuners/tuners_utils.py. */

enum parameter_fit { FITS = 1, FITS_TURNED = 2 };

/* The most parameters of one module; further ones are ignored. */
enum { MODULE_MAX_PARAMETERS = 8 };

/* Returns the parameter that a pair may change by the entry `target` of target_parameters ("experts.down_proj", or
 * "down_proj" of any module): its name after its module's, in the arena. Returns NULL if the pair belongs to another
 * module. */
const char *parameter_name(struct arena *arena, const struct adapter_pair *pair, const char *target);

/* Returns how a pair fits a parameter of this shape, as a set of enum parameter_fit; 0: it does not. */
unsigned parameter_fit(const struct adapter_pair *pair, unsigned rank, const uint64_t *shape);

/* Returns B (left) and A (right) of a pair, reshaped to the rank of a parameter that the pair fits in the way `fit`. */
void parameter_factors(struct arena *arena, const struct adapter_pair *pair, unsigned rank, const uint64_t *shape,
                       enum parameter_fit fit, const struct view **ret_left, const struct view **ret_right);

/* A merge of adapters into a base (models/derive/derive.h) while it is made; for the files of the merge only.
 *
 * A `name` is the name that an adapter gives a tensor. Functions that fail set merging->error. */

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
