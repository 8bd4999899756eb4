#include "models/derive/merging.h"

#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/shape.h"
#include "models/derive/adapter.h"
#include "models/huggingface/hf_model.h"
#include "quant/views/convert.h"
#include "quant/views/product.h"
#include "quant/views/unpack.h"

#include <string.h>

struct gguf_merging {
    const struct checkpoint *base, *canonical;
    struct checkpoint *merged;
    struct tensor_set *products, *wholes; /* under Hugging Face's names */
    const struct view **views;            /* of each tensor of the base: in F32; NULL: as it is */
    bool is_changed;                      /* an adapter was merged already */
};

static void begin(struct gguf_merging *merging)
{
    merging->products = tensor_set_new(merging->merged->arena);
    merging->wholes = tensor_set_new(merging->merged->arena);
}

struct gguf_merging *gguf_merging_new(struct checkpoint *merged, const struct checkpoint *base, struct error *error)
{
    struct gguf_merging *merging = arena_alloc(merged->arena, sizeof *merging);
    *merging = (struct gguf_merging){.base = base, .merged = merged};
    merging->canonical = hf_checkpoint_new(base, error);
    if (merging->canonical == NULL)
        return NULL;
    checkpoint_keep(merged, BASE_NAMED, merging->canonical);
    merging->views = arena_array(merged->arena, base->tensors->n_tensors, sizeof *merging->views);
    begin(merging);
    return merging;
}

const struct checkpoint *gguf_merging_base(const struct gguf_merging *merging)
{
    return merging->canonical;
}

const struct tensor_set *gguf_merging_names(const struct gguf_merging *merging)
{
    return merging->canonical->tensors;
}

void gguf_merging_add(struct gguf_merging *merging, const char *name, float scale, const struct view *left,
                      const struct view *right)
{
    struct arena *arena = merging->merged->arena;
    if (scale != 1)
        left = view_combine_number(arena, left, MULTIPLY, scale);
    tensor_set_add_view(merging->products, name, view_product(arena, left, right));
}

void gguf_merging_replace(struct gguf_merging *merging, const char *name, const struct view *view)
{
    tensor_set_add_view(merging->wholes, name, view);
}

bool gguf_merging_is_changed(const struct gguf_merging *merging)
{
    return merging->is_changed;
}

/* Returns the base's tensor that a related tensor changes; NULL if it is missing or has another shape. */
static const struct tensor *find_target(const struct gguf_merging *merging, const struct tensor *related,
                                        struct error *error)
{
    char own[SHAPE_MAX_RANK * 22], other[SHAPE_MAX_RANK * 22];
    const struct tensor_set *set = merging->base->tensors;
    const struct tensor *found = tensor_set_find_text(set, related->name);
    if (found == NULL)
        error_set(error, "tensor '%.200s' is not in the base", related->name);
    else if (found->rank != related->rank ||
             memcmp(found->shape, related->shape, found->rank * sizeof *found->shape) != 0)
        error_set(error, "tensor '%.200s' is %s in the base, but would become %s", related->name,
                  shape_text(found->shape, found->rank, own, sizeof own),
                  shape_text(related->shape, related->rank, other, sizeof other));
    else
        return found;
    return NULL;
}

/* Replaces a tensor, or adds a product to it. Relations only move the elements of matrices, or multiply all of them by
 * a number: a related product is what to add to a related weight. */
static bool apply_one(const struct gguf_merging *merging, const struct tensor *related, bool is_product,
                      struct error *error)
{
    const struct view *left, *right;
    struct arena *arena = merging->merged->arena;
    const struct tensor *tensor = find_target(merging, related, error);
    if (tensor == NULL)
        return false;
    const struct view **view = &merging->views[tensor - merging->base->tensors->tensors];
    if (*view == NULL)
        *view = tensor_view(tensor, arena);
    if (!is_product)
        *view = related->view;
    else if (view_factors(related->view, &left, &right))
        *view = view_add_product(arena, *view, 1, left, right);
    else
        *view = view_combine(arena, *view, ADD, related->view, &(struct sharing){1, 1, NULL});
    return true;
}

static void release_model(void *model)
{
    gguf_model_free(model);
}

static bool apply_all(const struct gguf_merging *merging, const struct tensor_set *set, bool is_product,
                      struct error *error)
{
    if (set->n_tensors == 0)
        return true;
    struct gguf_model *related = gguf_related_new(set, merging->canonical, error);
    if (related == NULL)
        return false;
    arena_on_free(merging->merged->arena, release_model, related);
    for (size_t i = 0; i < related->tensors->n_tensors; i++)
        if (!apply_one(merging, &related->tensors->tensors[i], is_product, error))
            return false;
    return true;
}

bool gguf_merging_apply(struct gguf_merging *merging, struct error *error)
{
    bool applied = tensor_set_seal(merging->wholes, error) && tensor_set_seal(merging->products, error) &&
                   apply_all(merging, merging->wholes, false, error) &&
                   apply_all(merging, merging->products, true, error);
    merging->is_changed |= merging->wholes->n_tensors + merging->products->n_tensors > 0;
    begin(merging);
    return applied;
}

void gguf_merging_finish(const struct gguf_merging *merging)
{
    struct checkpoint *merged = merging->merged;
    const struct tensor_set *set = merging->base->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct dtype *dtype = set->tensors[i].dtype;
        if (merging->views[i] == NULL)
            continue;
        if (dtype->kind == DTYPE_BLOCK) {
            dtype = &f32_dtype;
            gguf_set_u32(&merged->metadata, "general.file_type", 0);
            checkpoint_note(merged, SUBJECT_SOURCE, "merged weights that are quantized in the GGUF become F32");
        }
        merging->views[i] = view_convert(merged->arena, merging->views[i], dtype);
    }
    merged->tensors = tensor_set_with_views(merged->arena, set, merging->views);
}
