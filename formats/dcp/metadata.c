#include "formats/dcp/dcp.h"

#include "base/checked.h"
#include "base/sort.h"
#include "base/text.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"
#include "sources/paths.h"

#include <string.h>

enum { SHOWN_NAME = 200, MAX_FIELDS = 16, MAX_NAME = 1024 };

static const char not_metadata[] = "not the metadata of a distributed torch checkpoint";

struct reader {
    const struct source *source;
    struct arena *arena;
    struct dcp_metadata *metadata;
    size_t most;     /* tensors, places or chunks */
    size_t n_chunks; /* of all tensors so far */
    struct error *error;
};

static bool refuse(const struct reader *reader, struct dcp_text name, const char *reason)
{
    char shown[SHOWN_NAME];
    text_printable(name.bytes, name.length, shown, sizeof shown);
    return error_set(reader->error, "%s: tensor '%s': %s", source_name(reader->source), shown, reason);
}

static bool refuse_file(const struct reader *reader, const char *reason)
{
    return error_set(reader->error, "%s: %s", source_name(reader->source), reason);
}

static struct dcp_text text_of(const struct pickle_node *text)
{
    return (struct dcp_text){text->text.bytes, text->text.length};
}

static int compare_texts(struct dcp_text a, struct dcp_text b)
{
    return text_compare(a.bytes, a.length, b.bytes, b.length);
}

/* Returns a field of a dataclass's object, or NULL. Pickles can repeat an object, so objects of many fields, which no
 * dataclass has, are not searched. */
static const struct pickle_node *field(const struct pickle_node *object, const char *name)
{
    const struct pickle_node *state = pickle_is(object, PICKLE_OBJECT) ? object->object->state : NULL;
    return pickle_is(state, PICKLE_DICT) && state->items.n <= 2 * MAX_FIELDS ? pickle_get(state, name) : NULL;
}

static bool is_object_of(const struct pickle_node *node, const char *class_name)
{
    return pickle_is(node, PICKLE_OBJECT) && pickle_is(node->object->class, PICKLE_GLOBAL) &&
           strcmp(node->object->class->global.name, class_name) == 0;
}

/* Reads a torch.Size into the arena. */
static bool read_sizes(const struct reader *reader, const struct pickle_node *node, const uint64_t **ret_sizes,
                       unsigned *ret_rank)
{
    uint64_t sizes[SHAPE_MAX_RANK];
    if (!torch_sizes(node, sizes, ret_rank))
        return false;
    *ret_sizes = arena_copy(reader->arena, sizes, *ret_rank * sizeof *sizes);
    return true;
}

static const struct dtype *read_dtype(const struct pickle_node *properties)
{
    const struct pickle_node *constant =
        pickle_is(properties, PICKLE_OBJECT) ? pickle_at(properties->object->state, 0) : NULL;
    if (!pickle_is(constant, PICKLE_GLOBAL) || constant->meaning != GLOBAL_CONSTANT)
        return NULL;
    const struct torch_dtype *dtype = torch_dtype_by_name(constant->global.name);
    return dtype != NULL && !dtype->quantized ? dtype_by_name(dtype->dtype) : NULL;
}

static bool read_chunk(const struct reader *reader, const struct dcp_tensor *tensor, const struct pickle_node *node,
                       struct dcp_box *chunk)
{
    unsigned rank_of_first, rank;
    if (!read_sizes(reader, field(node, "offsets"), &chunk->first, &rank_of_first) ||
        !read_sizes(reader, field(node, "sizes"), &chunk->sizes, &rank) || rank != tensor->rank ||
        rank_of_first != rank)
        return refuse(reader, tensor->name, "a chunk whose offsets and sizes are not as many numbers as the shape's");
    for (unsigned i = 0; i < rank; i++) {
        uint64_t end;
        if (!checked_add(chunk->first[i], chunk->sizes[i], &end) || end > tensor->shape[i])
            return refuse(reader, tensor->name, "a chunk lies outside of the tensor's shape");
    }
    return true;
}

static bool read_shape(const struct reader *reader, const struct pickle_node *node, struct dcp_tensor *tensor)
{
    uint64_t n_elements, n_bytes;
    tensor->dtype = read_dtype(field(node, "properties"));
    if (tensor->dtype == NULL)
        return refuse(reader, tensor->name, "its dtype is missing or not supported");
    if (tensor->dtype->block_elements > 1)
        return refuse(reader, tensor->name, "its dtype packs several elements in a byte, which is not supported");
    if (!read_sizes(reader, field(node, "size"), &tensor->shape, &tensor->rank) ||
        !shape_size(tensor->dtype, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL) || n_bytes > INT64_MAX)
        return refuse(reader, tensor->name, "its size is not a shape, or its size in bytes overflows");
    return true;
}

