#include "models/layouts/make.h"

#include "base/binary_search.h"
#include "base/checked.h"
#include "base/text.h"
#include "formats/documents.h"
#include "formats/safetensors/write.h"
#include "models/layouts/cut.h"
#include "models/layouts/layout_json.h"
#include "models/layouts/scope.h"
#include "models/pattern.h"
#include "quant/convert.h"
#include "quant/scaled_rows.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 4096, MAX_PARTS = 65536, MAX_COUNT = 1 << 20, MAX_NAME = 255 };

/* What a layout may cost: rows that are done, tensors that are looked at. A second or two; 64 ranks of the largest
 * models need less. */
enum { MAX_STEPS = 100 * 1000 * 1000, STEPS_OF_ROW = 64 };

struct making {
    struct scope scope;
    struct cutter cutter;
    struct key_names layout_keys; /* without those of a user */
    const struct layout_file *file;
    const struct tensor_set *set;
    struct arena *arena;
    struct layout_product *product;
    struct layout_tensor *tensors; /* of the file that is being made */
    size_t n_tensors, capacity;
    uint64_t n_steps;
    struct error *error;
};

static bool fail_at(const struct making *making, const char *place)
{
    return error_prefix(making->error, "%s", layout_file_place(making->file, place, making->arena));
}

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

/* The source of that name, marked as used; *ret_view is NULL where there is none. */
static bool read_source(struct making *making, const char *name, const struct view **ret_view)
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

/* Makes the tensor of a row from its sources. */
static bool make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources)
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

/* Makes the tensor of a row whose sources have these names, if its condition holds. */
static bool make_named(struct making *making, const struct layout_row *row, struct layout_sources *sources)
{
    const struct view *views[KEY_NAMES_MAX];
    bool holds = false;
    unsigned n_missing = 0;
    const char *missing = NULL;
    sources->views = views;
    scope_push(&making->scope, "sources", value_of_number(sources->count));
    bool made = scope_holds(&making->scope, row->when, &holds, making->error);
    for (unsigned i = 0; made && holds && i < sources->count; i++) {
        made = read_source(making, sources->names[i], &views[i]);
        if (made && views[i] == NULL) {
            missing = sources->names[i];
            n_missing++;
        }
    }
    if (made && n_missing > 0 && (!row->optional || n_missing < sources->count))
        made = error_set(making->error, "the model has no tensor '%.200s'", missing);
    made = made && (!holds || n_missing > 0 || make_tensor(making, row, sources));
    scope_pop(&making->scope);
    return made;
}

/* As the loader looks for what is not there: below "language_model.". */
static void find_below(struct making *making, const char **names, unsigned n_names)
{
    for (unsigned i = 0; i < n_names; i++) {
        const char *below = arena_printf(making->arena, "language_model.%s", names[i]);
        if (tensor_set_find_text(making->set, names[i]) == NULL && tensor_set_find_text(making->set, below) != NULL)
            names[i] = below;
    }
}

/* The names of a row's sources by the keys of the layout alone, where these say how ranks divide them. */
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
    return make_named(making, row, &sources);
}

/* A name with those {names} filled in that have a meaning; the others stand for numbers. */
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

/* A tensor whose name is of a pattern. */
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
    int member; /* the number that counts members of one tensor, or -1 */
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

/* The first tensor by name that does not come before a text. */
static size_t lower_bound(const struct tensor_set *set, const char *text, size_t length)
{
    return search_first(set->n_tensors, name_comes_before, &(struct wanted_name){set, text, length});
}

/* Whether a row names a tensor otherwise than by '*'. */
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
    size_t prefix = strcspn(search->pattern, "{*"), capacity = 0;
    bool is_rest = text_ends_with(search->pattern, "*");
    for (size_t i = lower_bound(set, search->pattern, prefix); i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[set->by_name[i]];
        struct found found = {.tensor = tensor};
        if (tensor->name_length < prefix || memcmp(tensor->name, search->pattern, prefix) != 0 ||
            making->n_steps++ > MAX_STEPS)
            break;
        if (!pattern_match(search->pattern, tensor->name, tensor->name_length, found.numbers) ||
            (is_rest && is_named(making, tensor)))
            continue;
        if (search->n_found == capacity) {
            capacity = capacity * 2 + 16;
            search->found = memory_resize(search->found, capacity * sizeof *search->found);
        }
        search->found[search->n_found++] = found;
    }
    if (search->n_found > 1)
        qsort_r(search->found, search->n_found, sizeof *search->found, compare_found, search);
}

