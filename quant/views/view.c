#include "quant/views/view.h"

#include "base/little_endian.h"
#include "base/sort.h"
#include "quant/views/dependencies.h"
#include "quant/views/sub_byte.h"

#include <assert.h>
#include <string.h>

bool view_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    assert(first <= view_units(view) && count <= view_units(view) - first);
    return count == 0 || view->op->read(view, first, count, out, error);
}

bool view_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    if (view->op->read_runs != NULL && runs->count > 1)
        return view->op->read_runs(view, runs, out, error);
    unsigned char *to = out;
    for (uint64_t i = 0; i < runs->count; i++, to += runs->length * view->dtype->block_bytes)
        if (!view_read(view, runs->first + i * runs->stride, runs->length, to, error))
            return false;
    return true;
}

uint64_t view_stored(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    return view->op->stored != NULL && first < view_units(view) ? view->op->stored(view, first, ret_extent) : 0;
}

/* Adds the stored units; the others are computed from nothing that is stored. */
static void add_stored(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    struct extent extent;
    for (uint64_t n; count > 0 && (n = view_stored(view, first, &extent)) > 0; first += n, count -= n) {
        n = n < count ? n : count;
        dependencies_add(to, &extent, n * view->dtype->block_bytes);
    }
}

void view_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    assert(first <= view_units(view) && count <= view_units(view) - first);
    if (count > 0)
        (view->op->depends != NULL ? view->op->depends : add_stored)(view, first, count, to);
}

void view_init_shared(struct view *view, const struct view_op *op, const struct dtype *dtype, unsigned rank,
                      const uint64_t *shape)
{
    uint64_t n_elements = 1;
    for (unsigned i = 0; i < rank; i++)
        n_elements *= shape[i];
    assert(rank <= VIEW_MAX_RANK && (n_elements % dtype->block_elements == 0 || dtype_is_sub_byte(dtype)));
    *view = (struct view){
        .op = op,
        .dtype = dtype,
        .shape = shape,
        .n_elements = n_elements,
        .rank = rank,
    };
}

void view_init(struct view *view, struct arena *arena, const struct view_op *op, const struct dtype *dtype,
               unsigned rank, const uint64_t *shape)
{
    view_init_shared(view, op, dtype, rank, arena_copy(arena, shape, rank * sizeof *shape));
}

/* Reshape: the same units. */

struct reshaped {
    struct view view;
    const struct view *inner;
};

static bool reshaped_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return view_read(((const struct reshaped *)view)->inner, first, count, out, error);
}

static uint64_t reshaped_stored(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    return view_stored(((const struct reshaped *)view)->inner, first, ret_extent);
}

static bool reshaped_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    return view_read_runs(((const struct reshaped *)view)->inner, runs, out, error);
}

static void reshaped_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct reshaped *)view)->inner, first, count, to);
}

static const struct view_op reshaped_op = {.name = "reshape",
                                           .read = reshaped_read,
                                           .depends = reshaped_depends,
                                           .stored = reshaped_stored,
                                           .read_runs = reshaped_read_runs};

const struct view *view_reshape(struct arena *arena, const struct view *view, unsigned rank, const uint64_t *shape)
{
    struct reshaped *reshaped = arena_alloc(arena, sizeof *reshaped);
    view_init(&reshaped->view, arena, &reshaped_op, view->dtype, rank, shape);
    assert(reshaped->view.n_elements == view->n_elements);
    reshaped->inner = view;
    reshaped->view.scattered = view->scattered;
    return &reshaped->view;
}

/* Strided: output units gathered from anywhere in the inner view. */

enum {
    SPAN_BYTES = 64 * 1024,           /* read at once around the wanted units, on the stack */
    READ_WORTH = 2048,                /* bytes read in the time of one more read call */
    RUN_WORTH = 256,                  /* and of one more run of a call */
    WIDEST_READ_GAP = 2 * READ_WORTH, /* between two runs that one read covers */
};

