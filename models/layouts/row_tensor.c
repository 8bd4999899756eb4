#include "models/layouts/making.h"

#include "quant/views/convert.h"
#include "quant/views/positions.h"

#include <string.h>

/* Adds a tensor to the current file. */
static void add_tensor(struct making *making, const char *name, const struct view *view, struct encoding encoding,
                       const struct layout_origin *origin)
{
    struct tensor tensor = tensor_of_view(name, view);
    making->tensors = memory_grow(making->tensors, making->n_tensors, sizeof *making->tensors);
    making->origins = memory_grow(making->origins, making->n_tensors, sizeof *making->origins);
    making->origins[making->n_tensors] = *origin;
    making->tensors[making->n_tensors++] =
        (struct artifact_tensor){arena_copy(making->arena, &tensor, sizeof tensor), encoding};
}

/* Chooses a tensor's dtype: the first of the row's dtypes that its shape allows. */
static bool choose_encoding(struct making *making, const struct layout_row *row, const struct view *view,
                            struct encoding *ret_encoding)
{
    const char *const *names = row->n_dtypes > 0 ? row->dtypes : making->file->dtypes;
    unsigned n_dtypes = row->n_dtypes > 0 ? row->n_dtypes : making->file->n_dtypes;
    const char *reason = NULL;
    *ret_encoding = encoding_of(view->dtype);
    if (row->constant != NULL || row->rotary != NULL || n_dtypes == 0 ||
        (view->dtype->kind != DTYPE_FLOAT && view->dtype->kind != DTYPE_BLOCK))
        return true;
    for (unsigned i = 0; i < n_dtypes; i++) {
        const struct dtype *dtype = dtype_by_name(names[i]);
        struct value value;
        if (dtype == NULL && !scope_value(&making->scope, names[i], &value, making->error))
            return false;
        if (dtype == NULL && value.kind == VALUE_NULL)
            return true;
        if (dtype == NULL && (value.kind != VALUE_TEXT || (dtype = dtype_by_name(value.text)) == NULL))
            return error_set(making->error, "'%.100s' is not a dtype",
                             value.kind == VALUE_TEXT ? value.text : names[i]);
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
    return view_numbers(making->arena, is_vector, &count, numbers);
}

static bool read_base(struct making *making, const char *expression, double *ret_base)
{
    struct value value;
    if (!scope_value(&making->scope, expression, &value, making->error))
        return false;
    *ret_base = (double)value.number;
    return value.kind == VALUE_NUMBER || (value.kind == VALUE_JSON && json_double(value.json, ret_base)) ||
           error_set(making->error, "'%.200s' is not a number", expression);
}

static bool read_factors(struct making *making, const char *expression, float **ret_factors, uint64_t *ret_count)
{
    struct value value;
    uint64_t i = 0;
    if (!scope_value(&making->scope, expression, &value, making->error))
        return false;
    const struct json *array = value.kind == VALUE_JSON ? value.json : NULL;
    *ret_count = json_is(array, JSON_ARRAY) ? json_count(array) : 0;
    if (*ret_count == 0 || *ret_count > ROTARY_MAX_FREQUENCIES)
        return error_set(making->error, "'%.200s' is not an array of 1 to %d numbers", expression,
                         ROTARY_MAX_FREQUENCIES);
    *ret_factors = arena_array(making->arena, *ret_count, sizeof **ret_factors);
    for (const struct json *number = json_first(array); number != NULL; number = json_next(number)) {
        double factor;
        if (!json_double(number, &factor))
            return error_set(making->error, "an element of '%.200s' is not a number", expression);
        (*ret_factors)[i++] = (float)factor;
    }
    return true;
}

/* Makes the table of a row's "rotary". */
static bool make_rotary(struct making *making, const struct layout_rotary *rotary, const struct view **ret_view)
{
    double base;
    float *factors = NULL;
    uint64_t count, n_positions, n_trained;
    if (!read_base(making, rotary->base, &base) || !read_factors(making, rotary->factors, &factors, &count))
        return false;
    const float *frequencies = rotary_frequencies(making->arena, base, factors, count);
    if (rotary->positions == NULL) {
        *ret_view = view_numbers(making->arena, 2, (const uint64_t[]){1, count}, frequencies);
        return true;
    }
    if (!scope_number(&making->scope, rotary->positions, ROTARY_MAX_POSITIONS, &n_positions, making->error) ||
        !scope_number(&making->scope, rotary->trained, ROTARY_MAX_POSITIONS, &n_trained, making->error))
        return false;
    if (n_trained < 2)
        return error_set(making->error, "'%.200s' is less than 2", rotary->trained);
    *ret_view = view_rotary(making->arena, frequencies, count, n_positions, rotary_scale(n_positions, n_trained));
    return true;
}

/* Adds a matrix to the list for configurations, unless an earlier file has it; `packer` is NULL if it is not packed. */
static void add_weight(struct making *making, const char *name, const struct packer *packer)
{
    struct scope *scope = &making->scope;
    if (!text_index_add(&making->weight_names, name, strlen(name), scope->n_weights))
        return;
    scope->weights = making->weights = memory_grow(making->weights, scope->n_weights, sizeof *making->weights);
    making->weights[scope->n_weights++] = (struct output_weight){name, packer};
}

/* Adds the tensor, or its parts if the row packs it. The parts pack the values that the tensor would have. */
static bool add_packed(struct making *making, const struct layout_row *row, const char *name, const struct view *view,
                       struct encoding encoding, const struct layout_origin *origin)
{
    struct arena *arena = making->arena;
    struct packed_part parts[PACKING_MAX_PARTS];
    bool holds = false;
    if (row->packed_when != NULL && !scope_holds(&making->scope, row->packed_when, &holds, making->error))
        return false;
    if (view->rank >= 2)
        add_weight(making, name, holds ? row->packer : NULL);
    if (!holds) {
        add_tensor(making, name, view, encoding, origin);
        return true;
    }
    const struct view *written = view_convert(arena, view, encoding.dtype);
    unsigned n_parts = row->packer->pack(row->packer, arena, written, parts, making->error);
    for (unsigned i = 0; i < n_parts; i++) {
        const char *part = packed_part_name(arena, name, parts[i].suffix);
        if (i == 1 && row->scales != NULL && !scope_fill(&making->scope, row->scales, &part, making->error))
            return false;
        add_tensor(making, part, parts[i].view, encoding_of(parts[i].view->dtype), origin);
    }
    return n_parts > 0;
}

bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources)
{
    struct scope *scope = &making->scope;
    const struct layout_origin origin = {row->place, sources->names, sources->count};
    const struct view *view, *first = sources->views[0];
    struct encoding encoding;
    const char *name;
    scope_push(scope, "rows", value_of_number(first->rank > 0 ? (int64_t)first->shape[0] : 1));
    scope_push(scope, "columns", value_of_number((int64_t)view_row_elements(first)));
    bool made = cutter_cut(&making->cutter, row, sources, &view, making->error);
    if (made && row->constant != NULL)
        view = constant_view(making, row->constant);
    if (made && row->rotary != NULL)
        made = make_rotary(making, row->rotary, &view);
    if (made && row->map != NULL)
        view = elementwise_apply(making->arena, row->map, NULL, FORWARD, view);
    made = made && scope_fill(scope, row->to, &name, making->error) && choose_encoding(making, row, view, &encoding) &&
           add_packed(making, row, name, view, encoding, &origin);
    scope_pop(scope);
    scope_pop(scope);
    return made;
}

bool row_make_named(struct making *making, const struct layout_row *row, const struct layout_sources *named)
{
    const struct view *views[KEY_NAMES_MAX];
    struct layout_sources sources = *named;
    bool holds = false;
    unsigned n_missing = 0;
    const char *missing = NULL;
    sources.views = views;
    scope_push(&making->scope, "sources", value_of_number(sources.count));
    bool made = scope_holds(&making->scope, row->when, &holds, making->error);
    for (unsigned i = 0; made && holds && i < sources.count; i++) {
        made = row_read_source(making, sources.names[i], &views[i]);
        if (made && views[i] == NULL) {
            missing = sources.names[i];
            n_missing++;
        }
    }
    if (made && n_missing > 0 && (!row->optional || n_missing < sources.count))
        made = error_set(making->error, "the model has no tensor '%.200s'", missing);
    made = made && (!holds || n_missing > 0 || row_make_tensor(making, row, &sources));
    scope_pop(&making->scope);
    return made;
}
