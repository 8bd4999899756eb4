#include "formats/tensor_set.h"

#include "base/sort.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A set with the mutable arrays that it shows to others as const. */
struct owned_set {
    struct tensor_set set;
    struct tensor *tensors;
    size_t capacity; /* tensors */
    uint32_t *by_name, *ranks;
};

static void release(void *context)
{
    struct owned_set *owned = context;
    free(owned->tensors);
    free(owned->by_name);
    free(owned->ranks);
}

struct tensor_set *tensor_set_new(struct arena *arena)
{
    struct owned_set *owned = arena_alloc(arena, sizeof *owned);
    arena_on_free(arena, release, owned);
    return &owned->set;
}

struct tensor *tensor_set_edit(struct tensor_set *set)
{
    assert(set->by_name == NULL);
    return ((struct owned_set *)set)->tensors;
}

static void set_tensors(struct tensor_set *set, struct tensor *tensors)
{
    set->tensors = ((struct owned_set *)set)->tensors = tensors;
}

/* Seals the set. Takes both arrays. */
static void set_names(struct tensor_set *set, uint32_t *by_name, uint32_t *ranks)
{
    set->by_name = ((struct owned_set *)set)->by_name = by_name;
    set->ranks = ((struct owned_set *)set)->ranks = ranks;
}

void tensor_set_reserve(struct tensor_set *set, size_t n)
{
    struct owned_set *owned = (struct owned_set *)set;
    size_t wanted = set->n_tensors + n;
    if (wanted <= owned->capacity)
        return;
    if (wanted < 2 * owned->capacity) /* so that adding to many reservations takes linear time */
        wanted = 2 * owned->capacity;
    set_tensors(set, memory_resize(tensor_set_edit(set), wanted * sizeof *set->tensors));
    owned->capacity = wanted;
}

void tensor_set_add(struct tensor_set *set, const struct tensor *tensor)
{
    assert(set->n_tensors < UINT32_MAX);
    tensor_set_reserve(set, 1);
    tensor_set_edit(set)[set->n_tensors++] = *tensor;
}

struct tensor tensor_of_view(const char *name, const struct view *view)
{
    return (struct tensor){
        .name = name,
        .name_length = (uint32_t)strlen(name),
        .rank = (uint8_t)view->rank,
        .dtype = view->dtype,
        .shape = view->shape,
        .view = view,
    };
}

void tensor_set_add_view(struct tensor_set *set, const char *name, const struct view *view)
{
    struct tensor tensor = tensor_of_view(name, view);
    tensor_set_add(set, &tensor);
}

static const char *name_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct tensor *tensors = context;
    *ret_length = tensors[index].name_length;
    return tensors[index].name;
}