struct axis {
    uint64_t size, from, to; /* units between neighbours in the inner view, and in the output */
};

struct strided {
    struct view view;
    const struct view *inner;
    uint64_t offset;
    unsigned n_axes; /* after merging neighbours that make one run, and dropping axes of size 1 */
    struct axis *axes;
};

struct box {
    unsigned n_axes;
    struct axis axes[VIEW_MAX_RANK];
    uint64_t from; /* the inner unit of its first element */
    unsigned char *to;
};

static uint64_t box_span(const struct box *box)
{
    uint64_t span = 1;
    for (unsigned i = 0; i < box->n_axes; i++)
        span += (box->axes[i].size - 1) * box->axes[i].from;
    return span;
}

static unsigned widest_axis(const struct box *box)
{
    unsigned widest = 0;
    for (unsigned i = 1; i < box->n_axes; i++)
        if (box->axes[i].from > box->axes[widest].from)
            widest = i;
    return widest;
}

static void copy_axis(const unsigned char *from, unsigned char *to, const struct axis *axis, size_t unit)
{
    uint64_t from_step = axis->from * unit, to_step = axis->to * unit;
    if (axis->from == 1 && axis->to == 1) {
        memcpy(to, from, axis->size * unit);
        return;
    }
#define COPY(bytes)                                                                                                    \
    case bytes:                                                                                                        \
        for (uint64_t i = 0; i < axis->size; i++)                                                                      \
            memcpy(to + i * to_step, from + i * from_step, bytes);                                                     \
        break
    switch (unit) {
        COPY(1);
        COPY(2);
        COPY(4);
        COPY(8);
    default:
        for (uint64_t i = 0; i < axis->size; i++)
            memcpy(to + i * to_step, from + i * from_step, unit);
    }
#undef COPY
}

static void copy_box(const unsigned char *from, unsigned char *to, const struct axis *axes, unsigned n_axes,
                     size_t unit)
{
    if (n_axes == 0)
        memcpy(to, from, unit);
    else if (n_axes == 1)
        copy_axis(from, to, axes, unit);
    else
        for (uint64_t i = 0; i < axes->size; i++)
            copy_box(from + i * axes->from * unit, to + i * axes->to * unit, axes + 1, n_axes - 1, unit);
}

static bool read_box(const struct view *inner, const struct box *box, struct error *error);

/* Reads the box in parts of `step` indices along one axis. */
static bool read_box_parts(const struct view *inner, const struct box *box, unsigned axis, uint64_t step,
                           struct error *error)
{
    const struct axis *split = &box->axes[axis];
    for (uint64_t i = 0; i < split->size; i += step) {
        struct box part = *box;
        part.from += i * split->from;
        part.to += i * split->to * inner->dtype->block_bytes;
        part.axes[axis].size = split->size - i < step ? split->size - i : step;
        if (part.axes[axis].size == 1) {
            part.n_axes--;
            memmove(&part.axes[axis], &part.axes[axis + 1], (part.n_axes - axis) * sizeof part.axes[0]);
        }
        if (!read_box(inner, &part, error))
            return false;
    }
    return true;
}

/* Reads the box by runs of `rest` units, each covering all units needed at one index of the axis, as many at once as
 * fit. */
static bool read_box_runs(const struct view *inner, const struct box *box, unsigned axis, uint64_t rest,
                          struct error *error)
{
    unsigned char around[SPAN_BYTES];
    size_t unit = inner->dtype->block_bytes;
    const struct axis *split = &box->axes[axis];
    struct box part = *box;
    part.axes[axis].from = rest;
    uint64_t step = SPAN_BYTES / (rest * unit);
    for (uint64_t i = 0; i < split->size; i += step) {
        uint64_t count = split->size - i < step ? split->size - i : step;
        const struct runs runs = {box->from + i * split->from, count, rest, split->from};
        if (!view_read_runs(inner, &runs, around, error))
            return false;
        part.axes[axis].size = count;
        copy_box(around, box->to + i * split->to * unit, part.axes, part.n_axes, unit);
    }
    return true;
}

