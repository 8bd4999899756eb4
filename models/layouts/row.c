#include "models/layouts/making.h"

#include "base/sort.h"
#include "base/system.h"
#include "base/text.h"
#include "models/relation/pattern.h"
#include "quant/views/convert.h"
#include "quant/views/positions.h"

#include <stdlib.h>
#include <string.h>

/* Looks for missing names below "language_model.", as the loader does. */
static void find_below(struct making *making, const char **names, unsigned n_names)
{
    for (unsigned i = 0; i < n_names; i++) {
        const char *below = arena_printf(making->arena, "language_model.%s", names[i]);
        if (tensor_set_find_text(making->set, names[i]) == NULL && tensor_set_find_text(making->set, below) != NULL)
            names[i] = below;
    }
}

/* Finds the names of a row's sources by the layout's own keys, if these determine how ranks divide the sources. */
static bool translate_by_layout(struct making *making, const struct layout_row *row, const char *filled,
                                struct layout_sources *sources)
{
    unsigned count;
    const char **names = arena_array(making->arena, KEY_NAMES_MAX, sizeof *names);
    if (!row->is_parallel || making->file->family == NULL)
        return true;
    if (!key_names_translate(&making->layout_keys, filled, making->arena, names, &count, making->error))
        return false;
    sources->by_keys = count == sources->count ? names : NULL;
    return true;
}

static bool make_translated(struct making *making, const struct layout_row *row)
{
    const char *filled, **names = arena_array(making->arena, KEY_NAMES_MAX, sizeof *names);
    struct layout_sources sources = {.names = names};
    struct key_names keys = making->scope.keys;
    if (row->keys != NULL && !key_names_add(&keys, row->keys, making->file->path, making->arena, making->error))
        return false;
    if (!scope_fill(&making->scope, row->translated, &filled, making->error) ||
        !key_names_translate(&keys, filled, making->arena, names, &sources.count, making->error) ||
        !translate_by_layout(making, row, filled, &sources))
        return false;
    find_below(making, names, sources.count);
    return row_make_named(making, row, &sources);
}

/* Fills in the {names} that have a meaning; the others stand for numbers. */
static bool fill_known(struct making *making, const char *text, const char **ret_pattern)
{
    const char *result = "", *open, *close, *filled;
    for (; (open = strchr(text, '{')) != NULL && (close = strchr(open, '}')) != NULL; text = close + 1) {
        const char *name = arena_strndup(making->arena, open + 1, (size_t)(close - open - 1));
        const char *placeholder = arena_strndup(making->arena, open, (size_t)(close - open + 1));
        bool is_name = name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
        filled = placeholder;
        if ((!is_name || scope_knows(&making->scope, name)) &&
            !scope_fill(&making->scope, placeholder, &filled, making->error))
            return false;
        result = arena_printf(making->arena, "%s%.*s%s", result, (int)(open - text), text, filled);
    }
    *ret_pattern = arena_printf(making->arena, "%s%s", result, text);
    return true;
}

/* A tensor whose name matches the pattern, and the numbers in the name. */
struct found {
    uint64_t numbers[PATTERN_NUMBERS];
    const struct tensor *tensor;
};

struct search {
    struct making *making;
    const struct layout_row *row;
    const char *pattern;
    unsigned n_numbers;
    const char *names[PATTERN_NUMBERS];
    int member; /* index of the number that counts stacked members; -1: none */
    struct found *found;
    size_t n_found;
};

static int compare_found(const void *a, const void *b, void *context)
{
    const struct found *x = a, *y = b;
    const struct search *search = context;
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < search->n_numbers; i++)
            if (((int)i == search->member) == (pass == 1) && x->numbers[i] != y->numbers[i])
                return x->numbers[i] < y->numbers[i] ? -1 : 1;
    return strcmp(x->tensor->name, y->tensor->name);
}

struct wanted_name {
    const struct tensor_set *set;
    const char *text;
    size_t length;
};

static bool name_comes_before(const void *context, size_t index)
{
    const struct wanted_name *wanted = context;
    const struct tensor *tensor = &wanted->set->tensors[wanted->set->by_name[index]];
    return text_compare(tensor->name, tensor->name_length, wanted->text, wanted->length) < 0;
}

