#include "models/layouts/making.h"

#include "base/sort.h"
#include "base/system.h"
#include "base/text.h"
#include "models/relation/pattern.h"

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