static bool read_tensor(struct reader *reader, const struct pickle_node *name, const struct pickle_node *node,
                        struct dcp_tensor *tensor)
{
    const struct pickle_node *chunks = field(node, "chunks");
    tensor->name = text_of(name);
    tensor->n_chunks = pickle_count(chunks);
    reader->n_chunks += tensor->n_chunks;
    if (tensor->name.length > MAX_NAME)
        return refuse(reader, tensor->name, "its name is too long");
    if (reader->n_chunks > reader->most)
        return refuse_file(reader, "more chunks than a file of its size describes");
    if (!read_shape(reader, node, tensor))
        return false;
    tensor->chunks = arena_array(reader->arena, tensor->n_chunks, sizeof *tensor->chunks);
    for (uint32_t i = 0; i < tensor->n_chunks; i++)
        if (!read_chunk(reader, tensor, pickle_at(chunks, i), &tensor->chunks[i]))
            return false;
    return true;
}

/* Returns the length of the keys at the beginning of a name that torch.save() users put around a state dict. The path
 * of a name has a key for each dict: ("model", "layers.0.weight"). */
static size_t root_length(const struct pickle_node *path, const struct dcp_tensor *tensor)
{
    static const char *const roots[] = {"app", "model", "state_dict"};
    size_t length = 0;
    for (uint32_t at = 0; at + 1 < pickle_count(path); at++) {
        const struct pickle_node *key = pickle_at(path, at);
        bool is_root = false;
        for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
            is_root |= pickle_text_is(key, roots[i]);
        if (!is_root || tensor->name.length - length <= key->text.length + 1 ||
            memcmp(tensor->name.bytes + length, key->text.bytes, key->text.length) != 0 ||
            tensor->name.bytes[length + key->text.length] != '.')
            break;
        length += key->text.length + 1;
    }
    return length;
}

static bool read_tensors(struct reader *reader, const struct pickle_node *entries)
{
    struct dcp_metadata *metadata = reader->metadata;
    if (!pickle_is(entries, PICKLE_DICT))
        return refuse_file(reader, not_metadata);
    if (entries->items.n / 2 > reader->most)
        return refuse_file(reader, "more entries than a file of its size describes");
    metadata->tensors = arena_array(reader->arena, entries->items.n / 2, sizeof *metadata->tensors);
    for (uint32_t i = 0; i + 1 < entries->items.n; i += 2) {
        const struct pickle_node *name = entries->items.nodes[i], *node = entries->items.nodes[i + 1];
        if (!is_object_of(node, "TensorStorageMetadata") || !pickle_is(name, PICKLE_TEXT))
            metadata->n_objects++;
        else if (!read_tensor(reader, name, node, &metadata->tensors[metadata->n_tensors++]))
            return false;
    }
    return true;
}

static const char *name_of_tensor(const void *context, uint32_t index, size_t *ret_length)
{
    const struct dcp_tensor *tensors = context;
    *ret_length = tensors[index].name.length;
    return tensors[index].name.bytes;
}

struct wanted_name {
    const struct dcp_tensor *tensors;
    const uint32_t *order;
    struct dcp_text name;
};

static bool name_comes_before(const void *context, size_t index)
{
    const struct wanted_name *wanted = context;
    return compare_texts(wanted->tensors[wanted->order[index]].name, wanted->name) < 0;
}

/* Sets the roots of names from the path of each name. */
static void read_paths(const struct reader *reader, const uint32_t *order, const struct pickle_node *paths)
{
    const struct dcp_metadata *metadata = reader->metadata;
    for (uint32_t i = 0; pickle_is(paths, PICKLE_DICT) && i + 1 < paths->items.n; i += 2) {
        const struct pickle_node *name = paths->items.nodes[i];
        if (!pickle_is(name, PICKLE_TEXT))
            continue;
        const struct wanted_name wanted = {metadata->tensors, order, text_of(name)};
        size_t at = search_first(metadata->n_tensors, name_comes_before, &wanted);
        if (at == metadata->n_tensors || compare_texts(metadata->tensors[order[at]].name, wanted.name) != 0)
            continue;
        struct dcp_tensor *tensor = &metadata->tensors[order[at]];
        tensor->root_length = root_length(paths->items.nodes[i + 1], tensor);
    }
}

static bool check_names(const struct reader *reader, const uint32_t *order)
{
    const struct dcp_tensor *tensors = reader->metadata->tensors;
    for (size_t i = 1; i < reader->metadata->n_tensors; i++)
        if (compare_texts(tensors[order[i - 1]].name, tensors[order[i]].name) == 0)
            return refuse(reader, tensors[order[i]].name, "two tensors have this name");
    return true;
}

static bool read_names(const struct reader *reader, const struct pickle_node *paths)
{
    size_t n_tensors = reader->metadata->n_tensors;
    uint32_t *order = arena_array(reader->arena, n_tensors, sizeof *order);
    for (size_t i = 0; i < n_tensors; i++)
        order[i] = (uint32_t)i;
    sort_texts(order, n_tensors, name_of_tensor, reader->metadata->tensors);
    if (!check_names(reader, order))
        return false;
    read_paths(reader, order, paths);
    return true;
}

static bool read_number(const struct pickle_node *node, uint64_t *ret_number)
{
    int64_t number;
    if (!pickle_integer(node, &number) || number < 0)
        return false;
    *ret_number = (uint64_t)number;
    return true;
}

