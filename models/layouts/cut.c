#include "models/layouts/making.h"

#include "models/families/families.h"
#include "models/family/tensors.h"
#include "models/relation/relation.h"

#include <ctype.h>
#include <string.h>

enum { MAX_SIZE = INT32_MAX };

bool cutter_init(struct cutter *cutter, struct scope *scope, struct arena *arena, struct error *error)
{
    const struct family *of_keys = scope->file->family;
    *cutter = (struct cutter){.scope = scope, .arena = arena};
    if (of_keys != NULL && (cutter->of_keys = family_relation(of_keys, error)) == NULL)
        return false;
    if (scope->hparams == NULL)
        return true;
    dimensions_read(&scope->dimensions, scope->hparams);
    const struct family *family = cutter->family = family_find(scope->hparams, &cutter->hf);
    if (family == NULL)
        return true;
    family_add_dimensions(family, &scope->dimensions, scope->hparams);
    cutter->relation = family_relation(family, error);
    return cutter->relation != NULL;
}

static const struct layout_axis *find_axis(const struct cutter *cutter, const char *name)
{
    const struct layout_file *file = cutter->scope->file;
    for (size_t i = 0; i < file->n_axes; i++)
        if (strcmp(file->axes[i].name, name) == 0)
            return &file->axes[i];
    return NULL;
}

/* Gets the size of an axis; *ret_known is false if its name has none. */
static bool size_of(struct cutter *cutter, const char *name, struct axis_size *size, bool *ret_known,
                    struct error *error)
{
    const struct layout_axis *axis = find_axis(cutter, name);
    struct value value;
    *size = (struct axis_size){.name = name};
    *ret_known = axis != NULL;
    if (axis != NULL)
        return scope_number(cutter->scope, axis->size, INT64_MAX, &size->size, error) &&
               (axis->part == NULL || scope_number(cutter->scope, axis->part, INT64_MAX, &size->index, error));
    if (!scope_knows(cutter->scope, name))
        return true;
    if (!scope_value(cutter->scope, name, &value, error))
        return false;
    *ret_known = value.kind == VALUE_NUMBER && value.number > 0;
    size->size = *ret_known ? (uint64_t)value.number : 0;
    return true;
}

static bool apply(struct cutter *cutter, const struct rearrangement *axes, const struct view *const *views,
                  const struct view **results, struct error *error)
{
    struct axis_size sizes[AXES_MAX];
    struct axis_sizes known = {sizes, 0};
    for (unsigned i = 0; i < axes->n_names; i++) {
        bool is_known;
        if (!size_of(cutter, axes->names[i], &sizes[known.n_sizes], &is_known, error))
            return false;
        if (is_known && sizes[known.n_sizes].index >= sizes[known.n_sizes].size && sizes[known.n_sizes].index > 0)
            return error_set(error, "axis %s: part %zu of %zu", axes->names[i], (size_t)sizes[known.n_sizes].index,
                             (size_t)sizes[known.n_sizes].size);
        known.n_sizes += is_known;
    }
    return rearrangement_apply(cutter->arena, axes, FORWARD, &known, views, results, error);
}

/* Like rearrangement_parse(), but parses most texts only once. */
static const struct rearrangement *parse(struct cutter *cutter, const char *text, struct error *error)
{
    for (unsigned i = 0; i < cutter->n_parsed; i++)
        if (strcmp(cutter->parsed[i]->text, text) == 0)
            return cutter->parsed[i];
    const struct rearrangement *parsed = rearrangement_parse(cutter->arena, text, error);
    if (parsed != NULL && cutter->n_parsed < CUTTER_PARSED)
        cutter->parsed[cutter->n_parsed++] = parsed;
    return parsed;
}

/* Returns `text` with each axis `name` as "(before name)". */
static const char *with_axis(struct arena *arena, const char *text, const char *name, const char *before)
{
    size_t length = strlen(name);
    const char *result = "", *start = text;
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        bool is_start = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        if (!is_start || isalnum((unsigned char)at[length]) || at[length] == '_')
            continue;
        result = arena_printf(arena, "%s%.*s(%s %s)", result, (int)(at - start), start, before, name);
        start = at + length;
    }
    return arena_printf(arena, "%s%s", result, start);
}

