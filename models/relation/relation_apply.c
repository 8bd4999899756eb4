#include "models/relation/relation.h"

#include "models/relation/rearrangement.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Tensors that belong together, some of them still missing. */
struct gathered {
    unsigned group;
    uint64_t numbers[PATTERN_NUMBERS]; /* except members' numbers */
    const char *suffix;
    size_t n_found, n_wanted, n_members;
    const struct view **views;     /* by entry of the group, name, member */
    struct gathered *next, **link; /* list of incomplete groups */
};

struct applying {
    const struct relation_job *job;
    bool *is_met; /* by entry: the set has a tensor of it. NULL: all entries are required */
    void *tree;   /* of struct gathered */
    struct gathered *open;
    size_t n_wanted; /* members of all gathered tensors: each is a tensor of its own */
    void *written;   /* tree of names of which the first tensor counts */
    struct error *error;
};

static int compare_gathered(const void *a, const void *b)
{
    const struct gathered *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    for (unsigned i = 0; i < PATTERN_NUMBERS; i++)
        if (x->numbers[i] != y->numbers[i])
            return x->numbers[i] < y->numbers[i] ? -1 : 1;
    return strcmp(x->suffix, y->suffix);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Returns the name on the other side: numbers carry over by name, unnamed ones by order. */
static const char *name_there(const struct applying *applying, const struct relation_entry *entry, unsigned which,
                              const struct relation_match *match, uint64_t member)
{
    const struct relation_job *job = applying->job;
    const char *from = entry->names[job->direction][match->which], *to = entry->names[!job->direction][which], *name;
    uint64_t numbers[PATTERN_NUMBERS] = {0};
    unsigned n_unnamed = 0;
    size_t length, other_length;
    for (unsigned i = 0; (name = pattern_number_name(to, i, &length)) != NULL; i++) {
        unsigned n_seen = 0;
        numbers[i] = member;
        const char *other;
        for (unsigned j = 0; (other = pattern_number_name(from, j, &other_length)) != NULL; j++)
            if (length == other_length && strncmp(name, other, length) == 0 && (length > 0 || n_seen++ == n_unnamed))
                numbers[i] = match->numbers[j];
        n_unnamed += length == 0;
    }
    const char *prefix = *to == '^' && dimensions_get(job->dimensions, "bare") == 0 ? job->relation->prefix : "";
    name = pattern_fill(job->arena, relation_bare_name(to), numbers, match->suffix);
    return *prefix != '\0' ? arena_printf(job->arena, "%s%s", prefix, name) : name;
}

/* Restores leading dimensions of 1, which a row has and a GGUF's tensor lost. */
static const struct view *with_lost_ones(const struct applying *applying, const struct axes *axes,
                                         const struct view *view)
{
    uint64_t shape[VIEW_MAX_RANK];
    if (applying->job->direction == FORWARD || axes->has_rest || view->rank >= axes->n_dimensions)
        return view;
    unsigned n_lost = axes->n_dimensions - view->rank;
    for (unsigned i = 0; i < n_lost; i++)
        shape[i] = 1;
    memcpy(shape + n_lost, view->shape, view->rank * sizeof *shape);
    return view_reshape(applying->job->arena, view, axes->n_dimensions, shape);
}

/* Makes one set of results of an entry, with the axis of members at one index. */
static bool write_member(struct applying *applying, const struct relation_entry *entry,
                         const struct relation_match *match, const struct view *const *from, uint64_t n_members,
                         uint64_t member)
{
    const struct relation_job *job = applying->job;
    const struct rearrangement *axes = entry->axes[job->direction];
    const struct view *to[AXES_MAX_TENSORS];
    struct dimensions of_member;
    struct axis_sizes sizes = {job->dimensions->sizes, job->dimensions->n_sizes};
    if (n_members > 0) {
        of_member = *job->dimensions;
        dimensions_set_index(&of_member, entry->member[!job->direction], n_members, member);
        sizes = (struct axis_sizes){of_member.sizes, of_member.n_sizes};
    }
    memcpy(to, from, entry->n_names[job->direction] * sizeof *to);
    if (axes != NULL && !low_rank_rearrange(job->arena, axes, job->direction, &sizes, from[0], to) &&
        !rearrangement_apply(job->arena, axes, job->direction, &sizes, from, to, applying->error))
        return false;
    for (unsigned i = 0; i < entry->n_names[!job->direction]; i++) {
        const struct view *view = to[i];
        if (entry->row->map != NULL)
            view = elementwise_apply(job->arena, entry->row->map, job->dimensions, job->direction, view);
        job->write(job->context, name_there(applying, entry, i, match, member), view);
    }
    return true;
}

/* Writes the results of an entry. */
static bool write_entry(struct applying *applying, const struct relation_entry *entry,
                        const struct relation_match *match, const struct view **from)
{
    enum direction direction = applying->job->direction;
    const char *member = entry->member[!direction];
    const struct rearrangement *axes = entry->axes[direction];
    uint64_t n_members = 0;
    for (unsigned i = 0; i < entry->n_names[direction] && axes != NULL; i++)
        from[i] = with_lost_ones(applying, &axes->sides[direction][i], from[i]);
    if (member == NULL)
        return write_member(applying, entry, match, from, 0, 0);
    const struct axis_sizes sizes = {applying->job->dimensions->sizes, applying->job->dimensions->n_sizes};
    if (!rearrangement_size(axes, direction, &sizes, from, member, &n_members, applying->error))
        return false;
    for (uint64_t i = 0; i < n_members; i++)
        if (!write_member(applying, entry, match, from, n_members, i))
            return false;
    return true;
}

/* Gathering. */

static bool same_shape(const struct view *a, const struct view *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Stacks members of one shape, as views of one dtype. */
static const struct view *stack_members(const struct applying *applying, const struct view **members, size_t n_members,
                                        const char *name)
{
    struct arena *arena = applying->job->arena;
    const struct view *factored = low_rank_stack(arena, members, n_members);
    if (factored != NULL)
        return factored;
    bool same_dtype = true;
    for (size_t i = 1; i < n_members; i++) {
        same_dtype &= members[i]->dtype == members[0]->dtype;
        if (!same_shape(members[i], members[0])) {
            error_set(applying->error, "number %zu of %s has another shape than the first", i, name);
            return NULL;
        }
    }
    if (members[0]->rank + 1 > VIEW_MAX_RANK) {
        error_set(applying->error, "%s would have too many dimensions", name);
        return NULL;
    }
    for (size_t i = 0; i < n_members && !same_dtype; i++)
        members[i] = view_convert(arena, members[i], &f32_dtype);
    return view_stack(arena, members, n_members);
}

/* Reports whether an entry belongs to a group that is complete together. */
static bool is_gathered(const struct applying *applying, const struct relation_entry *entry, unsigned group)
{
    const struct relation *relation = applying->job->relation;
    return entry->group[applying->job->direction] == group &&
           (applying->is_met == NULL || applying->is_met[entry - relation->entries]);
}

/* Returns the first slot of an entry among its group's tensors. */
static size_t first_slot(const struct applying *applying, const struct relation_entry *entry, size_t n_members)
{
    enum direction direction = applying->job->direction;
    size_t slot = 0;
    for (const struct relation_entry *other = applying->job->relation->entries; other < entry; other++)
        if (is_gathered(applying, other, entry->group[direction]))
            slot += other->n_names[direction] * n_members;
    return slot;
}

static bool write_gathered(struct applying *applying, const struct gathered *gathered,
                           const struct relation_match *last)
{
    const struct relation *relation = applying->job->relation;
    enum direction direction = applying->job->direction;
    const struct view **views = gathered->views;
    for (unsigned i = 0; i < relation->n_entries; i++) {
        const struct relation_entry *entry = &relation->entries[i];
        const struct view *from[AXES_MAX_TENSORS];
        if (!is_gathered(applying, entry, gathered->group))
            continue;
        struct relation_match match = *last;
        match.entry = entry;
        match.which = 0;
        for (unsigned j = 0; j < entry->n_names[direction]; j++, views += gathered->n_members) {
            from[j] = views[0];
            if (entry->member[direction] != NULL)
                from[j] =
                    stack_members(applying, views, gathered->n_members, name_there(applying, entry, 0, &match, 0));
            if (from[j] == NULL)
                return false;
        }
        if (!write_entry(applying, entry, &match, from))
            return false;
    }
    return true;
}

static void free_gathered(struct gathered *gathered)
{
    *gathered->link = gathered->next;
    if (gathered->next != NULL)
        gathered->next->link = gathered->link;
    free(gathered->views);
    free(gathered);
}

/* Returns the place of the member's number in a name; -1: none. */
static int member_number(const struct relation_entry *entry, enum direction direction, unsigned which)
{
    const char *member = entry->member[direction], *name;
    size_t length;
    for (unsigned i = 0;
         member != NULL && (name = pattern_number_name(entry->names[direction][which], i, &length)) != NULL; i++)
        if (strlen(member) == length && strncmp(member, name, length) == 0)
            return (int)i;
    return -1;
}

/* Returns the group that a tensor belongs to; NULL if the set has too few tensors for it. */
static struct gathered *find_gathered(struct applying *applying, const struct relation_match *match, size_t n_members)
{
    const struct relation *relation = applying->job->relation;
    enum direction direction = applying->job->direction;
    const struct relation_entry *entry = match->entry;
    struct gathered key = {.group = entry->group[direction], .suffix = match->suffix, .n_members = n_members};
    memcpy(key.numbers, match->numbers, sizeof key.numbers);
    int member = member_number(entry, direction, match->which);
    if (member >= 0)
        key.numbers[member] = 0;
    void *const *found = tfind(&key, &applying->tree, compare_gathered);
    if (found != NULL)
        return *found;
    for (unsigned i = 0; i < relation->n_entries; i++)
        if (is_gathered(applying, &relation->entries[i], key.group))
            key.n_wanted += relation->entries[i].n_names[direction] * n_members;
    applying->n_wanted += key.n_wanted;
    if (applying->n_wanted > applying->job->set->n_tensors)
        return NULL;
    struct gathered *gathered = memory_alloc(sizeof *gathered);
    *gathered = key;
    gathered->views = memory_alloc(key.n_wanted * sizeof *gathered->views);
    memset(gathered->views, 0, key.n_wanted * sizeof *gathered->views);
    gathered->next = applying->open;
    gathered->link = &applying->open;
    if (applying->open != NULL)
        applying->open->link = &gathered->next;
    applying->open = gathered;
    if (tsearch(gathered, &applying->tree, compare_gathered) == NULL)
        memory_exhausted(sizeof *gathered);
    return gathered;
}

static bool gather(struct applying *applying, const struct relation_match *match, const struct view *view,
                   const char *shown)
{
    enum direction direction = applying->job->direction;
    const struct relation_entry *entry = match->entry;
    int number = member_number(entry, direction, match->which);
    uint64_t n_members = 1, member = 0;
    if (number >= 0) {
        n_members = dimensions_get(applying->job->dimensions, entry->member[direction]);
        member = match->numbers[number];
    }
    if (member >= n_members)
        return error_set(applying->error, "tensor '%.200s': index %" PRIu64 " is not one of the %" PRIu64 " %ss of %s",
                         shown, member, n_members, entry->member[direction], applying->job->dimensions_name);
    bool may_be = n_members <= applying->job->set->n_tensors;
    struct gathered *gathered = may_be ? find_gathered(applying, match, n_members) : NULL;
    if (gathered == NULL)
        return error_set(applying->error, "too few tensors for %s (%s: %" PRIu64 ")", applying->job->dimensions_name,
                         entry->member[direction] != NULL ? entry->member[direction] : shown, n_members);
    size_t slot = first_slot(applying, entry, n_members) + match->which * n_members + member;
    if (gathered->views[slot] != NULL)
        return error_set(applying->error, "tensor '%.200s' occurs twice, under different names", shown);
    gathered->views[slot] = view;
    if (++gathered->n_found < gathered->n_wanted)
        return true;
    bool written = write_gathered(applying, gathered, match);
    tdelete(gathered, &applying->tree, compare_gathered);
    free_gathered(gathered);
    return written;
}

/* Reports whether an earlier tensor has the same result, where only the first counts. */
static bool came_before(struct applying *applying, const struct relation_match *match)
{
    if (!match->entry->row->first_counts || applying->job->direction == BACKWARD)
        return false;
    char *name = memory_strdup(name_there(applying, match->entry, 0, match, 0));
    char *const *found = tsearch(name, &applying->written, compare_texts);
    if (found == NULL)
        memory_exhausted(sizeof found);
    bool is_new = *found == name;
    if (!is_new)
        free(name);
    return !is_new;
}

static bool apply_to(struct applying *applying, const struct tensor *tensor, const char *shown)
{
    const struct relation_job *job = applying->job;
    struct relation_match match;
    if (!relation_find(job->relation, job->direction, job->dimensions, job->set, tensor->name, &match))
        return error_set(applying->error, "tensor '%.200s' is unknown to the family %s", shown, job->relation->name);
    const struct relation_entry *entry = match.entry;
    if (entry->row->there == NULL || came_before(applying, &match))
        return true;
    if (match.numbers[0] != UINT64_MAX && match.numbers[0] >= job->dimensions->n_layers)
        return error_set(applying->error, "tensor '%.200s' is beyond the %" PRIu64 " layer%s of %s", shown,
                         job->dimensions->n_layers, job->dimensions->n_layers == 1 ? "" : "s", job->dimensions_name);
    const struct view *view = job->read(job->context, tensor, shown, applying->error);
    if (view == NULL)
        return false;
    if (entry->group[job->direction] != 0)
        return gather(applying, &match, view, shown);
    return write_entry(applying, entry, &match, &view) || error_prefix(applying->error, "tensor '%.200s'", shown);
}

const char *relation_target(const struct relation_job *job, const struct relation_match *match, uint64_t *ret_member)
{
    const struct applying applying = {.job = job};
    int number = member_number(match->entry, job->direction, match->which);
    *ret_member = number >= 0 ? match->numbers[number] : UINT64_MAX;
    return name_there(&applying, match->entry, 0, match, 0);
}

/* Finds the entries that the set has tensors for, and whether an entry has none although its group has some. */
static bool *meet_entries(const struct relation_job *job)
{
    const struct relation *relation = job->relation;
    bool *is_met = memory_alloc(relation->n_entries + 1), *has_group = memory_alloc(relation->n_groups + 1);
    struct relation_match match;
    memset(is_met, 0, relation->n_entries + 1);
    memset(has_group, 0, relation->n_groups + 1);
    for (size_t i = 0; i < job->set->n_tensors; i++)
        if (relation_find(relation, job->direction, job->dimensions, job->set, job->set->tensors[i].name, &match)) {
            is_met[match.entry - relation->entries] = true;
            has_group[match.entry->group[job->direction]] = true;
        }
    *job->is_partial = false;
    for (unsigned i = 0; i < relation->n_entries; i++) {
        unsigned group = relation->entries[i].group[job->direction];
        *job->is_partial |= group != 0 && has_group[group] && !is_met[i];
    }
    free(has_group);
    return is_met;
}

bool relation_apply(const struct relation_job *job, struct error *error)
{
    struct applying applying = {.job = job, .error = error};
    bool applied = true;
    applying.is_met = job->is_partial != NULL ? meet_entries(job) : NULL;
    for (size_t i = 0; i < job->set->n_tensors && applied; i++)
        applied = apply_to(&applying, &job->set->tensors[i], job->shown ? job->shown[i] : job->set->tensors[i].name);
    if (applied && applying.open != NULL)
        applied =
            error_set(error, "layer %" PRIu64 " has only %zu of the %zu tensors that %s puts together",
                      applying.open->numbers[0], applying.open->n_found, applying.open->n_wanted, job->relation->name);
    while (applying.tree != NULL)
        tdelete(*(void **)applying.tree, &applying.tree, compare_gathered);
    for (char *name; applying.written != NULL; free(name)) {
        name = *(char **)applying.written;
        tdelete(name, &applying.written, compare_texts);
    }
    free(applying.is_met);
    while (applying.open != NULL)
        free_gathered(applying.open);
    return applied;
}
