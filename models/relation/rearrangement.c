#include "models/relation/rearrangement.h"

#include "base/checked.h"
#include "base/text.h"
#include "quant/views/block_views.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NO_BRANCH = -1, REST_AXIS = AXES_MAX };

struct job {
    struct arena *arena;
    const struct rearrangement *rearrangement;
    const struct axes *from_axes, *to_axes;
    unsigned n_from, n_to;
    const struct view *const *from;
    uint32_t from_names, to_names;
    struct error *error;

    uint64_t size[AXES_MAX], index[AXES_MAX];
    uint32_t known, limits; /* bit i: axis i */
    unsigned n_rest;
    uint64_t rest[VIEW_MAX_RANK];
    bool is_torn; /* blocks would be taken apart */
};

/* Sizes. */

/* A size that depends on the unknown one: times * unknown + constant. */
struct linear {
    uint64_t times, constant;
};

static bool linear_multiply(struct linear *product, const struct linear *factor)
{
    struct linear result;
    uint64_t other;
    if (product->times != 0 && factor->times != 0)
        return false;
    if (!checked_multiply(product->times, factor->constant, &result.times) ||
        !checked_multiply(product->constant, factor->times, &other) ||
        !checked_multiply(product->constant, factor->constant, &result.constant) ||
        !checked_add(result.times, other, &result.times))
        return false;
    *product = result;
    return true;
}

static bool linear_of_product(const struct job *job, const struct factor *first, struct linear *ret_size);

static bool linear_of_factor(const struct job *job, const struct factor *factor, struct linear *ret_size)
{
    *ret_size = (struct linear){0, 1};
    if (factor->kind == FACTOR_AXIS) {
        bool is_known = (job->known >> factor->number & 1) != 0;
        *ret_size = is_known ? (struct linear){0, job->size[factor->number]} : (struct linear){1, 0};
    } else if (factor->kind == FACTOR_REST) {
        for (unsigned i = 0; i < job->n_rest; i++)
            if (!checked_multiply(ret_size->constant, job->rest[i], &ret_size->constant))
                return false;
    } else if (factor->kind == FACTOR_GROUP) {
        ret_size->constant = 0;
        for (const struct section *section = factor->sections; section != NULL; section = section->next) {
            struct linear size;
            if (!linear_of_product(job, section->first, &size) ||
                !checked_add(ret_size->times, size.times, &ret_size->times) ||
                !checked_add(ret_size->constant, size.constant, &ret_size->constant))
                return false;
        }
    }
    return true;
}

static bool linear_of_product(const struct job *job, const struct factor *first, struct linear *ret_size)
{
    *ret_size = (struct linear){0, 1};
    for (const struct factor *factor = first; factor != NULL; factor = factor->next) {
        struct linear size;
        if (!linear_of_factor(job, factor, &size) || !linear_multiply(ret_size, &size))
            return false;
    }
    return true;
}

/* Returns the size of a factor whose sizes are all known and fit. */
static uint64_t factor_size(const struct job *job, const struct factor *factor)
{
    struct linear size = {0, 0};
    return linear_of_factor(job, factor, &size) ? size.constant : 0;
}

static uint64_t product_size(const struct job *job, const struct factor *first)
{
    struct linear size = {0, 0};
    return linear_of_product(job, first, &size) ? size.constant : 0;
}

/* Writes the known sizes of the tensor's names: "head 2, half 2". */
static const char *sizes_text(const struct job *job, const struct axes *axes, char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < job->rearrangement->n_names && used < capacity; i++)
        if ((axes->names & job->known) >> i & 1)
            used += (size_t)snprintf(out + used, capacity - used, "%s%.40s %" PRIu64, used > 0 ? ", " : " where ",
                                     job->rearrangement->names[i], job->size[i]);
    return out;
}

static bool misfit(const struct job *job, const struct view *view, const struct axes *axes)
{
    char shape[128], sizes[400];
    return error_set(job->error, "shape %s does not fit '%.200s'%s",
                     shape_text(view->shape, view->rank, shape, sizeof shape), axes->text,
                     sizes_text(job, axes, sizes, sizeof sizes));
}

/* Sizes sections with a limit: as long as there is room. */
static void apply_limits(struct job *job, const struct factor *dimension, uint64_t size)
{
    if (dimension->kind != FACTOR_GROUP)
        return;
    for (const struct section *section = dimension->sections; section != NULL; section = section->next) {
        const struct factor *only = section->first;
        bool is_limit = only == section->last && only->kind == FACTOR_AXIS && (job->limits >> only->number & 1) != 0;
        if (is_limit && job->size[only->number] > size)
            job->size[only->number] = size;
    }
}