static bool read_box(const struct view *inner, const struct box *box, struct error *error)
{
    size_t unit = inner->dtype->block_bytes;
    if (box->n_axes == 0)
        return view_read(inner, box->from, 1, box->to, error);
    if (box->n_axes == 1 && box->axes[0].from == 1 && box->axes[0].to == 1)
        return view_read(inner, box->from, box->axes[0].size, box->to, error);

    unsigned widest = widest_axis(box);
    const struct axis *axis = &box->axes[widest];
    uint64_t span = box_span(box), rest = span - (axis->size - 1) * axis->from;
    uint64_t span_bytes = span * unit, rest_bytes = rest * unit;
    bool gathers = inner->op->read_runs != NULL && 2 * rest_bytes <= SPAN_BYTES;
    if (gathers && axis->size > 1 && span_bytes > axis->size * (rest_bytes + RUN_WORTH))
        return read_box_runs(inner, box, widest, rest, error);
    if (span_bytes > axis->size * (rest_bytes + READ_WORTH))
        return read_box_parts(inner, box, widest, 1, error);
    if (span_bytes > SPAN_BYTES) {
        uint64_t step =
            rest_bytes < SPAN_BYTES && axis->from != 0 ? (SPAN_BYTES - rest_bytes) / (axis->from * unit) + 1 : 1;
        return read_box_parts(inner, box, widest, step < axis->size ? step : (axis->size + 1) / 2, error);
    }
    unsigned char around[SPAN_BYTES];
    if (!view_read(inner, box->from, span, around, error))
        return false;
    copy_box(around, box->to, box->axes, box->n_axes, unit);
    return true;
}

/* Finds the largest box of whole rows at the front of `count` units from `first` on. Returns its number of units. */
static uint64_t front_box(const struct strided *strided, uint64_t first, uint64_t count, struct box *ret_box)
{
    unsigned axis = 0;
    ret_box->from = strided->offset;
    for (; axis < strided->n_axes && (first % strided->axes[axis].to != 0 || count < strided->axes[axis].to); axis++) {
        ret_box->from += first / strided->axes[axis].to * strided->axes[axis].from;
        first %= strided->axes[axis].to;
    }
    ret_box->n_axes = strided->n_axes - axis;
    if (ret_box->n_axes == 0)
        return 1;
    const struct axis *outer = &strided->axes[axis];
    uint64_t index = first / outer->to, left = outer->size - index;
    memcpy(ret_box->axes, outer, ret_box->n_axes * sizeof *outer);
    ret_box->from += index * outer->from;
    ret_box->axes[0].size = count / outer->to < left ? count / outer->to : left;
    return ret_box->axes[0].size * outer->to;
}

static bool strided_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct strided *strided = (const struct strided *)view;
    struct box box = {.to = out};
    for (uint64_t n; count > 0; first += n, count -= n) {
        n = front_box(strided, first, count, &box);
        if (!read_box(strided->inner, &box, error))
            return false;
        box.to += n * view->dtype->block_bytes;
    }
    return true;
}

/* Adds a box run by run along its widest axis, or its whole span if the gaps between runs are small. */
static void add_box(const struct view *inner, const struct box *box, struct dependencies *to)
{
    uint64_t span = box_span(box);
    unsigned widest = widest_axis(box);
    const struct axis *axis = &box->axes[widest];
    uint64_t rest = box->n_axes > 0 ? span - (axis->size - 1) * axis->from : span;
    uint64_t gap = box->n_axes > 0 && axis->from > rest ? (axis->from - rest) * inner->dtype->block_bytes : 0;
    if (gap <= (inner->scattered ? WIDEST_READ_GAP : DEPENDENCY_GAP)) {
        view_depends(inner, box->from, span, to);
        return;
    }
    struct box part = {.n_axes = box->n_axes - 1, .from = box->from};
    memcpy(part.axes, box->axes, widest * sizeof *axis);
    memcpy(part.axes + widest, axis + 1, (part.n_axes - widest) * sizeof *axis);
    for (uint64_t i = 0; i < axis->size; i++, part.from += axis->from)
        add_box(inner, &part, to);
}

