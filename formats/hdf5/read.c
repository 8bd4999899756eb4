/* HDF5 files, as Keras and TensorFlow's users keep weights in: .h5, .hdf5, .weights.h5.
 *
 * A tensor is a dataset; its name is the names of the links on the way to it, joined by '/'. Groups are read in the
 * order of names. An object to which several hard links lead is shown under each, except within itself. As few bytes
 * can make many names so, their number and bytes are limited. Soft links, and links to other files, are not followed;
 * datasets whose elements are in other files, or compressed by a filter of a plugin, are listed without values. Texts
 * among the attributes of the root, such as Keras' version, become metadata; nothing in them is run. */
#include "base/checked.h"
#include "base/text_index.h"
#include "formats/bits.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/hdf5/dataset.h"
#include "formats/hdf5/object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_METADATA = 256, MAX_METADATA_TEXT = 1024 * 1024 };

/* Names may take so many bytes for each byte of the file, and a constant: groups share the names on the way to them. */
enum { NAMES_RATIO = 16, NAMES_CONSTANT = 1024 * 1024 };

/* Groups may be entered again so many times, and datasets under other names may have so many times the bytes of all
 * datasets, and a constant. */
enum { MAX_ENTERED_AGAIN = 1024, REPEATED_RATIO = 8, REPEATED_CONSTANT = 1024 * 1024 };

/* What an address in `seen` is: a number of a dataset's tensor, or one of these. */
static const size_t is_other = SIZE_MAX, is_group = SIZE_MAX - 1;

/* A dataset under another name. */
struct repeated {
    size_t tensor, of; /* numbers of tensors */
};

/* A group whose links are being read. */
struct level {
    uint64_t address;
    struct arena *arena; /* holds the links */
    struct hdf5_links links;
    size_t next;
    size_t path_length; /* of the path to the group, with a '/' at its end unless it is the root */
};

struct reader {
    struct checkpoint *checkpoint;
    struct source *source;
    struct tensor_set *tensors;
    const struct open_options *options;
    struct hdf5 *file;
    struct hdf5_chunked *chunked;
    struct arena *scratch;  /* the addresses of objects seen */
    struct text_index seen; /* of them */
    struct buffer path;
    struct level levels[MAX_DEPTH];
    unsigned depth;
    size_t *chunked_tensors;   /* on the heap: the number of each chunked dataset's tensor */
    struct repeated *repeated; /* on the heap */
    size_t n_repeated, n_entered_again;
    uint64_t n_bytes, n_repeated_bytes; /* of the elements of datasets */
    size_t n_soft, n_external;          /* links that are not followed */
    uint64_t names_left;
};

/* Tensors. */

/* Returns the values of a dataset that is stored nowhere. */
static const struct view *fill_view(struct arena *arena, const struct hdf5_dataset *dataset)
{
    static const uint64_t strides[HDF5_MAX_RANK];
    const void *fill = arena_copy(arena, dataset->fill, sizeof dataset->fill);
    const struct view *one = view_literal(arena, dataset->type.dtype, 0, NULL, fill);
    return view_strided(arena, one, dataset->rank, dataset->shape, 0, strides);
}

/* Puts the decoded chunks, one after the other at `start` of a source, at their places: grid and chunk dimensions are
 * paired, and the ends of chunks that stand over the shape are cut off. */
static const struct view *chunked_view(struct arena *arena, const struct hdf5_dataset *dataset, struct source *source,
                                       uint64_t start)
{
    unsigned rank = dataset->rank, order[2 * HDF5_MAX_RANK];
    uint64_t shape[2 * HDF5_MAX_RANK], covered[HDF5_MAX_RANK];
    hdf5_chunk_grid(dataset, dataset->shape, shape);
    for (unsigned i = 0; i < rank; i++) {
        shape[rank + i] = dataset->chunk[i];
        covered[i] = shape[i] * dataset->chunk[i];
        order[2 * i] = i;
        order[2 * i + 1] = rank + i;
    }
    const struct view *view = view_of_source(arena, source, start, dataset->type.dtype, 2 * rank, shape);
    view = view_reshape(arena, view_permute(arena, view, order), rank, covered);
    for (unsigned i = 0; i < rank; i++)
        if (covered[i] != dataset->shape[i])
            view = view_slice(arena, view, i, 0, dataset->shape[i], 1);
    return view;
}