static uint32_t names_of_product(const struct factor *first);

static uint32_t names_of_factor(const struct factor *factor)
{
    uint32_t names = factor->kind == FACTOR_AXIS ? UINT32_C(1) << factor->number : 0;
    for (const struct section *section = factor->sections; section != NULL; section = section->next)
        names |= names_of_product(section->first);
    return names;
}

static uint32_t names_of_product(const struct factor *first)
{
    uint32_t names = 0;
    for (const struct factor *factor = first; factor != NULL; factor = factor->next)
        names |= names_of_factor(factor);
    return names;
}

/* Works out unknown sizes from one dimension; returns false if the dimension contradicts the sizes. */
static bool solve_dimension(struct job *job, const struct factor *dimension, uint64_t size)
{
    struct linear sum;
    uint32_t unknown = names_of_factor(dimension) & ~job->known;
    apply_limits(job, dimension, size);
    if (!linear_of_factor(job, dimension, &sum))
        return unknown != 0; /* two unknown sizes: another dimension may give one */
    if (sum.times == 0)
        return sum.constant == size;
    if (sum.constant > size || (size - sum.constant) % sum.times != 0)
        return false;
    for (unsigned i = 0; i < job->rearrangement->n_names; i++)
        if (unknown >> i & 1)
            job->size[i] = (size - sum.constant) / sum.times;
    job->known |= unknown;
    return true;
}

static bool solve_tensor(struct job *job, const struct axes *axes, const struct view *view)
{
    unsigned axis = 0;
    if (axes->has_rest ? view->rank + 1 < axes->n_dimensions : view->rank != axes->n_dimensions)
        return misfit(job, view, axes);
    for (const struct factor *dimension = axes->first; dimension != NULL; dimension = dimension->next) {
        if (dimension->kind == FACTOR_REST)
            axis += view->rank + 1 - axes->n_dimensions;
        else if (!solve_dimension(job, dimension, view->shape[axis++]))
            return misfit(job, view, axes);
    }
    return true;
}

/* Finds the open dimensions, which all tensors share. */
static bool find_rest(struct job *job)
{
    for (unsigned i = 0; i < job->n_from && job->from_axes[0].has_rest; i++) {
        const struct axes *axes = &job->from_axes[i];
        const struct view *view = job->from[i];
        unsigned first = 0;
        if (view->rank + 1 < axes->n_dimensions)
            return misfit(job, view, axes);
        unsigned n_rest = view->rank + 1 - axes->n_dimensions;
        for (const struct factor *dimension = axes->first; dimension->kind != FACTOR_REST; dimension = dimension->next)
            first++;
        if (i > 0 && (n_rest != job->n_rest || memcmp(job->rest, view->shape + first, n_rest * sizeof *job->rest) != 0))
            return misfit(job, view, axes);
        job->n_rest = n_rest;
        memcpy(job->rest, view->shape + first, n_rest * sizeof *job->rest);
    }
    return true;
}

/* Empties the result's sections of unknown size. */
static void empty_sections(struct job *job, const struct factor *first)
{
    for (const struct factor *factor = first; factor != NULL; factor = factor->next)
        for (const struct section *section = factor->sections; section != NULL; section = section->next) {
            const struct factor *only = section->first;
            bool is_name = only == section->last && only->kind == FACTOR_AXIS && factor->n_sections > 1;
            if (is_name && (job->known >> only->number & 1) == 0) {
                job->known |= UINT32_C(1) << only->number;
                job->size[only->number] = 0;
            }
            empty_sections(job, section->first);
        }
}

static bool check_known(const struct job *job, uint32_t names)
{
    for (unsigned i = 0; i < job->rearrangement->n_names; i++)
        if ((names & ~job->known) >> i & 1)
            return error_set(job->error, "'%.200s' needs the size of %.40s, which is unknown", job->rearrangement->text,
                             job->rearrangement->names[i]);
    return true;
}