/* A tensor being divided: its axes in the relation, the same with the cuts, and the sizes of axes in a rank's slice. */
struct division {
    const char *text, *cut;
    struct axis_size tp, sizes[2 * AXES_MAX];
    struct axis_sizes known;
};

/* Cuts an axis into as many slices as there are ranks; an axis that ranks may share into at most its length. Leaves in
 * *tp the ranks that share a slice, and this rank's index among them. */
static bool cut_axis(struct cutter *cutter, struct division *division, const char *name, struct axis_size *tp,
                     struct error *error)
{
    bool is_shared = strcmp(name, "kv_head") == 0 || strcmp(name, "state_group") == 0;
    uint64_t size = dimensions_get(&cutter->scope->dimensions, name);
    uint64_t parts = is_shared && size > 0 && size < tp->size ? size : tp->size;
    const char *part = arena_printf(cutter->arena, "part_of_%s", name);
    if (tp->size % parts != 0 || size % parts != 0)
        return error_set(error, "axis %s is %zu, which %zu ranks do not divide", name, (size_t)size, (size_t)tp->size);
    tp->size /= parts;
    division->sizes[division->known.n_sizes++] =
        (struct axis_size){.name = part, .size = parts, .index = tp->index / tp->size};
    tp->index %= tp->size;
    if (size > 0)
        division->sizes[division->known.n_sizes++] = (struct axis_size){.name = name, .size = size / parts};
    division->cut = with_axis(cutter->arena, division->cut, name, part);
    return true;
}

/* Cuts the axes of a list; after a '/', only among the ranks that share a slice of the axis before it. */
static bool cut_axes(struct cutter *cutter, struct division *division, const char *list, struct error *error)
{
    struct axis_size tp = division->tp;
    for (const char *at = list, *end; *at != '\0'; at = end + (*end != '\0')) {
        end = at + strcspn(at, " /");
        if (!cut_axis(cutter, division, arena_strndup(cutter->arena, at, (size_t)(end - at)), &tp, error))
            return false;
        if (*end != '/')
            tp = division->tp;
    }
    return true;
}

/* Reports whether a list contains a name. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at != '\0'; at += strcspn(at, " /"), at += *at != '\0')
        if (strncmp(at, name, length) == 0 && strcspn(at, " /") == length)
            return true;
    return false;
}

static bool divide(struct cutter *cutter, struct division *division, const struct rearrangement *axes,
                   const char *parallel, const struct view *view, const struct view **ret_view, struct error *error)
{
    division->known.sizes = division->sizes;
    division->cut = division->text;
    if (!cut_axes(cutter, division, parallel, error))
        return false;
    for (unsigned i = 0; i < axes->n_names; i++) {
        uint64_t size = dimensions_get(&cutter->scope->dimensions, axes->names[i]);
        if (size > 0 && !is_listed(parallel, axes->names[i]))
            division->sizes[division->known.n_sizes++] = (struct axis_size){.name = axes->names[i], .size = size};
    }
    axes = parse(cutter, arena_printf(cutter->arena, "%s -> %s", division->cut, division->text), error);
    return axes != NULL && rearrangement_apply(cutter->arena, axes, FORWARD, &division->known, &view, ret_view, error);
}

/* Returns the axes of a tensor in the relation's row; if rows or columns are cut and the row has no such axis, those of
 * an ordinary matrix. */
static const struct rearrangement *source_axes(struct cutter *cutter, const struct relation_row *row,
                                               const struct view *view, struct error *error)
{
    static const char *const plain[] = {"1", "row", "row column", "member row column"};
    bool names_plain = strcmp(row->parallel, "row") == 0 || strcmp(row->parallel, "column") == 0;
    const struct rearrangement *axes = row->axes != NULL ? parse(cutter, row->axes, error) : NULL;
    if (row->axes != NULL && (axes == NULL || !names_plain || rearrangement_axis(axes, row->parallel) >= 0))
        return axes;
    if (view->rank < sizeof plain / sizeof *plain)
        return parse(cutter, plain[view->rank], error);
    error_set(error, "the tensor has %u dimensions", view->rank);
    return NULL;
}