static const struct view *swapped(struct arena *arena, const struct view *view)
{
    bool is_complex = view->dtype->kind == DTYPE_COMPLEX;
    const struct bits bits = {.component_bytes = (uint8_t)(view->dtype->block_bytes / (is_complex ? 2 : 1)),
                              .swap = true};
    return bits.component_bytes > 1 ? view_bits(arena, view, bits) : view;
}

static void set_values(struct reader *reader, const struct hdf5_dataset *dataset, struct tensor *tensor)
{
    struct arena *arena = reader->checkpoint->arena;
    bool is_unwritten = dataset->storage == HDF5_UNWRITTEN || dataset->n_elements == 0;
    if (dataset->storage == HDF5_STORED) {
        tensor->source = reader->source;
        tensor->offset = reader->file->base + dataset->address;
        tensor->length = dataset->n_bytes;
        if (dataset->type.swap)
            tensor->view = swapped(arena, tensor_view(tensor, arena));
        return;
    }
    if (is_unwritten) {
        const struct view *view = fill_view(arena, dataset);
        tensor->view = dataset->type.swap ? swapped(arena, view) : view;
        return;
    }
    size_t n = hdf5_chunked_count(reader->chunked);
    if (!hdf5_chunked_add(reader->chunked, dataset)) {
        tensor->refusal = "the size of its chunks overflows";
        return;
    }
    reader->chunked_tensors = memory_grow(reader->chunked_tensors, n, sizeof *reader->chunked_tensors);
    reader->chunked_tensors[n] = reader->tensors->n_tensors;
}

/* Makes the views of chunked datasets, when the source of all their chunks can be made. */
static void add_chunked_views(struct reader *reader)
{
    struct arena *arena = reader->checkpoint->arena;
    size_t n = hdf5_chunked_count(reader->chunked);
    struct source *source = hdf5_chunked_source(reader->chunked);
    if (source != NULL)
        checkpoint_add_source(reader->checkpoint, source);
    for (size_t i = 0; i < n; i++) {
        uint64_t start;
        const struct hdf5_dataset *dataset = hdf5_chunked_dataset(reader->chunked, i, &start);
        const struct view *view = chunked_view(arena, dataset, source, start);
        tensor_set_edit(reader->tensors)[reader->chunked_tensors[i]].view =
            dataset->type.swap ? swapped(arena, view) : view;
    }
}

/* Gives a tensor the path as its name. */
static bool set_name(struct reader *reader, struct tensor *tensor, struct error *error)
{
    size_t length = reader->path.length;
    if (length > TENSOR_MAX_NAME || length > reader->names_left || reader->tensors->n_tensors == TENSOR_SET_MAX)
        return error_set(error, "%s: too many datasets, or their names are too long", source_name(reader->source));
    reader->names_left -= length;
    tensor->name = arena_strndup(reader->checkpoint->arena, (const char *)reader->path.bytes, length);
    tensor->name_length = (uint32_t)length;
    return true;
}