static bool solve(struct job *job)
{
    if (!find_rest(job))
        return false;
    for (uint32_t before = job->known + 1; before != job->known;) {
        before = job->known;
        for (unsigned i = 0; i < job->n_from; i++)
            if (!solve_tensor(job, &job->from_axes[i], job->from[i]))
                return false;
    }
    if (!check_known(job, job->from_names))
        return false;
    for (unsigned i = 0; i < job->n_to; i++)
        empty_sections(job, job->to_axes[i].first);
    return check_known(job, job->to_names);
}

static void take_sizes(struct job *job, const struct axis_sizes *sizes)
{
    for (size_t i = 0; i < sizes->n_sizes; i++) {
        int axis = rearrangement_axis(job->rearrangement, sizes->sizes[i].name);
        if (axis < 0)
            continue;
        job->known |= UINT32_C(1) << axis;
        job->size[axis] = sizes->sizes[i].size;
        job->index[axis] = sizes->sizes[i].index;
        if (sizes->sizes[i].is_limit)
            job->limits |= UINT32_C(1) << axis;
    }
}

/* Terms: the part of a tensor with one section chosen in every group, a box with an axis for each name. */

struct leaf {
    unsigned axis; /* REST_AXIS + i: an open dimension */
    uint64_t size, stride;
};

struct term {
    uint32_t names;
    uint64_t offset;
    unsigned n_leaves; /* the last of `leaves`, without those of one element */
    struct leaf leaves[VIEW_MAX_RANK];
    bool has_room;
};

struct choices {
    int section[AXES_MAX_GROUPS]; /* by number of the group; NO_BRANCH: open */
};

static void add_leaf(struct term *term, unsigned axis, uint64_t size, uint64_t *stride)
{
    if (size != 1) {
        term->has_room &= term->n_leaves < VIEW_MAX_RANK;
        if (term->has_room)
            term->leaves[VIEW_MAX_RANK - ++term->n_leaves] = (struct leaf){axis, size, *stride};
    }
    *stride *= size;
}

static int chosen_section(const struct choices *choices, const struct factor *group)
{
    return group->n_sections == 1 ? 0 : choices->section[group->number];
}

/* Walks over factors from the last to the first, `stride` elements apart. Returns an open group; NULL: none. */
static const struct factor *trace(const struct job *job, const struct factor *last, const struct choices *choices,
                                  uint64_t stride, struct term *term)
{
    const struct factor *open = NULL;
    for (const struct factor *factor = last; factor != NULL && open == NULL; factor = factor->previous) {
        if (factor->kind == FACTOR_AXIS) {
            term->names |= UINT32_C(1) << factor->number;
            add_leaf(term, factor->number, job->size[factor->number], &stride);
        } else if (factor->kind == FACTOR_REST) {
            for (unsigned i = job->n_rest; i-- > 0;)
                add_leaf(term, REST_AXIS + i, job->rest[i], &stride);
        } else if (factor->kind == FACTOR_GROUP) {
            const struct section *section = factor->sections;
            int chosen = chosen_section(choices, factor);
            if (chosen == NO_BRANCH)
                return factor;
            for (int i = 0; i < chosen; i++, section = section->next)
                term->offset += product_size(job, section->first) * stride;
            open = trace(job, section->last, choices, stride, term);
            stride *= factor_size(job, factor);
        }
    }
    return open;
}

static const struct factor *trace_tensor(const struct job *job, const struct axes *axes, const struct choices *choices,
                                         struct term *term)
{
    *term = (struct term){.has_room = true};
    return trace(job, axes->last, choices, 1, term);
}

/* Finds the term of a tensor with exactly the names `wanted`, of the names on both sides. */
static bool find_in_tensor(const struct job *job, const struct axes *axes, struct choices *choices, uint32_t wanted,
                           struct term *ret_term)
{
    const struct factor *open = trace_tensor(job, axes, choices, ret_term);
    if (open == NULL)
        return (ret_term->names & job->from_names & job->to_names) == wanted;
    bool found = false;
    for (unsigned i = 0; i < open->n_sections && !found; i++) {
        choices->section[open->number] = (int)i;
        found = find_in_tensor(job, axes, choices, wanted, ret_term);
    }
    choices->section[open->number] = NO_BRANCH;
    return found;
}

static struct choices no_choices(void)
{
    struct choices choices;
    for (size_t i = 0; i < AXES_MAX_GROUPS; i++)
        choices.section[i] = NO_BRANCH;
    return choices;
}

static const struct view *find_source(const struct job *job, uint32_t wanted, struct term *ret_term)
{
    for (unsigned i = 0; i < job->n_from; i++) {
        struct choices choices = no_choices();
        if (find_in_tensor(job, &job->from_axes[i], &choices, wanted, ret_term))
            return job->from[i];
    }
    return NULL;
}