static void strided_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct strided *strided = (const struct strided *)view;
    struct box box;
    for (uint64_t n; count > 0; first += n, count -= n) {
        n = front_box(strided, first, count, &box);
        add_box(strided->inner, &box, to);
    }
}

static uint64_t strided_stored(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    const struct strided *strided = (const struct strided *)view;
    uint64_t from = strided->offset, run = 1;
    for (unsigned i = 0; i < strided->n_axes; i++) {
        const struct axis *axis = &strided->axes[i];
        uint64_t index = first / axis->to;
        from += index * axis->from;
        first %= axis->to;
        if (i + 1 == strided->n_axes && axis->from == 1)
            run = axis->size - index;
    }
    uint64_t stored = view_stored(strided->inner, from, ret_extent);
    return stored < run ? stored : run;
}

static const struct view_op strided_op = {
    .name = "strided", .read = strided_read, .depends = strided_depends, .stored = strided_stored};

/* Drops axes of one unit and merges neighbours that make one run. */
static void simplify_axes(struct strided *strided)
{
    unsigned kept = 0;
    struct axis *axes = strided->axes;
    for (unsigned i = 0; i < strided->n_axes; i++) {
        if (axes[i].size == 1)
            continue;
        struct axis *last = kept > 0 ? &axes[kept - 1] : NULL;
        if (last != NULL && last->from == axes[i].size * axes[i].from)
            *last = (struct axis){last->size * axes[i].size, axes[i].from, axes[i].to};
        else
            axes[kept++] = axes[i];
    }
    strided->n_axes = kept;
}

const struct view *view_strided(struct arena *arena, const struct view *view, unsigned rank, const uint64_t *shape,
                                uint64_t offset, const uint64_t *strides)
{
    struct strided *strided = arena_alloc(arena, sizeof *strided);
    view_init(&strided->view, arena, &strided_op, view->dtype, rank, shape);
    strided->inner = view;
    strided->offset = offset;
    strided->n_axes = rank;
    strided->axes = arena_array(arena, rank + 1, sizeof *strided->axes);
    uint64_t to = 1, furthest = offset;
    for (unsigned i = rank; i-- > 0;) {
        uint64_t size = i + 1 == rank ? shape[i] / view->dtype->block_elements : shape[i];
        strided->axes[i] = (struct axis){size, strides[i], to};
        to *= size;
        furthest += size ? (size - 1) * strides[i] : 0;
    }
    assert(strided->view.n_elements == 0 || furthest < view_units(view));
    if (strided->view.n_elements != 0)
        simplify_axes(strided);
    strided->view.scattered = view->scattered || (strided->n_axes > 0 && strided->axes[strided->n_axes - 1].from != 1);
    return &strided->view;
}

/* Sets row-major strides, in units, of the view's own shape. */
static void own_strides(const struct view *view, uint64_t *strides)
{
    uint64_t stride = 1;
    for (unsigned i = view->rank; i-- > 0;) {
        strides[i] = stride;
        stride *= i + 1 == view->rank ? view->shape[i] / view->dtype->block_elements : view->shape[i];
    }
}

const struct view *view_permute(struct arena *arena, const struct view *view, const unsigned *order)
{
    uint64_t strides[VIEW_MAX_RANK], shape[VIEW_MAX_RANK], permuted[VIEW_MAX_RANK];
    own_strides(view, strides);
    for (unsigned i = 0; i < view->rank; i++) {
        shape[i] = view->shape[order[i]];
        permuted[i] = strides[order[i]];
    }
    assert(view->dtype->block_elements == 1 || order[view->rank - 1] == view->rank - 1);
    return view_strided(arena, view, view->rank, shape, 0, permuted);
}

