/* Arrays in slices: paddle.save() cuts arrays of more than 2^30 bytes with the pickle protocols 2 and 3, whose strings
 * are shorter than 4 GiB. Source: paddle/framework/io_utils.py, _unpack_saved_dict and _pack_loaded_dict. */
#include "base/sort.h"
#include "base/text.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"

#include <stdlib.h>
#include <string.h>

static const char slices_key[] = "UnpackBigParamInfor@@";

struct joining {
    const struct torch_container *container;
    struct tensor *tensors; /* `n` of them, some of them slices */
    size_t n;
    uint32_t *sorted;       /* their indices, in the order of names */
    bool *is_slice;         /* those that have been joined */
    struct tensor **joined; /* of each first slice, the array in its place */
};

struct wanted {
    const struct joining *joining;
    const struct pickle_node *name;
};

static int compare(const struct joining *joining, size_t index, const struct pickle_node *name)
{
    const struct tensor *tensor = &joining->tensors[joining->sorted[index]];
    return text_compare(tensor->name, tensor->name_length, name->text.bytes, name->text.length);
}

static bool comes_before(const void *context, size_t index)
{
    const struct wanted *wanted = context;
    return compare(wanted->joining, index, wanted->name) < 0;
}

/* Returns the index of the slice of that name; `n` if there is none, or if another array has it. */
static size_t find_slice(const struct joining *joining, const struct pickle_node *name)
{
    if (!pickle_is(name, PICKLE_TEXT))
        return joining->n;
    const struct wanted wanted = {joining, name};
    size_t found = search_first(joining->n, comes_before, &wanted);
    bool is_found = found < joining->n && compare(joining, found, name) == 0;
    return is_found && !joining->is_slice[joining->sorted[found]] ? joining->sorted[found] : joining->n;
}

/* Collects the slices as views, and marks them. */
static bool take_slices(const struct joining *joining, const struct pickle_node *names, const struct view **views,
                        uint64_t *ret_elements, struct error *error)
{
    *ret_elements = 0;
    for (uint32_t i = 0; i < pickle_count(names); i++) {
        size_t index = find_slice(joining, pickle_at(names, i));
        if (index == joining->n)
            return torch_refuse(joining->container, names, error, "slice %u of an array is missing", i);
        const struct tensor *slice = &joining->tensors[index];
        if (slice->rank != 1 || slice->shape[0] == 0 || slice->refusal != NULL ||
            (i > 0 && slice->dtype != views[0]->dtype))
            return torch_refuse(joining->container, names, error, "slice %u of an array is not a vector of its dtype",
                                i);
        joining->is_slice[index] = true;
        views[i] = tensor_view(slice, joining->container->checkpoint->arena);
        *ret_elements += slice->shape[0];
    }
    return true;
}

/* Makes an array for the place of its first slice. */
static bool join(const struct joining *joining, const struct pickle_node *name, const struct pickle_node *entry,
                 struct error *error)
{
    struct arena *arena = joining->container->checkpoint->arena;
    const struct pickle_node *names = pickle_get(entry, "slices"), *sizes = pickle_get(entry, "OriginShape");
    uint64_t shape[SHAPE_MAX_RANK], n_elements, n_sliced, n_bytes;
    unsigned rank;
    uint32_t n = pickle_count(names);
    if (!pickle_is(name, PICKLE_TEXT) || name->text.length > TENSOR_MAX_NAME || n == 0 ||
        !torch_sizes(sizes, shape, &rank))
        return torch_refuse(joining->container, name, error,
                            "an array in slices without a name, slices or OriginShape");
    size_t first = find_slice(joining, pickle_at(names, 0));
    const struct view **views = memory_alloc(n * sizeof(struct view *));
    bool good = take_slices(joining, names, views, &n_sliced, error);
    if (good && (!shape_size(views[0]->dtype, shape, rank, &n_elements, &n_bytes, NULL) || n_elements != n_sliced))
        good = torch_refuse(joining->container, name, error, "the slices of an array do not fill its OriginShape");
    if (good) {
        const struct view *view = view_reshape(arena, view_concatenate(arena, views, n, 0), rank, shape);
        struct tensor joined = tensor_of_view(arena_strndup(arena, name->text.bytes, name->text.length), view);
        joined.name_length = (uint32_t)name->text.length;
        joining->joined[first] = arena_copy(arena, &joined, sizeof joined);
    }
    free(views);
    return good;
}

static bool join_all(const struct joining *joining, const struct pickle_node *slices, struct error *error)
{
    for (uint32_t i = 0; i + 1 < slices->items.n; i += 2)
        if (!join(joining, slices->items.nodes[i], slices->items.nodes[i + 1], error))
            return false;
    return true;
}

bool torch_join_slices(const struct torch_container *container, const struct pickle *pickle, size_t first,
                       struct error *error)
{
    const struct pickle_node *slices = pickle_get(pickle->root, slices_key);
    size_t n = container->tensors->n_tensors - first;
    if (!pickle_is(slices, PICKLE_DICT) || slices->items.n == 0)
        return true;
    if (n == 0)
        return torch_refuse(container, slices, error, "arrays in slices that are missing");
    struct arena *scratch = arena_new();
    struct joining joining = {
        .container = container,
        .tensors = tensor_set_edit(container->tensors) + first,
        .n = n,
        .is_slice = arena_array(scratch, n, sizeof *joining.is_slice),
        .joined = arena_array(scratch, n, sizeof *joining.joined),
    };
    joining.sorted = tensors_by_name(joining.tensors, n);
    bool good = join_all(&joining, slices, error);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        if (joining.joined[i] != NULL)
            joining.tensors[n_kept++] = *joining.joined[i];
        else if (!joining.is_slice[i])
            joining.tensors[n_kept++] = joining.tensors[i];
    container->tensors->n_tensors = first + n_kept;
    free(joining.sorted);
    arena_free(scratch);
    return good;
}