static uint64_t stride_in(const struct term *term, unsigned axis)
{
    for (unsigned i = VIEW_MAX_RANK - term->n_leaves; i < VIEW_MAX_RANK; i++)
        if (term->leaves[i].axis == axis)
            return term->leaves[i].stride;
    return 0;
}

/* Adds the offsets of the indices taken on axes that the result lacks. */
static bool add_indices(const struct job *job, struct term *term)
{
    for (unsigned i = VIEW_MAX_RANK - term->n_leaves; i < VIEW_MAX_RANK; i++) {
        const struct leaf *leaf = &term->leaves[i];
        if (leaf->axis >= REST_AXIS || (job->to_names >> leaf->axis & 1) != 0)
            continue;
        if (job->index[leaf->axis] >= leaf->size)
            return error_set(job->error, "part %" PRIu64 " of %.40s does not exist: it has %" PRIu64 " parts",
                             job->index[leaf->axis], job->rearrangement->names[leaf->axis], leaf->size);
        term->offset += job->index[leaf->axis] * leaf->stride;
    }
    return true;
}

static bool is_whole(const struct view *view, uint64_t offset, unsigned n, const uint64_t *shape,
                     const uint64_t *strides)
{
    uint64_t size = 1;
    for (unsigned i = n; i-- > 0; size *= shape[i])
        if (strides[i] != size)
            return false;
    return offset == 0 && size == view->n_elements;
}

static const struct view *zeros(struct job *job, uint64_t n_elements)
{
    static const unsigned char zero[512];
    const struct dtype *dtype = job->from[0]->dtype;
    const uint64_t one = dtype->block_elements, none = 0;
    if (dtype->block_bytes > sizeof zero || n_elements % dtype->block_elements != 0) {
        job->is_torn = true;
        return NULL;
    }
    return view_strided(job->arena, view_literal(job->arena, dtype, 1, &one, zero), 1, &n_elements, 0, &none);
}

/* Reports whether a box of the view consists of whole blocks, consecutive along the last axis. */
static bool is_whole_blocks(const struct view *view, uint64_t offset, unsigned n, const uint64_t *shape,
                            const uint64_t *strides)
{
    uint64_t block = view->dtype->block_elements;
    if (block == 1)
        return true;
    if (n == 0 || strides[n - 1] != 1 || shape[n - 1] % block != 0 || offset % block != 0)
        return false;
    for (unsigned i = 0; i + 1 < n; i++)
        if (strides[i] % block != 0)
            return false;
    return true;
}

static const struct view *box_view(struct job *job, const struct view *view, uint64_t offset, unsigned n,
                                   const uint64_t *shape, uint64_t *strides)
{
    uint64_t block = view->dtype->block_elements;
    if (is_whole(view, offset, n, shape, strides))
        return view;
    if (!is_whole_blocks(view, offset, n, shape, strides)) {
        job->is_torn = true;
        return NULL;
    }
    for (unsigned i = 0; i + 1 < n; i++)
        strides[i] /= block;
    return view_strided(job->arena, view, n, shape, offset / block, strides);
}

/* Returns the elements of one term of the result. */
static const struct view *term_view(struct job *job, const struct term *to)
{
    uint64_t shape[VIEW_MAX_RANK], strides[VIEW_MAX_RANK], n_elements = 1;
    struct term source = {.has_room = true};
    const struct view *view = find_source(job, to->names & job->from_names & job->to_names, &source);
    unsigned n = 0;
    if (!to->has_room || !source.has_room) {
        error_set(job->error, "'%.200s' has more than %d axes", job->rearrangement->text, VIEW_MAX_RANK);
        return NULL;
    }
    if (view != NULL && !add_indices(job, &source))
        return NULL;
    for (unsigned i = VIEW_MAX_RANK - to->n_leaves; i < VIEW_MAX_RANK; i++, n++) {
        shape[n] = to->leaves[i].size;
        strides[n] = stride_in(&source, to->leaves[i].axis);
        n_elements *= shape[n];
    }
    return view != NULL ? box_view(job, view, source.offset, n, shape, strides) : zeros(job, n_elements);
}

/* Making the result: makes the sections of an open group one by one and joins them. */

/* Multiplies *stride by the elements after the group in the box that the choices leave. Reports whether it met the
 * group. */