const struct view *view_transpose(struct arena *arena, const struct view *view)
{
    assert(view->rank >= 2);
    unsigned order[VIEW_MAX_RANK];
    for (unsigned i = 0; i < view->rank; i++)
        order[i] = i;
    order[view->rank - 1] = view->rank - 2;
    order[view->rank - 2] = view->rank - 1;
    return view_permute(arena, view, order);
}

const struct view *view_slice(struct arena *arena, const struct view *view, unsigned axis, uint64_t first,
                              uint64_t count, uint64_t step)
{
    assert(axis < view->rank);
    uint64_t strides[VIEW_MAX_RANK], shape[VIEW_MAX_RANK];
    if (first == 0 && count == view->shape[axis] && step == 1)
        return view;
    own_strides(view, strides);
    memcpy(shape, view->shape, view->rank * sizeof *shape);
    shape[axis] = count;
    uint64_t blocks = axis + 1 == view->rank ? view->dtype->block_elements : 1;
    assert(first % blocks == 0 && (step == 1 || blocks == 1));
    uint64_t offset = first / blocks * strides[axis];
    strides[axis] *= step;
    return view_strided(arena, view, view->rank, shape, offset, strides);
}

/* Concatenate: parts side by side in every row; the axes before `axis` count the rows. */

struct concatenated {
    struct view view;
    size_t n_parts;
    const struct view **parts;
    uint64_t width;         /* of each part in a row, in units */
    const uint64_t *starts; /* n_parts + 1: the start of each part in a row, if widths differ; else NULL */
};

static uint64_t part_start(const struct concatenated *joined, size_t part)
{
    return joined->starts != NULL ? joined->starts[part] : part * joined->width;
}

struct wanted_unit {
    const uint64_t *starts;
    uint64_t within;
};

static bool part_ends_before(const void *context, size_t index)
{
    const struct wanted_unit *wanted = context;
    return wanted->starts[index + 1] <= wanted->within;
}

/* Returns the part that holds unit `within` of a row. */
static size_t part_at(const struct concatenated *joined, uint64_t within)
{
    const struct wanted_unit wanted = {joined->starts, within};
    if (joined->starts == NULL)
        return (size_t)(within / joined->width);
    return search_first(joined->n_parts, part_ends_before, &wanted);
}

/* Finds the part and its unit at `unit` of the whole; *ret_run units of the part follow from there. */
static const struct view *locate(const struct concatenated *joined, uint64_t unit, uint64_t *ret_first,
                                 uint64_t *ret_run)
{
    uint64_t row = part_start(joined, joined->n_parts), within = unit % row;
    size_t part = part_at(joined, within);
    uint64_t start = part_start(joined, part), end = part_start(joined, part + 1);
    *ret_first = unit / row * (end - start) + (within - start);
    *ret_run = end - within;
    return joined->parts[part];
}

static bool concatenated_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    unsigned char *to = out;
    while (count > 0) {
        uint64_t part_first, run;
        const struct view *part = locate((const struct concatenated *)view, first, &part_first, &run);
        run = run < count ? run : count;
        if (!view_read(part, part_first, run, to, error))
            return false;
        to += run * view->dtype->block_bytes;
        first += run;
        count -= run;
    }
    return true;
}

static uint64_t concatenated_stored(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    uint64_t part_first, run;
    const struct view *part = locate((const struct concatenated *)view, first, &part_first, &run);
    uint64_t stored = view_stored(part, part_first, ret_extent);
    return stored < run ? stored : run;
}

static void concatenated_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    for (uint64_t run; count > 0; first += run, count -= run) {
        uint64_t part_first;
        const struct view *part = locate((const struct concatenated *)view, first, &part_first, &run);
        run = run < count ? run : count;
        view_depends(part, part_first, run, to);
    }
}