/* What a '*' stands for: what the name has after the part before it. */
static const char *rest_of(const struct search *search, const struct found *found)
{
    char *before = pattern_fill(search->making->arena, search->pattern, found->numbers, "");
    size_t length = strlen(before);
    if (!text_ends_with(search->pattern, "*"))
        return "";
    return length > 0 && length - 1 <= found->tensor->name_length ? found->tensor->name + length - 1 : "";
}

/* The members of one source, stacked: those of the pattern for each number from 0 on. */
static bool stack_members(struct search *search, const char *from, size_t n_members, const struct view **ret_view,
                          const char **ret_name)
{
    struct making *making = search->making;
    const struct view **members = arena_array(making->arena, n_members, sizeof *members);
    for (size_t i = 0; i < n_members; i++) {
        const char *name;
        scope_push(&making->scope, search->names[search->member], value_of_number((int64_t)i));
        bool read = scope_fill(&making->scope, from, &name, making->error) && read_source(making, name, &members[i]);
        scope_pop(&making->scope);
        if (!read)
            return false;
        if (members[i] == NULL)
            return error_set(making->error, "the model has no tensor '%.200s'", name);
        if (i == 0)
            *ret_name = name;
        if (members[i]->dtype != members[0]->dtype || members[i]->rank != members[0]->rank ||
            memcmp(members[i]->shape, members[0]->shape, members[0]->rank * sizeof *members[0]->shape) != 0)
            return error_set(making->error, "tensor '%.200s' is of another shape or dtype than '%.200s'", name,
                             *ret_name);
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
    return make_tensor(search->making, row, &sources);
}

/* The tensors of found[first, end), which differ in the number of the member at most. */
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
        struct layout_sources sources = {.names = names, .count = row->n_from};
        made = made && make_named(making, row, &sources);
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

/* Whether a template has that name in it. */
static bool mentions(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *open = strchr(text, '{'); open != NULL; open = strchr(open + 1, '{'))
        for (const char *at = strstr(open, name); at != NULL && at < strchrnul(open, '}'); at = strstr(at + 1, name))
            if (strchr("{ (+-*/%", at[-1]) != NULL && strchr("} )+-*/%", at[length]) != NULL)
                return true;
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
            return error_set(making->error, "two numbers are not in the name that is made");
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

static bool make_row(struct making *making, const struct layout_row *row)
{
    const char *pattern;
    if (row->translated != NULL)
        return make_translated(making, row);
    if (!fill_known(making, row->from[0], &pattern))
        return false;
    if (strchr(pattern, '{') != NULL || text_ends_with(pattern, "*")) {
        bool holds = true; /* what does not depend on the names found need not look for them */
        struct error unused;
        return !scope_holds(&making->scope, row->when, &holds, &unused) || holds ? make_searched(making, row, pattern)
                                                                                 : true;
    }
    const char **names = arena_array(making->arena, row->n_from, sizeof *names);
    for (unsigned i = 0; i < row->n_from; i++)
        if (!scope_fill(&making->scope, row->from[i], &names[i], making->error))
            return false;
    struct layout_sources sources = {.names = names, .count = row->n_from};
    return make_named(making, row, &sources);
}

static bool make_rows(struct making *making, const struct layout_block *block)
{
    for (unsigned i = 0; i < block->n_rows; i++) {
        bool made = make_row(making, &block->rows[i]);
        making->n_steps += STEPS_OF_ROW;
        if (made && making->n_steps > MAX_STEPS)
            made = error_set(making->error, "there are too many rows and tensors");
        if (!made)
            return fail_at(making, block->rows[i].place);
    }
    return true;
}

static bool make_block(struct making *making, const struct layout_block *block)
{
    uint64_t count = 1;
    if (block->name != NULL && !scope_number(&making->scope, block->count, MAX_COUNT, &count, making->error))
        return fail_at(making, block->place);
    for (uint64_t i = 0; i < count; i++) {
        bool holds;
        if (block->name != NULL)
            scope_push(&making->scope, block->name, value_of_number((int64_t)i));
        if (!scope_holds(&making->scope, block->when, &holds, making->error))
            return fail_at(making, block->place);
        if (holds && !make_rows(making, block))
            return false;
        if (block->name != NULL)
            scope_pop(&making->scope);
    }
    return true;
}

static bool add_output(struct making *making, const char *name, struct layout_tensor *tensors, size_t n_tensors)
{
    struct layout_product *product = making->product;
    if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL || strlen(name) > MAX_NAME)
        return error_set(making->error, "'%.300s' cannot be the name of a file", name) || fail_at(making, "files.name");
    if (product->n_outputs == product->capacity) {
        size_t capacity = product->capacity * 2 + 16;
        struct layout_output *outputs = arena_array(making->arena, capacity, sizeof *outputs);
        if (product->n_outputs > 0)
            memcpy(outputs, product->outputs, product->n_outputs * sizeof *outputs);
        product->outputs = outputs;
        product->capacity = capacity;
    }
    product->outputs[product->n_outputs++] = (struct layout_output){name, tensors, n_tensors};
    return true;
}