/* Finds a source's row in the relation; fails if the family or the tensor is unknown. */
static bool find_match(struct cutter *cutter, const struct layout_sources *sources, unsigned which,
                       struct relation_match *ret_match, struct error *error)
{
    const struct dimensions *dimensions = &cutter->scope->dimensions;
    const struct relation *relation = sources->by_keys != NULL ? cutter->of_keys : cutter->relation;
    const char *name = sources->names[which], *own;
    if (relation == NULL)
        return error_set(error, "cannot divide '%.200s' among ranks: its family is unknown", name);
    if (sources->by_keys != NULL)
        own = sources->by_keys[which];
    else
        own = family_tensor_name(cutter->family, cutter->hf, dimensions, name, cutter->arena);
    return (own != NULL && relation_find(relation, FORWARD, dimensions, NULL, own, ret_match)) ||
           error_set(error, "tensor '%.200s' is unknown to the family %s", name, relation->name);
}

/* Replaces *view by the rank's slice, as the relation divides the tensor. */
static bool cut_parallel(struct cutter *cutter, const struct layout_sources *sources, unsigned which,
                         const struct view **view, struct error *error)
{
    struct relation_match match;
    struct division division = {0};
    bool is_known;
    if (!size_of(cutter, "tp", &division.tp, &is_known, error))
        return false;
    if (!is_known || division.tp.size <= 1)
        return true;
    if (!find_match(cutter, sources, which, &match, error))
        return false;
    const struct relation_row *row = match.entry->row;
    if (row->parallel == NULL || (strcmp(row->parallel, "column") == 0 && (*view)->rank == 1))
        return true;
    const struct rearrangement *axes = source_axes(cutter, row, *view, error);
    if (axes != NULL)
        division.text = axes->sides[FORWARD][axes->n_tensors[FORWARD] > 1 ? match.which : 0].text;
    return (axes != NULL && divide(cutter, &division, axes, row->parallel, *view, view, error)) ||
           error_prefix(error, "tensor '%.200s'", sources->names[which]);
}

/* Replaces all views by the rank's slices. */
static bool cut_all(struct cutter *cutter, const struct layout_sources *sources, const struct view **views,
                    unsigned n_views, struct error *error)
{
    if (n_views != sources->count)
        return error_set(error, "axes: parallel takes %u tensors, but the row has %u", sources->count, n_views);
    for (unsigned i = 0; i < n_views; i++)
        if (!cut_parallel(cutter, sources, i, &views[i], error))
            return false;
    return true;
}

bool cutter_cut(struct cutter *cutter, const struct layout_row *row, const struct layout_sources *sources,
                const struct view **ret_view, struct error *error)
{
    const struct view *now[AXES_MAX_TENSORS] = {NULL}, *next[AXES_MAX_TENSORS];
    unsigned n_views = sources->count;
    memcpy(now, sources->views, n_views * sizeof *now);
    for (unsigned i = 0; i < row->n_axes; i++) {
        const struct rearrangement *axes = row->axes[i];
        if (axes == NULL && !cut_all(cutter, sources, now, n_views, error))
            return false;
        if (axes == NULL)
            continue;
        if (axes->n_tensors[FORWARD] != n_views)
            return error_set(error, "axes: '%.200s' takes %u tensors, but the row has %u", axes->text,
                             axes->n_tensors[FORWARD], n_views);
        if (!apply(cutter, axes, now, next, error))
            return false;
        n_views = axes->n_tensors[BACKWARD];
        memcpy(now, next, n_views * sizeof *now);
    }
    *ret_view = now[0];
    return n_views == 1 || row->constant != NULL || error_set(error, "%u sources without axes to join them", n_views);
}
