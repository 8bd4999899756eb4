#include "models/layouts/row_tensor.h"

#include "quant/convert.h"
#include "quant/scaled_rows.h"

static void add_tensor(struct making *making, const struct layout_tensor *tensor)
{
    if (making->n_tensors == making->capacity) {
        making->capacity = making->capacity * 2 + 64;
        making->tensors = memory_resize(making->tensors, making->capacity * sizeof *making->tensors);
    }
    making->tensors[making->n_tensors++] = *tensor;
}

/* What a tensor is written as: the first of the dtypes that its shape allows. */
static bool choose_encoding(struct making *making, const struct layout_row *row, const struct view *view,
                            struct encoding *ret_encoding)
{
    const char *const *dtypes = row->n_dtypes > 0 ? row->dtypes : making->file->dtypes;
    unsigned n_dtypes = row->n_dtypes > 0 ? row->n_dtypes : making->file->n_dtypes;
    const char *reason = NULL;
    *ret_encoding = encoding_of(view->dtype);
    if (row->constant != NULL || n_dtypes == 0 ||
        (view->dtype->kind != DTYPE_FLOAT && view->dtype->kind != DTYPE_BLOCK))
        return true;
    for (unsigned i = 0; i < n_dtypes; i++) {
        const struct dtype *dtype = dtype_by_name(dtypes[i]);
        struct value value;
        if (dtype == NULL && !scope_value(&making->scope, dtypes[i], &value, making->error))
            return false;
        if (dtype == NULL && value.kind == VALUE_NULL)
            return true;
        if (dtype == NULL && (value.kind != VALUE_TEXT || (dtype = dtype_by_name(value.text)) == NULL))
            return error_set(making->error, "'%.100s' is not a dtype",
                             value.kind == VALUE_TEXT ? value.text : dtypes[i]);
        *ret_encoding = (struct encoding){.dtype = dtype, .rule = dtype == &q4_0_dtype ? row->rule : NULL};
        if (convert_possible(view, *ret_encoding, &reason))
            return true;
    }
    return error_set(making->error, "it cannot be %s: %s", ret_encoding->dtype->name, reason);
}

bool row_read_source(struct making *making, const char *name, const struct view **ret_view)
{
    const struct tensor *tensor = tensor_set_find_text(making->set, name);
    *ret_view = NULL;
    if (tensor == NULL)
        return true;
    if (tensor->refusal != NULL)
        return error_set(making->error, "tensor '%.200s': %s", name, tensor->refusal);
    making->product->used[tensor - making->set->tensors] = true;
    *ret_view = tensor_view(tensor, making->arena);
    return true;
}

static const struct view *constant_view(struct making *making, const struct json *constant)
{
    bool is_vector = json_is(constant, JSON_ARRAY);
    uint64_t count = is_vector ? json_count(constant) : 1, i = 0;
    float *numbers = arena_array(making->arena, count + 1, sizeof *numbers);
    for (const struct json *number = is_vector ? json_first(constant) : constant; i < count; i++) {
        double value = 0;
        json_double(number, &value);
        numbers[i] = (float)value;
        number = is_vector ? json_next(number) : NULL;
    }
    return view_literal(making->arena, &f32_dtype, is_vector, &count, numbers);
}

/* Adds the tensor, or where the row says so its rows in FP8 and their scales: of the values that it would have been
 * written with. */
static bool add_scaled(struct making *making, const struct layout_row *row, const struct layout_tensor *tensor)
{
    struct layout_tensor scaled = *tensor, scales = *tensor;
    bool holds = false;
    if (row->scaled_when != NULL && !scope_holds(&making->scope, row->scaled_when, &holds, making->error))
        return false;
    if (!holds) {
        add_tensor(making, tensor);
        return true;
    }
    if (tensor->view->rank == 0 || tensor->encoding.dtype->kind != DTYPE_FLOAT)
        return error_set(making->error, "only rows of floats are scaled");
    const struct view *written = view_convert(making->arena, tensor->view, tensor->encoding.dtype);
    scaled.view = view_scaled_rows(making->arena, written);
    scaled.encoding = encoding_of(scaled.view->dtype);
    scales.view = view_row_scales(making->arena, written);
    scales.encoding = encoding_of(&f32_dtype);
    if (!scope_fill(&making->scope, row->scales, &scales.name, making->error))
        return false;
    add_tensor(making, &scaled);
    add_tensor(making, &scales);
    return true;
}

bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources)
{
    struct scope *scope = &making->scope;
    struct layout_tensor tensor = {.row = row, .sources = sources->names, .n_sources = sources->count};
    const struct view *first = sources->views[0];
    scope_push(scope, "rows", value_of_number(first->rank > 0 ? (int64_t)first->shape[0] : 1));
    scope_push(scope, "columns", value_of_number((int64_t)view_row_elements(first)));
    bool made = cutter_cut(&making->cutter, row, sources, &tensor.view, making->error);
    if (made && row->constant != NULL)
        tensor.view = constant_view(making, row->constant);
    if (made && row->map != NULL)
        tensor.view = elementwise_apply(making->arena, row->map, NULL, FORWARD, tensor.view);
    made = made && scope_fill(scope, row->to, &tensor.name, making->error) &&
           choose_encoding(making, row, tensor.view, &tensor.encoding) && add_scaled(making, row, &tensor);
    scope_pop(scope);
    scope_pop(scope);
    return made;
}

bool row_make_named(struct making *making, const struct layout_row *row, struct layout_sources *sources)
{
    const struct view *views[KEY_NAMES_MAX];
    bool holds = false;
    unsigned n_missing = 0;
    const char *missing = NULL;
    sources->views = views;
    scope_push(&making->scope, "sources", value_of_number(sources->count));
    bool made = scope_holds(&making->scope, row->when, &holds, making->error);
    for (unsigned i = 0; made && holds && i < sources->count; i++) {
        made = row_read_source(making, sources->names[i], &views[i]);
        if (made && views[i] == NULL) {
            missing = sources->names[i];
            n_missing++;
        }
    }
    if (made && n_missing > 0 && (!row->optional || n_missing < sources->count))
        made = error_set(making->error, "the model has no tensor '%.200s'", missing);
    made = made && (!holds || n_missing > 0 || row_make_tensor(making, row, sources));
    scope_pop(&making->scope);
    return made;
}