/* Returns the place, in by_name, of the first tensor whose name is not less than `text`. */
static size_t lower_bound(const struct tensor_set *set, const char *text, size_t length)
{
    return search_first(set->n_tensors, name_comes_before, &(struct wanted_name){set, text, length});
}

/* Reports whether a row matches a tensor by a name without '*'. */
static bool is_named(struct making *making, const struct tensor *tensor)
{
    const struct layout_file *file = making->file;
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < file->n_blocks; i++)
        for (unsigned j = 0; j < file->blocks[i].n_rows; j++) {
            const struct layout_row *row = &file->blocks[i].rows[j];
            making->n_steps += row->n_from;
            for (unsigned k = 0; k < row->n_from; k++)
                if (!text_ends_with(row->from[k], "*") &&
                    pattern_match(row->from[k], tensor->name, tensor->name_length, numbers))
                    return true;
        }
    return false;
}

static void find_tensors(struct search *search)
{
    struct making *making = search->making;
    const struct tensor_set *set = making->set;
    size_t prefix = strcspn(search->pattern, "{*");
    bool is_rest = text_ends_with(search->pattern, "*");
    for (size_t i = lower_bound(set, search->pattern, prefix); i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[set->by_name[i]];
        struct found found = {.tensor = tensor};
        if (tensor->name_length < prefix || memcmp(tensor->name, search->pattern, prefix) != 0 ||
            making->n_steps++ > LAYOUT_MAX_STEPS)
            break;
        if (!pattern_match(search->pattern, tensor->name, tensor->name_length, found.numbers) ||
            (is_rest && is_named(making, tensor)))
            continue;
        search->found = memory_grow(search->found, search->n_found, sizeof *search->found);
        search->found[search->n_found++] = found;
    }
    if (search->n_found > 1)
        system_sort(search->found, search->n_found, sizeof *search->found, compare_found, search);
}

/* Returns the text that a '*' matches: the rest of the name after the part before the '*'. */
static const char *rest_of(const struct search *search, const struct found *found)
{
    char *before = pattern_fill(search->making->arena, search->pattern, found->numbers, "");
    size_t length = strlen(before);
    if (!text_ends_with(search->pattern, "*"))
        return "";
    return length > 0 && length - 1 <= found->tensor->name_length ? found->tensor->name + length - 1 : "";
}

/* Stacks the members of one source: its tensors for the numbers from 0 up to n_members - 1. */
static bool stack_members(struct search *search, const char *from, size_t n_members, const struct view **ret_view,
                          const char **ret_name)
{
    struct making *making = search->making;
    const struct view **members = arena_array(making->arena, n_members, sizeof *members);
    for (size_t i = 0; i < n_members; i++) {
        const char *name;
        scope_push(&making->scope, search->names[search->member], value_of_number((int64_t)i));
        bool read =
            scope_fill(&making->scope, from, &name, making->error) && row_read_source(making, name, &members[i]);
        scope_pop(&making->scope);
        if (!read)
            return false;
        if (members[i] == NULL)
            return error_set(making->error, "the model has no tensor '%.200s'", name);
        if (i == 0)
            *ret_name = name;
        if (members[i]->dtype != members[0]->dtype || members[i]->rank != members[0]->rank ||
            memcmp(members[i]->shape, members[0]->shape, members[0]->rank * sizeof *members[0]->shape) != 0)
            return error_set(making->error, "tensor '%.200s' differs in shape or dtype from '%.200s'", name, *ret_name);
    }
    *ret_view = view_stack(making->arena, members, n_members);
    return true;
}

static bool make_stacked(struct search *search, size_t n_members)
{
    const struct layout_row *row = search->row;
    const struct view *views[KEY_NAMES_MAX];
    const char **names = arena_array(search->making->arena, row->n_from, sizeof *names);
    const struct layout_sources sources = {names, NULL, views, row->n_from};
    for (unsigned i = 0; i < row->n_from; i++)
        if (!stack_members(search, row->from[i], n_members, &views[i], &names[i]))
            return false;
    return row_make_tensor(search->making, row, &sources);
}