/* Returns the numbers from 0 on. */
static uint32_t *first_numbers(size_t n)
{
    uint32_t *numbers = memory_alloc(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = (uint32_t)i;
    return numbers;
}

uint32_t *tensors_by_name(const struct tensor *tensors, size_t n_tensors)
{
    uint32_t *by_name = first_numbers(n_tensors);
    sort_texts(by_name, n_tensors, name_of, tensors);
    return by_name;
}

static bool refuse_twins(const struct tensor *first, const struct tensor *second, struct error *error)
{
    if (first->source == NULL || second->source == NULL)
        return error_set(error, "two tensors would have the name '%s'", second->name);
    return error_set(error, "%s: tensor '%s' is also in %s", source_name(second->source), second->name,
                     source_name(first->source));
}

static int compare_names(const struct tensor *a, const struct tensor *b)
{
    return text_compare(a->name, a->name_length, b->name, b->name_length);
}

/* Reports whether each tensor's name comes after the one before, as in sets that were made from sealed ones. */
static bool is_in_order(const struct tensor_set *set)
{
    size_t i = 1;
    while (i < set->n_tensors && compare_names(&set->tensors[i - 1], &set->tensors[i]) < 0)
        i++;
    return i >= set->n_tensors;
}

static bool has_no_twins(const struct tensor_set *set, const uint32_t *by_name, struct error *error)
{
    for (size_t i = 1; i < set->n_tensors; i++) {
        const struct tensor *first = &set->tensors[by_name[i - 1]], *second = &set->tensors[by_name[i]];
        if (compare_names(first, second) == 0)
            return refuse_twins(first, second, error);
    }
    return true;
}

bool tensor_set_seal(struct tensor_set *set, struct error *error)
{
    size_t n = set->n_tensors;
    if (set->by_name != NULL)
        return true;
    bool in_order = is_in_order(set);
    uint32_t *by_name = in_order ? first_numbers(n) : tensors_by_name(set->tensors, n);
    if (!in_order && !has_no_twins(set, by_name, error)) {
        free(by_name);
        return false;
    }
    set_tensors(set, memory_resize(tensor_set_edit(set), n * sizeof *set->tensors));
    uint32_t *ranks = memory_alloc(n * sizeof *ranks);
    for (size_t i = 0; i < n; i++)
        ranks[by_name[i]] = (uint32_t)i;
    set_names(set, by_name, ranks);
    return true;
}

struct tensor_set *tensor_set_ordered(const struct tensor_set *set, struct arena *arena)
{
    struct tensor_set *ordered = tensor_set_new(arena);
    uint32_t *order = tensors_by_name(set->tensors, set->n_tensors);
    for (size_t i = 0; i < set->n_tensors; i++)
        tensor_set_add(ordered, &set->tensors[order[i]]);
    free(order);
    return ordered;
}

static void *copy(const void *array, size_t n_bytes)
{
    return memcpy(memory_alloc(n_bytes), array, n_bytes);
}

const struct tensor_set *tensor_set_with_views(struct arena *arena, const struct tensor_set *set,
                                               const struct view *const *views)
{
    size_t n = set->n_tensors;
    struct tensor_set *made = tensor_set_new(arena);
    struct tensor *tensors = copy(set->tensors, n * sizeof *tensors);
    for (size_t i = 0; i < n; i++) {
        if (views[i] == NULL)
            continue;
        tensors[i].view = views[i];
        tensors[i].dtype = views[i]->dtype;
        tensors[i].strides = NULL;
    }
    set_tensors(made, tensors);
    set_names(made, copy(set->by_name, n * sizeof *set->by_name), copy(set->ranks, n * sizeof *set->ranks));
    made->n_tensors = n;
    return made;
}

struct wanted {
    const struct tensor_set *set;
    const char *name;
    size_t length;
    size_t first; /* rank at which the search begins */
};

/* Compares the tensor of that rank with the wanted name. */
static int compare_wanted(const struct wanted *wanted, size_t rank)
{
    const struct tensor *tensor = &wanted->set->tensors[wanted->set->by_name[rank]];
    return text_compare(tensor->name, tensor->name_length, wanted->name, wanted->length);
}

static bool comes_before(const void *context, size_t index)
{
    const struct wanted *wanted = context;
    return compare_wanted(wanted, wanted->first + index) < 0;
}

static const struct tensor *check_found(const struct wanted *wanted, size_t rank)
{
    bool is_there = rank < wanted->set->n_tensors && compare_wanted(wanted, rank) == 0;
    return is_there ? &wanted->set->tensors[wanted->set->by_name[rank]] : NULL;
}

const struct tensor *tensor_set_find(const struct tensor_set *set, const char *name, size_t name_length)
{
    assert(set->by_name != NULL);
    const struct wanted wanted = {set, name, name_length, 0};
    return check_found(&wanted, search_first(set->n_tensors, comes_before, &wanted));
}

const struct tensor *tensor_set_find_near(const struct tensor_set *set, const struct tensor *near, const char *name,
                                          size_t name_length)
{
    struct wanted wanted = {set, name, name_length, 0};
    size_t low = set->ranks[near - set->tensors], high = low, step = 1;
    bool is_after = comes_before(&wanted, low);
    for (; is_after && high < set->n_tensors && comes_before(&wanted, high); step *= 2) {
        low = high + 1;
        high = set->n_tensors - low > step ? low + step : set->n_tensors;
    }
    for (; !is_after && low > 0 && !comes_before(&wanted, low - 1); step *= 2) {
        high = low - 1;
        low = high > step ? high - step : 0;
    }
    wanted.first = low;
    return check_found(&wanted, low + search_first(high - low, comes_before, &wanted));
}

const struct tensor *tensor_set_find_text(const struct tensor_set *set, const char *name)
{
    return tensor_set_find(set, name, strlen(name));
}

/* Stored tensors: leaves, on which other views are built. */

struct stored {
    struct view view;
    struct source *source;
    uint64_t offset;
};

static bool stored_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct stored *stored = (const struct stored *)view;
    size_t unit = view->dtype->block_bytes;
    return source_read(stored->source, stored->offset + first * unit, count * unit, out, error);
}