static bool elements_after(const struct job *job, const struct factor *last, const struct choices *choices,
                           const struct factor *group, uint64_t *stride)
{
    for (const struct factor *factor = last; factor != NULL; factor = factor->previous) {
        if (factor == group)
            return true;
        int chosen = factor->kind == FACTOR_GROUP ? chosen_section(choices, factor) : NO_BRANCH;
        if (chosen == NO_BRANCH) {
            *stride *= factor_size(job, factor);
            continue;
        }
        const struct section *section = factor->sections;
        while (chosen-- > 0)
            section = section->next;
        if (elements_after(job, section->last, choices, group, stride))
            return true;
    }
    return false;
}

static const struct view *make(struct job *job, const struct axes *axes, struct choices *choices);

static const struct view *make_sections(struct job *job, const struct axes *axes, struct choices *choices,
                                        const struct factor *group)
{
    const struct view *parts[AXES_MAX_SECTIONS];
    unsigned n_parts = 0;
    uint64_t after = 1;
    elements_after(job, axes->last, choices, group, &after);
    const struct section *section = group->sections;
    for (unsigned i = 0; i < group->n_sections; i++, section = section->next) {
        uint64_t size = product_size(job, section->first);
        if (size == 0)
            continue;
        choices->section[group->number] = (int)i;
        const struct view *part = make(job, axes, choices);
        if (part == NULL)
            return NULL;
        const uint64_t shape[] = {part->n_elements / size / after, size, after};
        parts[n_parts++] = view_reshape(job->arena, part, 3, shape);
    }
    choices->section[group->number] = NO_BRANCH;
    return n_parts == 1 ? parts[0] : view_concatenate(job->arena, parts, n_parts, 1);
}

/* Makes the part of a tensor that the choices leave, in any shape. */
static const struct view *make(struct job *job, const struct axes *axes, struct choices *choices)
{
    struct term term;
    const struct factor *open = trace_tensor(job, axes, choices, &term);
    return open == NULL ? term_view(job, &term) : make_sections(job, axes, choices, open);
}

static bool has_shape(const struct view *view, unsigned rank, const uint64_t *shape)
{
    return view->rank == rank && memcmp(view->shape, shape, rank * sizeof *shape) == 0;
}

static bool result_shape(const struct job *job, const struct axes *axes, unsigned *ret_rank,
                         uint64_t shape[VIEW_MAX_RANK], uint64_t *ret_elements)
{
    unsigned rank = axes->n_dimensions + (axes->has_rest ? job->n_rest - 1 : 0), axis = 0;
    if (rank > VIEW_MAX_RANK)
        return error_set(job->error, "'%.200s' has more than %d dimensions", axes->text, VIEW_MAX_RANK);
    *ret_elements = 1;
    for (const struct factor *dimension = axes->first; dimension != NULL; dimension = dimension->next) {
        struct linear size;
        if (!linear_of_factor(job, dimension, &size) || !checked_multiply(*ret_elements, size.constant, ret_elements))
            return error_set(job->error, "the result of '%.200s' is too large", axes->text);
        if (dimension->kind != FACTOR_REST)
            shape[axis++] = size.constant;
        for (unsigned i = 0; i < job->n_rest && dimension->kind == FACTOR_REST; i++)
            shape[axis++] = job->rest[i];
    }
    *ret_rank = rank;
    return true;
}

static const struct view *make_tensor(struct job *job, const struct axes *axes)
{
    uint64_t shape[VIEW_MAX_RANK], n_elements = 0;
    static const uint64_t strides[VIEW_MAX_RANK];
    struct choices choices = no_choices();
    unsigned rank = 0;
    if (!result_shape(job, axes, &rank, shape, &n_elements))
        return NULL;
    if (n_elements == 0)
        return view_strided(job->arena, job->from[0], rank, shape, 0, strides);
    const struct view *view = make(job, axes, &choices);
    return view == NULL || has_shape(view, rank, shape) ? view : view_reshape(job->arena, view, rank, shape);
}

static bool make_tensors(struct job *job, const struct view **to)
{
    for (unsigned i = 0; i < job->n_to; i++) {
        to[i] = make_tensor(job, &job->to_axes[i]);
        if (to[i] == NULL)
            return false;
    }
    return true;
}