static bool add_tensor(struct reader *reader, const struct hdf5_dataset *dataset, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    struct tensor tensor = {
        .dtype = dataset->type.dtype,
        .rank = (uint8_t)dataset->rank,
        .shape = arena_copy(arena, dataset->shape, dataset->rank * sizeof *dataset->shape),
        .refusal = dataset->refusal != NULL ? arena_strdup(arena, dataset->refusal) : NULL,
        .is_no_number = dataset->is_no_number,
    };
    if (!set_name(reader, &tensor, error))
        return false;
    if (tensor.refusal == NULL)
        set_values(reader, dataset, &tensor);
    if (!checked_add(reader->n_bytes, dataset->n_bytes, &reader->n_bytes))
        reader->n_bytes = UINT64_MAX;
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

/* Adds a tensor again, under another name. The views of chunked datasets follow later. */
static bool repeat_tensor(struct reader *reader, size_t of, struct error *error)
{
    struct tensor tensor = reader->tensors->tensors[of];
    uint64_t n_bytes;
    if (!set_name(reader, &tensor, error))
        return false;
    if (!checked_multiply(tensor_elements(&tensor), tensor.dtype->block_bytes, &n_bytes) ||
        !checked_add(reader->n_repeated_bytes, n_bytes, &reader->n_repeated_bytes))
        reader->n_repeated_bytes = UINT64_MAX;
    reader->repeated = memory_grow(reader->repeated, reader->n_repeated, sizeof *reader->repeated);
    reader->repeated[reader->n_repeated++] = (struct repeated){reader->tensors->n_tensors, of};
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

static void set_repeated_views(struct reader *reader)
{
    struct tensor *tensors = tensor_set_edit(reader->tensors);
    for (size_t i = 0; i < reader->n_repeated; i++)
        tensors[reader->repeated[i].tensor].view = tensors[reader->repeated[i].of].view;
}

/* The tree. */

/* Adds texts among the attributes of an object to the metadata. */
static void add_metadata(struct reader *reader, const struct hdf5_object *object, struct arena *arena)
{
    for (size_t i = 0, n = 0; i < object->n_messages && n < MAX_METADATA; i++) {
        const char *name;
        char *text = hdf5_attribute(reader->file, &object->messages[i], &name, MAX_METADATA_TEXT, arena);
        if (text != NULL) {
            checkpoint_add_metadata(reader->checkpoint, name, text);
            n++;
        }
        free(text);
    }
}

static bool enter(struct reader *reader, const struct hdf5_object *group, struct arena *arena, struct error *error)
{
    if (reader->depth == MAX_DEPTH)
        return error_set(error, "%s: groups are nested more than %d deep", source_name(reader->source), MAX_DEPTH);
    struct level *level = &reader->levels[reader->depth];
    *level = (struct level){.address = group->address, .arena = arena};
    if (!hdf5_links_read(reader->file, group, arena, &level->links, error))
        return false;
    if (reader->depth++ > 0)
        buffer_append_text(&reader->path, "/");
    level->path_length = reader->path.length;
    return true;
}

/* Reads an object, a group or a dataset; others, such as named datatypes, are left out. */
static bool read_object(struct reader *reader, uint64_t address, struct arena *arena, bool *ret_entered,
                        struct error *error)
{
    struct hdf5_object object;
    struct hdf5_dataset dataset;
    *ret_entered = false;
    if (!hdf5_object_read(reader->file, address, arena, &object, error))
        return false;
    if (reader->depth == 0)
        add_metadata(reader, &object, arena);
    if (hdf5_is_dataset(&object) && reader->depth > 0)
        return hdf5_dataset_read(reader->file, &object, arena, &dataset, error) && add_tensor(reader, &dataset, error);
    if (!hdf5_is_group(&object))
        return reader->depth > 0 || hdf5_refuse(reader->file, address, "damaged: the root is not a group", error);
    *ret_entered = enter(reader, &object, arena, error);
    return *ret_entered;
}

static bool is_entered(const struct reader *reader, uint64_t address)
{
    for (unsigned i = 0; i < reader->depth; i++)
        if (reader->levels[i].address == address)
            return true;
    return false;
}

static bool read_at(struct reader *reader, uint64_t address, bool *ret_entered, struct error *error)
{
    struct arena *arena = arena_new();
    bool good = read_object(reader, address, arena, ret_entered, error);
    if (!*ret_entered)
        arena_free(arena);
    return good;
}

/* Takes an object that another link led to before. */
static bool take_again(struct reader *reader, uint64_t address, size_t seen, struct error *error)
{
    bool entered;
    if (seen == is_other || (seen == is_group && is_entered(reader, address)))
        return true;
    if (seen != is_group)
        return repeat_tensor(reader, seen, error);
    if (reader->n_entered_again++ == MAX_ENTERED_AGAIN)
        return error_set(error, "%s: more than %d hard links lead to groups that have other links",
                         source_name(reader->source), MAX_ENTERED_AGAIN);
    return read_at(reader, address, &entered, error);
}

static bool take_object(struct reader *reader, uint64_t address, struct error *error)
{
    size_t seen, n_tensors = reader->tensors->n_tensors;
    bool entered;
    if (text_index_find(&reader->seen, (const char *)&address, sizeof address, &seen))
        return take_again(reader, address, seen, error);
    if (!read_at(reader, address, &entered, error))
        return false;
    bool is_tensor = reader->tensors->n_tensors > n_tensors;
    const char *key = arena_copy(reader->scratch, &address, sizeof address);
    text_index_add(&reader->seen, key, sizeof address, is_tensor ? n_tensors : entered ? is_group : is_other);
    return true;
}

static bool take_link(struct reader *reader, const struct level *level, const struct hdf5_link *link,
                      struct error *error)
{
    reader->path.length = level->path_length;
    buffer_append_text(&reader->path, link->name);
    if (!link->is_hard) {
        reader->n_external += link->is_external;
        reader->n_soft += !link->is_external;
        return true;
    }
    return take_object(reader, link->address, error);
}

static bool read_tree(struct reader *reader, struct error *error)
{
    if (!take_object(reader, reader->file->root, error))
        return false;
    while (reader->depth > 0) {
        struct level *level = &reader->levels[reader->depth - 1];
        if (level->next == level->links.n_links) {
            arena_free(level->arena);
            reader->depth--;
        } else if (!take_link(reader, level, &level->links.links[level->next++], error)) {
            return false;
        }
    }
    return true;
}

static void free_reader(struct reader *reader)
{
    while (reader->depth > 0)
        arena_free(reader->levels[--reader->depth].arena);
    text_index_free(&reader->seen);
    arena_free(reader->scratch);
    buffer_free(&reader->path);
    free(reader->chunked_tensors);
    free(reader->repeated);
    free(reader->file);
    free(reader);
}

static bool finish(struct reader *reader, size_t n_before, struct error *error)
{
    if (reader->tensors->n_tensors == n_before)
        return error_set(error, "%s: an HDF5 file without datasets", source_name(reader->source));
    uint64_t n_most;
    if (!checked_multiply(reader->n_bytes, REPEATED_RATIO, &n_most) || !checked_add(n_most, REPEATED_CONSTANT, &n_most))
        n_most = UINT64_MAX;
    if (reader->n_repeated_bytes > n_most)
        return error_set(error, "%s: hard links show its datasets more than %d times", source_name(reader->source),
                         REPEATED_RATIO);
    if (reader->n_soft > 0)
        checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "%s: %zu soft link%s not followed",
                        source_name(reader->source), reader->n_soft, reader->n_soft == 1 ? " is" : "s are");
    if (reader->n_external > 0)
        checkpoint_lacks(reader->checkpoint, reader->options, "%s: %zu external link%s in %s",
                         source_name(reader->source), reader->n_external,
                         reader->n_external == 1 ? " leads to a dataset" : "s lead to datasets",
                         reader->n_external == 1 ? "another file" : "other files");
    return true;
}

static bool hdf5_read_file(struct checkpoint *checkpoint, struct source *source, struct tensor_set *tensors,
                           const struct open_options *options, struct error *error)
{
    size_t n_before = tensors->n_tensors;
    if (!source_check_fetched(source, error))
        return false;
    struct hdf5 *file = hdf5_open(source, error);
    if (file == NULL)
        return false;
    struct reader *reader = memory_alloc(sizeof *reader);
    *reader = (struct reader){
        .checkpoint = checkpoint,
        .source = source,
        .tensors = tensors,
        .options = options,
        .file = file,
        .chunked = hdf5_chunked_new(file),
        .scratch = arena_new(),
        .names_left = NAMES_CONSTANT + NAMES_RATIO * source_size(source),
    };
    bool good = read_tree(reader, error) && finish(reader, n_before, error);
    if (good && file->unread.message[0] != '\0')
        good = error_set(error, "%s", file->unread.message);
    if (good) {
        add_chunked_views(reader);
        set_repeated_views(reader);
    } else {
        hdf5_chunked_free(reader->chunked);
    }
    free_reader(reader);
    return good;
}

static enum probe hdf5_probe(const struct input *input)
{
    if (input->file == NULL)
        return PROBE_NO;
    /* a superblock after a user block may be anywhere, in bytes of other formats, too: then the name decides */
    if (hdf5_is_superblock(input->head, input->head_length))
        return PROBE_SURE;
    return format_extension(&hdf5_format, input->file_name) != NULL ? PROBE_LIKELY : PROBE_NO;
}

static const struct extension extensions[] = {{".h5"}, {".hdf5"}, {0}};

const struct format hdf5_format = {
    .name = "hdf5",
    .extensions = extensions,
    .summary = "HDF5 files of Keras and TensorFlow: .h5, .hdf5, .weights.h5",
    .probe = hdf5_probe,
    .read_file = hdf5_read_file,
};
