#include "models/layouts/cut.h"

#include "models/families/family.h"
#include "models/relation.h"

#include <ctype.h>
#include <string.h>

enum { MAX_SIZE = INT32_MAX };

void cutter_init(struct cutter *cutter, struct scope *scope, struct arena *arena)
{
    *cutter = (struct cutter){.scope = scope, .arena = arena};
    if (scope->hparams != NULL)
        facts_read(&scope->facts, scope->hparams);
}

static const struct layout_axis *find_axis(const struct cutter *cutter, const char *name)
{
    const struct layout_file *file = cutter->scope->file;
    for (size_t i = 0; i < file->n_axes; i++)
        if (strcmp(file->axes[i].name, name) == 0)
            return &file->axes[i];
    return NULL;
}

/* The size of a name, if it is known. */
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

/* The family of the model, and what it says of names. */
static bool find_relation(struct cutter *cutter, struct error *error)
{
    struct scope *scope = cutter->scope;
    const struct family_name *name;
    if (cutter->looked_for)
        return true;
    cutter->looked_for = true;
    const struct family *family = scope->hparams != NULL ? family_find(scope->hparams, &name) : NULL;
    if (family == NULL)
        return true;
    if (family->add_facts != NULL)
        family->add_facts(&scope->facts, scope->hparams);
    cutter->relation = relation_new(cutter->arena, family->name, family->prefix, family->tensors, error);
    return cutter->relation != NULL;
}

/* `text` with `before` in front of the name wherever it is, and `after` behind it. */
static const char *with_axis(struct arena *arena, const char *text, const char *name, const char *before,
                             const char *after)
{
    size_t length = strlen(name);
    const char *result = "", *start = text;
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        bool is_start = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        if (!is_start || isalnum((unsigned char)at[length]) || at[length] == '_')
            continue;
        result = arena_printf(arena, "%s%.*s(%s %s %s)", result, (int)(at - start), start, before, name, after);
        start = at + length;
    }
    return arena_printf(arena, "%s%s", result, start);
}

/* Whether a name is one of those in a list. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at != '\0'; at += strcspn(at, " ") + strspn(at + strcspn(at, " "), " "))
        if (strncmp(at, name, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* What a relation's rearrangement says of the source alone, and the sizes of its names for one rank. */
struct division {
    const struct rearrangement *axes;
    const char *text, *parallel;
    struct axis_size tp;
};

static bool divide(struct cutter *cutter, const struct division *division, const struct view *view,
                   const struct view **ret_view, struct error *error)
{
    struct arena *arena = cutter->arena;
    const char *text = division->text;
    struct axis_size sizes[AXES_MAX + 2] = {division->tp};
    struct axis_sizes known = {sizes, 1};
    for (unsigned i = 0; i < division->axes->n_names; i++) {
        const char *name = division->axes->names[i];
        uint64_t size = facts_get(&cutter->scope->facts, name), tp = division->tp.size;
        bool is_cut = is_listed(division->parallel, name);
        if (is_cut && size > 0 && strcmp(name, "kv_head") == 0 && size < tp && tp % size == 0) {
            struct axis_size copies[] = {{.name = name, .size = size}, {.name = "copy", .size = tp / size}};
            const char *copied = with_axis(arena, text, name, "", "copy");
            const struct rearrangement *copy =
                rearrangement_parse(arena, arena_printf(arena, "%s -> %s", text, copied), error);
            if (copy == NULL ||
                !rearrangement_apply(arena, copy, FORWARD, &(struct axis_sizes){copies, 2}, &view, &view, error))
                return false;
            size = tp;
        }
        if (is_cut && size % tp != 0)
            return error_set(error, "axis %s is %zu, which %zu ranks do not divide", name, (size_t)size, (size_t)tp);
        if (size > 0)
            sizes[known.n_sizes++] = (struct axis_size){.name = name, .size = is_cut ? size / tp : size};
    }
    const char *cut = text;
    for (unsigned i = 0; i < division->axes->n_names; i++)
        if (is_listed(division->parallel, division->axes->names[i]))
            cut = with_axis(arena, cut, division->axes->names[i], "tp", "");
    const struct rearrangement *axes = rearrangement_parse(arena, arena_printf(arena, "%s -> %s", cut, text), error);
    return axes != NULL && rearrangement_apply(arena, axes, FORWARD, &known, &view, ret_view, error);
}

/* The part of the rank, as the family's relation divides that tensor. */
static bool cut_parallel(struct cutter *cutter, const char *name, const struct view *view, const struct view **ret_view,
                         struct error *error)
{
    struct relation_match match;
    struct division division = {0};
    bool is_known;
    *ret_view = view;
    if (!find_relation(cutter, error) || !size_of(cutter, "tp", &division.tp, &is_known, error))
        return false;
    if (!is_known || division.tp.size <= 1)
        return true;
    if (cutter->relation == NULL)
        return error_set(error, "no family is known that says how ranks divide '%.200s'", name);
    if (!relation_find(cutter->relation, FORWARD, &cutter->scope->facts, NULL, name, &match))
        return error_set(error, "tensor '%.200s' is unknown to the family %s", name, cutter->relation->name);
    division.parallel = match.entry->row->parallel;
    if (division.parallel == NULL || (strcmp(division.parallel, "column") == 0 && view->rank == 1))
        return true;
    division.axes = match.entry->axes[FORWARD];
    if (division.axes == NULL)
        division.axes = rearrangement_parse(cutter->arena, view->rank == 1 ? "row" : "row column", error);
    if (division.axes == NULL)
        return false;
    division.text = division.axes->sides[FORWARD][match.which].text;
    return divide(cutter, &division, view, ret_view, error) || error_prefix(error, "tensor '%.200s'", name);
}

bool cutter_cut(struct cutter *cutter, const struct layout_row *row, const char *const *names,
                const struct view *const *views, unsigned n_views, const struct view **ret_view, struct error *error)
{
    const struct view *now[AXES_MAX_TENSORS] = {NULL}, *next[AXES_MAX_TENSORS];
    for (unsigned i = 0; i < n_views; i++) {
        now[i] = views[i];
        if (row->parallel && !cut_parallel(cutter, names[i], views[i], &now[i], error))
            return false;
    }
    for (unsigned i = 0; i < row->n_axes; i++) {
        if (row->axes[i]->n_tensors[FORWARD] != n_views)
            return error_set(error, "axes: '%.200s' is of %u tensors, and there are %u", row->axes[i]->text,
                             row->axes[i]->n_tensors[FORWARD], n_views);
        if (!apply(cutter, row->axes[i], now, next, error))
            return false;
        n_views = row->axes[i]->n_tensors[BACKWARD];
        memcpy(now, next, n_views * sizeof *now);
    }
    *ret_view = now[0];
    return n_views == 1 || row->constant != NULL || error_set(error, "%u sources, and no axes that join them", n_views);
}