/* The tensors made until now as one file. */
static bool add_part(struct making *making, uint64_t part, struct layout_tensor *tensors, size_t n_tensors)
{
    const char *name;
    scope_push(&making->scope, "part", value_of_number((int64_t)part));
    bool filled =
        scope_fill(&making->scope, making->file->files.name, &name, making->error) || fail_at(making, "files.name");
    scope_pop(&making->scope);
    return filled && add_output(making, name, tensors, n_tensors);
}

/* Cut into parts as vLLM's ShardedStateLoader.save_model() does: a new one begins before the tensor that would be too
 * much. */
static bool add_parts(struct making *making, struct layout_tensor *tensors)
{
    uint64_t limit = UINT64_MAX, part = 0, size = 0;
    size_t first = 0;
    const char *part_size = making->file->files.part_size;
    if (part_size != NULL && !scope_number(&making->scope, part_size, INT64_MAX, &limit, making->error))
        return fail_at(making, "files.part_size");
    for (size_t i = 0; i < making->n_tensors; i++) {
        uint64_t bytes = convert_bytes(tensors[i].view, tensors[i].encoding.dtype), sum;
        if (!checked_add(size, bytes, &sum) || sum > limit) {
            if (part == MAX_PARTS)
                return error_set(making->error, "too many parts") || fail_at(making, "files.part_size");
            if (!add_part(making, part++, tensors + first, i - first))
                return false;
            first = i;
            sum = bytes;
        }
        size = sum;
    }
    return add_part(making, part, tensors + first, making->n_tensors - first);
}