static uint64_t stored_extent(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    const struct stored *stored = (const struct stored *)view;
    *ret_extent = (struct extent){stored->source, stored->offset + first * view->dtype->block_bytes};
    return view_units(view) - first;
}

static bool stored_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    const struct stored *stored = (const struct stored *)view;
    size_t unit = view->dtype->block_bytes;
    return source_read_runs(stored->source, stored->offset + runs->first * unit, runs->count, runs->length * unit,
                            runs->stride * unit, out, error);
}

static const struct view_op stored_op = {
    .name = "tensor", .read = stored_read, .stored = stored_extent, .read_runs = stored_read_runs};

/* Makes the leaf, which shares the shape. */
static const struct view *stored_view(struct arena *arena, struct source *source, uint64_t offset,
                                      const struct dtype *dtype, unsigned rank, const uint64_t *shape)
{
    struct stored *stored = arena_alloc(arena, sizeof *stored);
    view_init_shared(&stored->view, &stored_op, dtype, rank, shape);
    stored->source = source;
    stored->offset = offset;
    return &stored->view;
}

const struct view *view_of_source(struct arena *arena, struct source *source, uint64_t offset,
                                  const struct dtype *dtype, unsigned rank, const uint64_t *shape)
{
    return stored_view(arena, source, offset, dtype, rank, arena_copy(arena, shape, rank * sizeof *shape));
}

const struct view *tensor_view(const struct tensor *tensor, struct arena *arena)
{
    if (tensor->view != NULL)
        return tensor->view;
    if (tensor->strides == NULL || tensor_elements(tensor) == 0)
        return stored_view(arena, tensor->source, tensor->offset, tensor->dtype, tensor->rank, tensor->shape);
    uint64_t n_elements = tensor->length / tensor->dtype->block_bytes * tensor->dtype->block_elements;
    const struct view *flat = view_of_source(arena, tensor->source, tensor->offset, tensor->dtype, 1, &n_elements);
    return view_strided(arena, flat, tensor->rank, tensor->shape, 0, tensor->strides);
}

bool tensor_is_stored(const struct tensor *tensor)
{
    return tensor->view == NULL && tensor->strides == NULL && tensor->refusal == NULL;
}

bool tensor_is_of_optimizer(const char *name, size_t name_length)
{
    static const char *const keys[] = {"optim", "optimizer", "optimizer_states", "optimizer_state_dict", "opt_state"};
    const char *at = name, *end = name + name_length;
    for (int key = 0; key < 2 && at < end; key++) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t length = (size_t)((dot != NULL ? dot : end) - at);
        for (size_t i = 0; dot != NULL && i < sizeof keys / sizeof *keys; i++)
            if (length == strlen(keys[i]) && memcmp(at, keys[i], length) == 0)
                return true;
        at += length + 1;
    }
    return false;
}

uint64_t tensor_elements(const struct tensor *tensor)
{
    uint64_t n_elements = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        n_elements *= tensor->shape[i];
    return n_elements;
}
