#include "models/convert/unknown_family.h"

#include "models/convert/left_out.h"
#include "models/packings/packings.h"
#include "quant/views/convert.h"
#include "quant/views/sub_byte.h"
#include "quant/views/unpack.h"

#include <string.h>

/* Unsigned integers made wider by zero bits: exact, unlike a conversion through F32. */

struct widened {
    struct view view;
    const struct view *inner;
};

static bool widened_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 2048 };
    const struct widened *widened = (const struct widened *)view;
    unsigned char narrow[PIECE * 4], *at = out;
    size_t size = widened->inner->dtype->block_bytes, wide = view->dtype->block_bytes;
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (!view_read(widened->inner, first + done, n, narrow, error))
            return false;
        for (uint64_t i = 0; i < n; i++, at += wide) {
            memset(at, 0, wide);
            memcpy(at, narrow + i * size, size);
        }
        done += n;
    }
    return true;
}

static void widened_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct widened *)view)->inner, first, count, to);
}

static const struct view_op widened_op = {.name = "widened", .read = widened_read, .depends = widened_depends};

static const struct view *widen(struct arena *arena, const struct view *inner, const struct dtype *dtype)
{
    struct widened *widened = arena_alloc(arena, sizeof *widened);
    view_init_shared(&widened->view, &widened_op, dtype, inner->rank, inner->shape);
    widened->inner = inner;
    return &widened->view;
}

/* Shows the same bytes as another dtype; several smaller elements for one get an axis of their own. */
static const struct view *relabel(struct arena *arena, const struct view *inner, const struct dtype *dtype)
{
    uint64_t shape[VIEW_MAX_RANK + 1];
    unsigned n_parts = inner->dtype->block_bytes / dtype->block_bytes, rank = inner->rank;
    memcpy(shape, inner->shape, rank * sizeof *shape);
    if (n_parts > 1)
        shape[rank++] = n_parts;
    return view_reshape(arena, view_reinterpret(arena, inner, dtype), rank, shape);
}

/* Puts packed integers into a byte each: the unsigned ones, too, fit in I8. */
static const struct view *expand(struct arena *arena, const struct view *inner, const struct dtype *dtype)
{
    return view_reinterpret(arena, view_expand(arena, inner), dtype);
}

static const struct substitute {
    const char *dtype, *stored_as;
    const struct view *(*make)(struct arena *arena, const struct view *inner, const struct dtype *dtype);
} substitutes[] = {
    {"BOOL", "I8", relabel},
    {"U8", "I16", widen},
    {"U16", "I32", widen},
    {"U32", "I64", widen},
    {"U64", "I64", relabel},
    {"C64", "F32", relabel},
    {"C128", "F64", relabel},
    {"F8_E8M0", "BF16", view_convert},
    {"F8_E4M3", "F16", view_convert},
    {"F8_E5M2", "F16", view_convert},
    {"F8_E4M3FNUZ", "F16", view_convert},
    {"F8_E5M2FNUZ", "F16", view_convert},
    {"F4", "F16", view_convert},
    {"I4", "I8", expand},
    {"U4", "I8", expand},
    {"I2", "I8", expand},
    {"U2", "I8", expand},
};

/* Returns the values in a type that GGUF has; NULL: it has none for them. */
static const struct view *storable(struct arena *arena, const struct view *view)
{
    if (view->dtype->ggml_type != GGML_TYPE_NONE)
        return view;
    for (size_t i = 0; i < sizeof substitutes / sizeof *substitutes; i++)
        if (strcmp(substitutes[i].dtype, view->dtype->name) == 0 && view->rank < VIEW_MAX_RANK)
            return substitutes[i].make(arena, view, dtype_by_name(substitutes[i].stored_as));
    return NULL;
}

/* Returns the view that the container holds for a tensor; NULL, with the reason, if it can hold none. */
static const struct view *contained(struct gguf_model *model, const struct tensor *tensor, const char **ret_reason)
{
    *ret_reason = tensor->refusal;
    if (tensor->refusal != NULL)
        return NULL;
    const struct view *view = storable(model->arena, tensor_view(tensor, model->arena));
    *ret_reason = view == NULL ? arena_printf(model->arena, "GGUF has no type for %s", tensor->dtype->name)
                               : gguf_tensor_refusal(tensor->name, tensor->name_length, view);
    return *ret_reason == NULL ? view : NULL;
}

bool unknown_family_add_tensors(struct gguf_model *model, struct error *error)
{
    const struct checkpoint *checkpoint = model->checkpoint;
    const struct plain_wish wish = {.arena = model->arena, .is_saved_again = true};
    struct plain_set plain;
    if (!packings_unpack(packings_of(checkpoint), &wish, model->arena, &plain, error))
        return false;
    const struct tensor_set *set = plain.set;
    struct left_out left_out[LEFT_OUT_MAX + 1] = {{0}};
    bool guessed = false;
    tensor_set_reserve(model->tensors, set->n_tensors);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const char *reason;
        const struct view *view = contained(model, tensor, &reason);
        if (view == NULL) {
            left_out_add(left_out, reason, tensor->name);
            continue;
        }
        if (!guessed && tensor->rank >= 2 && (tensor->dtype == &bf16_dtype || tensor->dtype == &f16_dtype)) {
            model->auto_type = tensor->dtype;
            guessed = true;
        }
        tensor_set_add_view(model->tensors, tensor->name, view);
    }
    if (model->tensors->n_tensors == 0 && set->n_tensors > 0)
        return error_set(error, "no tensor can be stored in a GGUF: '%.200s': %s", left_out->first, left_out->reason);
    left_out_note(left_out, checkpoint, SUBJECT_GGUF);
    return true;
}