static bool read_place(const struct reader *reader, const struct pickle_node *index, const struct pickle_node *node,
                       bool is_tensor, struct dcp_place *place)
{
    const struct pickle_node *file = field(node, "relative_path");
    place->name = text_of(field(index, "fqn"));
    if (place->name.length > MAX_NAME)
        return refuse(reader, place->name, "its name is too long");
    place->transformed = pickle_count(field(node, "transform_descriptors")) > 0;
    if ((is_tensor && !read_sizes(reader, field(index, "offset"), &place->first, &place->rank)) ||
        !read_number(field(node, "offset"), &place->offset) || !read_number(field(node, "length"), &place->length) ||
        !pickle_is(file, PICKLE_TEXT))
        return refuse(reader, place->name, "the place of a chunk is not a file, an offset and a length");
    place->file = text_of(file);
    return inner_path(place->file.bytes, place->file.length) ||
           refuse(reader, place->name, "the path of its file leads out of the checkpoint's directory");
}

static int compare_places(const struct dcp_place *a, const struct dcp_place *b)
{
    int order = compare_texts(a->name, b->name);
    if (order == 0)
        order = (a->rank > b->rank) - (a->rank < b->rank);
    for (unsigned i = 0; i < a->rank && order == 0; i++)
        order = (a->first[i] > b->first[i]) - (a->first[i] < b->first[i]);
    return order;
}

static int compare_indices(const void *context, uint32_t a, uint32_t b)
{
    const struct dcp_place *places = context;
    return compare_places(&places[a], &places[b]);
}

static bool read_places(const struct reader *reader, const struct pickle_node *entries)
{
    struct dcp_metadata *metadata = reader->metadata;
    if (!pickle_is(entries, PICKLE_DICT))
        return refuse_file(reader, not_metadata);
    if (entries->items.n / 2 > reader->most)
        return refuse_file(reader, "more places than a file of its size describes");
    metadata->places = arena_array(reader->arena, entries->items.n / 2, sizeof *metadata->places);
    metadata->order = arena_array(reader->arena, entries->items.n / 2, sizeof *metadata->order);
    metadata->objects = arena_array(reader->arena, entries->items.n / 2, sizeof *metadata->objects);
    for (uint32_t i = 0; i + 1 < entries->items.n; i += 2) {
        const struct pickle_node *index = entries->items.nodes[i];
        bool is_tensor = pickle_is(field(index, "offset"), PICKLE_OBJECT); /* else None: an object */
        if (!pickle_is(field(index, "fqn"), PICKLE_TEXT))
            continue;
        if (is_tensor)
            metadata->order[metadata->n_places] = (uint32_t)metadata->n_places;
        struct dcp_place *place =
            is_tensor ? &metadata->places[metadata->n_places++] : &metadata->objects[metadata->n_object_places++];
        if (!read_place(reader, index, entries->items.nodes[i + 1], is_tensor, place))
            return false;
    }
    sort_indices(metadata->order, metadata->n_places, compare_indices, metadata->places);
    return true;
}

static bool read_graph(struct reader *reader, const struct pickle_node *root)
{
    if (!is_object_of(root, "Metadata"))
        return refuse_file(reader, not_metadata);
    return read_tensors(reader, field(root, "state_dict_metadata")) &&
           read_names(reader, field(root, "planner_data")) && read_places(reader, field(root, "storage_data"));
}

bool dcp_metadata_read(struct dcp_metadata *metadata, const struct source *source, struct arena *arena,
                       struct error *error)
{
    struct pickle pickle;
    size_t length;
    char *bytes = source_read_text(source, PICKLE_MAX_BYTES, &length, error);
    if (bytes == NULL)
        return false;
    arena_adopt(arena, bytes, length);
    struct reader reader = {source, arena, metadata, .most = length / DCP_LEAST_BYTES, .error = error};
    if (!pickle_read(&pickle, bytes, length, arena, NULL, error))
        return error_prefix(error, "%s", source_name(source));
    return read_graph(&reader, pickle.root);
}

struct wanted_place {
    const struct dcp_metadata *metadata;
    struct dcp_place place;
};

static bool place_comes_before(const void *context, size_t index)
{
    const struct wanted_place *wanted = context;
    const struct dcp_metadata *metadata = wanted->metadata;
    return compare_places(&metadata->places[metadata->order[index]], &wanted->place) < 0;
}

const struct dcp_place *dcp_find_place(const struct dcp_metadata *metadata, const struct dcp_tensor *tensor,
                                       const struct dcp_box *chunk)
{
    const struct wanted_place wanted = {
        metadata,
        {.name = tensor->name, .rank = tensor->rank, .first = chunk->first},
    };
    size_t at = search_first(metadata->n_places, place_comes_before, &wanted);
    const struct dcp_place *found = at < metadata->n_places ? &metadata->places[metadata->order[at]] : NULL;
    return found != NULL && compare_places(found, &wanted.place) == 0 ? found : NULL;
}