static const struct view_op concatenated_op = {
    .name = "concatenate", .read = concatenated_read, .depends = concatenated_depends, .stored = concatenated_stored};

/* Returns the number of units of the axes from `axis` on. */
static uint64_t width_from(const struct view *view, unsigned axis)
{
    uint64_t width = 1;
    for (unsigned i = axis; i < view->rank; i++)
        width *= view->shape[i];
    assert(width % view->dtype->block_elements == 0);
    return width / view->dtype->block_elements;
}

/* Returns the parts side by side from their `axis` on, as a view of that shape. */
static const struct view *join(struct arena *arena, const struct view *const *parts, size_t n_parts, unsigned axis,
                               unsigned rank, const uint64_t *shape)
{
    struct concatenated *joined = arena_alloc(arena, sizeof *joined);
    view_init(&joined->view, arena, &concatenated_op, parts[0]->dtype, rank, shape);
    joined->n_parts = n_parts;
    joined->parts = arena_copy(arena, parts, n_parts * sizeof *parts);
    joined->width = width_from(parts[0], axis);
    bool is_even = true;
    for (size_t i = 0; i < n_parts; i++) {
        assert(parts[i]->dtype == parts[0]->dtype);
        is_even &= width_from(parts[i], axis) == joined->width;
        joined->view.scattered |= parts[i]->scattered;
    }
    if (is_even)
        return &joined->view;
    uint64_t *starts = arena_array(arena, n_parts + 1, sizeof *starts);
    for (size_t i = 0; i < n_parts; i++)
        starts[i + 1] = starts[i] + width_from(parts[i], axis);
    joined->starts = starts;
    return &joined->view;
}

const struct view *view_concatenate(struct arena *arena, const struct view *const *parts, size_t n_parts, unsigned axis)
{
    assert(n_parts > 0 && axis < parts[0]->rank);
    uint64_t shape[VIEW_MAX_RANK];
    memcpy(shape, parts[0]->shape, parts[0]->rank * sizeof *shape);
    for (size_t i = 1; i < n_parts; i++)
        shape[axis] += parts[i]->shape[axis];
    return join(arena, parts, n_parts, axis, parts[0]->rank, shape);
}

const struct view *view_stack(struct arena *arena, const struct view *const *parts, size_t n_parts)
{
    assert(n_parts > 0 && parts[0]->rank < VIEW_MAX_RANK);
    uint64_t shape[VIEW_MAX_RANK] = {n_parts};
    memcpy(shape + 1, parts[0]->shape, parts[0]->rank * sizeof *shape);
    return join(arena, parts, n_parts, 0, parts[0]->rank + 1, shape);
}

/* Literal: units in memory. */

struct literal {
    struct view view;
    const unsigned char *bytes;
};

static bool literal_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    size_t unit = view->dtype->block_bytes;
    memcpy(out, ((const struct literal *)view)->bytes + first * unit, count * unit);
    return true;
}

static const struct view_op literal_op = {.name = "literal", .read = literal_read};

const struct view *view_literal(struct arena *arena, const struct dtype *dtype, unsigned rank, const uint64_t *shape,
                                const void *bytes)
{
    struct literal *literal = arena_alloc(arena, sizeof *literal);
    view_init(&literal->view, arena, &literal_op, dtype, rank, shape);
    literal->bytes = bytes;
    return &literal->view;
}

const struct view *view_numbers(struct arena *arena, unsigned rank, const uint64_t *shape, const float *numbers)
{
    const struct view *view = view_literal(arena, &f32_dtype, rank, shape, numbers);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return view;
    void *bytes = arena_copy(arena, numbers, view->n_elements * sizeof *numbers);
    little_endian(bytes, view->n_elements, sizeof *numbers);
    return view_literal(arena, &f32_dtype, rank, shape, bytes);
}