static struct job make_job(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                           const struct view *const *from, struct error *error)
{
    enum direction other = direction == FORWARD ? BACKWARD : FORWARD;
    return (struct job){
        .arena = arena,
        .rearrangement = rearrangement,
        .from_axes = rearrangement->sides[direction],
        .to_axes = rearrangement->sides[other],
        .n_from = rearrangement->n_tensors[direction],
        .n_to = rearrangement->n_tensors[other],
        .from = from,
        .from_names = rearrangement->on_side[direction],
        .to_names = rearrangement->on_side[other],
        .error = error,
    };
}

/* Replaces a permuted view of blocks by the blocks, with their dimensions in the notation's order. */
struct seen_through {
    const struct view *from;
    struct axes axes;
    struct factor factors[VIEW_MAX_RANK];
};

static void see_through(struct job *job, struct seen_through *seen)
{
    const unsigned *order;
    const struct view *blocks = permuted_blocks_of(job->from[0], &order);
    const struct axes *axes = &job->from_axes[0];
    unsigned rank = job->from[0]->rank, i = 0;
    if (blocks == NULL || axes->has_rest || axes->n_dimensions != rank)
        return;
    seen->axes = *axes;
    for (const struct factor *dimension = axes->first; dimension != NULL; dimension = dimension->next)
        seen->factors[order[i++]] = *dimension;
    for (i = 0; i < rank; i++) {
        seen->factors[i].previous = i > 0 ? &seen->factors[i - 1] : NULL;
        seen->factors[i].next = i + 1 < rank ? &seen->factors[i + 1] : NULL;
    }
    seen->axes.first = &seen->factors[0];
    seen->axes.last = &seen->factors[rank - 1];
    seen->from = blocks;
    job->from = &seen->from;
    job->from_axes = &seen->axes;
}

static bool convert_all(struct job *job, const struct view **converted)
{
    for (unsigned i = 0; i < job->n_from; i++) {
        const struct view *values = values_of_blocks(job->from[i]);
        const struct dtype *dtype = values->dtype;
        if (dtype_kernels(dtype).decode == NULL)
            return error_set(job->error, "%s cannot be rearranged as '%.200s'", dtype->name, job->rearrangement->text);
        converted[i] = view_convert(job->arena, values, &f32_dtype);
    }
    job->from = converted;
    return true;
}

static bool same_dtypes(const struct job *job)
{
    for (unsigned i = 1; i < job->n_from; i++)
        if (job->from[i]->dtype != job->from[0]->dtype)
            return false;
    return true;
}

/* Moves the groups of NVFP4 if blocks would be taken apart. */
static bool move_groups(struct job *job, const struct view **to)
{
    const struct view *const *blocks = job->from;
    if (job->n_from != 1 || strcmp(blocks[0]->dtype->name, "NVFP4") != 0)
        return false;
    const struct view *groups = view_nvfp4_groups(job->arena, blocks[0]);
    job->from = &groups;
    bool made = make_tensors(job, to);
    for (unsigned i = 0; made && i < job->n_to; i++)
        made = (to[i] = view_nvfp4_of_groups(job->arena, to[i])) != NULL;
    job->from = blocks;
    return made;
}

bool rearrangement_apply(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                         const struct axis_sizes *sizes, const struct view *const *from, const struct view **to,
                         struct error *error)
{
    struct job job = make_job(arena, rearrangement, direction, from, error);
    const struct view *converted[AXES_MAX_TENSORS];
    if (rearrangement->is_identity) {
        memcpy(to, from, job.n_from * sizeof *to);
        return true;
    }
    struct seen_through seen;
    if (job.n_from == 1)
        see_through(&job, &seen);
    take_sizes(&job, sizes);
    if (!solve(&job) || (!same_dtypes(&job) && !convert_all(&job, converted)))
        return false;
    if (make_tensors(&job, to))
        return true;
    if (!job.is_torn)
        return false;
    return move_groups(&job, to) || (convert_all(&job, converted) && make_tensors(&job, to));
}

bool rearrangement_size(const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *const *from, const char *name,
                        uint64_t *ret_size, struct error *error)
{
    struct job job = make_job(NULL, rearrangement, direction, from, error);
    int axis = rearrangement_axis(rearrangement, name);
    if (axis < 0 || (job.from_names >> axis & 1) == 0)
        return error_set(error, "'%.200s' has no %.40s", rearrangement->text, name);
    take_sizes(&job, sizes);
    if (!solve(&job))
        return false;
    *ret_size = job.size[axis];
    return true;
}