static bool add_raw(struct making *making, struct layout_tensor *tensors)
{
    for (size_t i = 0; i < making->n_tensors; i++) {
        const char *name;
        scope_push(&making->scope, "name", value_of_text(tensors[i].name));
        bool filled = scope_fill(&making->scope, making->file->files.name, &name, making->error);
        scope_pop(&making->scope);
        if (!filled)
            return fail_at(making, "files.name");
        if (!add_output(making, name, &tensors[i], 1))
            return false;
    }
    struct buffer text = {0};
    layout_json_manifest(making->product, &text);
    making->product->texts[making->product->n_texts++] = (struct layout_text){
        making->file->files.manifest, arena_copy(making->arena, text.bytes, text.length), text.length};
    buffer_free(&text);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct layout_tensor *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

/* Fails where two tensors of a file have one name. */
static bool check_names(struct making *making)
{
    const struct layout_tensor **sorted = memory_alloc((making->n_tensors + 1) * sizeof *sorted);
    bool differ = true;
    for (size_t i = 0; i < making->n_tensors; i++)
        sorted[i] = &making->tensors[i];
    qsort(sorted, making->n_tensors, sizeof *sorted, compare_names);
    for (size_t i = 1; differ && i < making->n_tensors; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            differ = error_set(making->error, "tensor '%.200s' has been made by %s", sorted[i]->name,
                               sorted[i - 1]->row->place) ||
                     fail_at(making, sorted[i]->row->place);
    free(sorted);
    return differ;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fails where two files have one name. */
static bool check_files(struct making *making)
{
    const struct layout_product *product = making->product;
    size_t count = product->n_outputs + product->n_texts;
    const char **names = memory_alloc((count + 1) * sizeof *names);
    bool differ = true;
    for (size_t i = 0; i < count; i++)
        names[i] = i < product->n_outputs ? product->outputs[i].name : product->texts[i - product->n_outputs].name;
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 1; differ && i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            differ = error_set(making->error, "two files are called '%s'", names[i]) || fail_at(making, "files");
    free(names);
    return differ;
}

static bool make_file(struct making *making)
{
    making->n_tensors = 0;
    for (size_t i = 0; i < making->file->n_blocks; i++)
        if (!make_block(making, &making->file->blocks[i]))
            return false;
    if (!check_names(making))
        return false;
    struct layout_tensor *tensors = arena_copy(making->arena, making->tensors, making->n_tensors * sizeof *tensors);
    return making->file->files.raw ? add_raw(making, tensors) : add_parts(making, tensors);
}

static bool make_files(struct making *making)
{
    const struct layout_value *each = &making->file->files.each;
    uint64_t count = 1;
    if (each->name != NULL && !scope_number(&making->scope, each->expression, MAX_FILES, &count, making->error))
        return fail_at(making, "files.for");
    for (uint64_t i = 0; i < count; i++) {
        if (each->name != NULL)
            scope_push(&making->scope, each->name, value_of_number((int64_t)i));
        if (!make_file(making))
            return false;
        if (each->name != NULL)
            scope_pop(&making->scope);
    }
    return true;
}

static bool check_refusals(struct making *making)
{
    for (size_t i = 0; i < making->file->n_refusals; i++) {
        const struct layout_refusal *refusal = &making->file->refusals[i];
        bool holds;
        const char *because;
        if (!scope_holds(&making->scope, refusal->when, &holds, making->error))
            return fail_at(making, arena_printf(making->arena, "refuse[%zu].when", i));
        if (!holds)
            continue;
        if (!scope_fill(&making->scope, refusal->because, &because, making->error))
            return fail_at(making, arena_printf(making->arena, "refuse[%zu].because", i));
        return error_set(making->error, "layout %s: %s", making->file->name, because);
    }
    return true;
}

static bool add_documents(struct making *making, const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < making->file->n_documents; i++) {
        const struct layout_document *document = &making->file->documents[i];
        struct buffer text = {0};
        bool holds;
        if (!scope_holds(&making->scope, document->when, &holds, making->error) ||
            (holds && !layout_json_document(document, &making->scope, checkpoint, &text, making->error))) {
            buffer_free(&text);
            return fail_at(making, arena_printf(making->arena, "documents[%zu]", i));
        }
        if (holds)
            making->product->texts[making->product->n_texts++] =
                (struct layout_text){document->name, arena_copy(making->arena, text.bytes, text.length), text.length};
        buffer_free(&text);
    }
    return true;
}

/* The dictionary of the layout, and that of a user, which the parameter "keymap" names. */
static bool read_keys(struct making *making, struct json_document **ret_document)
{
    struct scope *scope = &making->scope;
    struct value path = {.kind = VALUE_NULL}, rules = {.kind = VALUE_NULL};
    if (making->file->keys != NULL &&
        !key_names_add(&scope->keys, making->file->keys, making->file->path, making->arena, making->error))
        return false;
    making->layout_keys = scope->keys;
    if (scope_knows(scope, "keymap") && !scope_value(scope, "keymap", &path, making->error))
        return false;
    if (scope_knows(scope, "keymap_rules") && !scope_value(scope, "keymap_rules", &rules, making->error))
        return false;
    scope->keys.by_sections = rules.kind == VALUE_TEXT && strcmp(rules.text, "sections") == 0;
    if (!value_is_true(&path))
        return true;
    struct source *source = source_open(AT_FDCWD, path.text, path.text, making->error);
    *ret_document = source != NULL ? document_parse(source, making->error) : NULL;
    source_close(source);
    return *ret_document != NULL &&
           key_names_add(&scope->keys, json_root(*ret_document), path.text, making->arena, making->error);
}

static bool make_all(struct making *making, const char *parameters, const struct canonical_model *model)
{
    struct json_document *keys = NULL;
    bool absent = false;
    making->scope.hparams = model->config != NULL ? hparams_parse(model->config, model->config_length, making->error)
                                                  : hparams_load(model->checkpoint, &absent, making->error);
    if (making->scope.hparams == NULL && !absent)
        return false;
    bool made = cutter_init(&making->cutter, &making->scope, making->arena, making->error) &&
                scope_read_parameters(&making->scope, parameters, making->error) && read_keys(making, &keys) &&
                check_refusals(making) && make_files(making) && add_documents(making, model->checkpoint) &&
                check_files(making);
    json_free(keys);
    hparams_free(making->scope.hparams);
    return made;
}

bool layout_make(const struct layout_file *file, const char *parameters, const struct canonical_model *model,
                 struct arena *arena, struct layout_product *ret_product, struct error *error)
{
    struct making making = {
        .file = file, .set = model->tensors, .arena = arena, .product = ret_product, .error = error};
    making.scope.file = file;
    making.scope.set = model->tensors;
    making.scope.arena = arena;
    *ret_product = (struct layout_product){0};
    ret_product->used = arena_array(arena, model->tensors->n_tensors + 1, sizeof *ret_product->used);
    ret_product->texts = arena_array(arena, file->n_documents + 2, sizeof *ret_product->texts);
    bool made = make_all(&making, parameters, model);
    free(making.tensors);
    return made;
}