/* Makes the tensor of found[first, end), whose names differ at most in the number of the member. */
static bool make_found(struct search *search, size_t first, size_t end)
{
    struct making *making = search->making;
    const struct layout_row *row = search->row;
    unsigned n_locals = making->scope.n_locals;
    bool holds = false;
    for (unsigned i = 0; i < search->n_numbers; i++)
        if ((int)i != search->member)
            scope_push(&making->scope, search->names[i], value_of_number((int64_t)search->found[first].numbers[i]));
    scope_push(&making->scope, "rest", value_of_text(rest_of(search, &search->found[first])));
    bool made = scope_holds(&making->scope, row->when, &holds, making->error);
    if (made && holds && search->member >= 0) {
        made = make_stacked(search, end - first);
    } else if (made && holds) {
        const char **names = arena_array(making->arena, row->n_from, sizeof *names);
        names[0] = search->found[first].tensor->name;
        for (unsigned i = 1; made && i < row->n_from; i++)
            made = scope_fill(&making->scope, row->from[i], &names[i], making->error);
        const struct layout_sources sources = {.names = names, .count = row->n_from};
        made = made && row_make_named(making, row, &sources);
    }
    making->scope.n_locals = n_locals;
    return made;
}

static bool same_but_member(const struct search *search, const struct found *a, const struct found *b)
{
    for (unsigned i = 0; i < search->n_numbers; i++)
        if ((int)i != search->member && a->numbers[i] != b->numbers[i])
            return false;
    return search->member >= 0;
}

/* Reports whether an expression of a template contains a name. */
static bool mentions(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *open = strchr(text, '{'); open != NULL; open = strchr(open + 1, '{')) {
        const char *close = open + strcspn(open, "}");
        for (const char *at = strstr(open, name); at != NULL && at < close; at = strstr(at + 1, name))
            if (strchr("{ (+-*/%", at[-1]) != NULL && strchr("} )+-*/%", at[length]) != NULL)
                return true;
    }
    return false;
}

static bool make_searched(struct making *making, const struct layout_row *row, const char *pattern)
{
    struct search search = {
        .making = making, .row = row, .pattern = pattern, .n_numbers = pattern_count(pattern), .member = -1};
    bool made = true;
    if (search.n_numbers > PATTERN_NUMBERS)
        return error_set(making->error, "more than %d numbers in a name", PATTERN_NUMBERS);
    for (unsigned i = 0; i < search.n_numbers; i++) {
        size_t length;
        const char *name = pattern_number_name(pattern, i, &length);
        search.names[i] = arena_strndup(making->arena, name, length);
        if (mentions(row->to, search.names[i]))
            continue;
        if (search.member >= 0)
            return error_set(making->error, "the output name lacks two of the input name's numbers");
        search.member = (int)i;
    }
    find_tensors(&search);
    if (search.n_found == 0 && !row->optional)
        made = error_set(making->error, "the model has no tensor '%.200s'", pattern);
    for (size_t first = 0, end; made && first < search.n_found; first = end) {
        for (end = first + 1;
             end < search.n_found && same_but_member(&search, &search.found[first], &search.found[end]); end++)
            ;
        made = make_found(&search, first, end);
    }
    free(search.found);
    return made;
}

bool row_make(struct making *making, const struct layout_row *row)
{
    const char *pattern;
    if (row->translated != NULL)
        return make_translated(making, row);
    if (!fill_known(making, row->from[0], &pattern))
        return false;
    if (strchr(pattern, '{') != NULL || text_ends_with(pattern, "*")) {
        bool holds = true; /* do not search if "when" fails without the names that a search finds */
        struct error unused;
        return !scope_holds(&making->scope, row->when, &holds, &unused) || holds ? make_searched(making, row, pattern)
                                                                                 : true;
    }
    const char **names = arena_array(making->arena, row->n_from, sizeof *names);
    for (unsigned i = 0; i < row->n_from; i++)
        if (!scope_fill(&making->scope, row->from[i], &names[i], making->error))
            return false;
    const struct layout_sources sources = {.names = names, .count = row->n_from};
    return row_make_named(making, row, &sources);
}

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
