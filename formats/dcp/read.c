/* Distributed torch checkpoints: directories that torch.distributed.checkpoint (FSDP, torchtitan, Megatron-Core's
 * torch_dist) saves during training, with .metadata and *.distcp.
 *
 * A tensor has the name in the state dict, its dict keys joined by '.'. If the path of every name begins with the same
 * key app, model or state_dict, names omit the key, repeatedly: a model saved as {"model": ...} has the names that its
 * class uses. The state of an optimizer, which is twice as large as the model, is shown only on request. Of entries
 * that are Python objects, only the tensors are shown (chunk.c).
 *
 * Stricter than torch: a file outside of the directory, and chunks outside of a tensor or with gaps, are refused. */
#include "base/checked.h"
#include "base/sort.h"
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/dcp/dcp.h"
#include "formats/format.h"
#include "formats/shape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 65536, SHOWN_NAME = 200 };

static const char metadata_name[] = ".metadata";

/* A file of chunks. */
struct file {
    struct dcp_text name;
    struct source *source;
    bool checked;            /* one of its chunks has been read */
    struct dcp_parts *parts; /* its chunks, if they are stored as safetensors; else NULL */
};

struct reader {
    struct checkpoint *checkpoint;
    const struct input *input;
    const struct open_options *options;
    struct arena *scratch;
    struct dcp_metadata metadata;
    struct dcp_chunks *chunks;
    struct file *files; /* sorted by name */
    size_t n_files, n_optimizer;
    struct dcp_text root;  /* the keys that begin every shown name and are omitted */
    size_t n_read_objects; /* that hold tensors */
};

static bool is_distcp(const char *name)
{
    return text_ends_with(name, ".distcp");
}

static enum probe dcp_probe(const struct input *input)
{
    bool is_named = input->file == NULL || strcmp(input->file_name, metadata_name) == 0;
    if (!is_named || !input_has(input, metadata_name))
        return PROBE_NO;
    for (size_t i = 0; i < input->list.count; i++)
        if (is_distcp(input->list.entries[i].name))
            return PROBE_SURE;
    return PROBE_NO;
}

static bool is_shown(const struct reader *reader, struct dcp_text name)
{
    return reader->options->optimizer || !tensor_is_of_optimizer(name.bytes, name.length);
}

/* Files. */

static int compare_names(struct dcp_text a, struct dcp_text b)
{
    return text_compare(a.bytes, a.length, b.bytes, b.length);
}

static int compare_files(const void *a, const void *b)
{
    return compare_names(((const struct file *)a)->name, ((const struct file *)b)->name);
}

struct wanted_file {
    const struct file *files;
    struct dcp_text name;
};

static bool file_comes_before(const void *context, size_t index)
{
    const struct wanted_file *wanted = context;
    return compare_names(wanted->files[index].name, wanted->name) < 0;
}

static struct file *find_file(const struct reader *reader, struct dcp_text name)
{
    const struct wanted_file wanted = {reader->files, name};
    return &reader->files[search_first(reader->n_files, file_comes_before, &wanted)];
}

/* Collects the names of files, each once, sorted. Neighbours in .metadata lie in the same file. */
static bool collect_files(struct reader *reader, struct error *error)
{
    const struct dcp_metadata *metadata = &reader->metadata;
    struct file *files = arena_array(reader->scratch, metadata->n_places + metadata->n_object_places, sizeof *files);
    size_t n = 0, n_files = 0;
    for (size_t i = 0; i < metadata->n_places + metadata->n_object_places; i++) {
        const struct dcp_place *place =
            i < metadata->n_places ? &metadata->places[i] : &metadata->objects[i - metadata->n_places];
        if (n == 0 || compare_names(files[n - 1].name, place->file) != 0)
            files[n++].name = place->file;
    }
    qsort(files, n, sizeof *files, compare_files);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || compare_files(&files[n_files - 1], &files[i]) != 0)
            files[n_files++] = files[i];
    reader->files = files;
    reader->n_files = n_files;
    return n_files <= MAX_FILES ||
           error_set(error, "%s: too many files: %zu, the limit is %d", metadata_name, n_files, MAX_FILES);
}

static bool open_files(struct reader *reader, struct error *error)
{
    if (!collect_files(reader, error))
        return false;
    for (struct file *file = reader->files; file < reader->files + reader->n_files; file++) {
        const char *path = arena_strndup(reader->scratch, file->name.bytes, file->name.length);
        file->source = location_source(reader->input->location, path, error);
        if (file->source == NULL)
            return error_prefix(error, "%s", metadata_name);
        checkpoint_add_source(reader->checkpoint, file->source);
    }
    return true;
}

/* Tensors. */

static bool refuse(const struct dcp_tensor *tensor, const char *reason, struct error *error)
{
    char shown[SHOWN_NAME];
    text_printable(tensor->name.bytes, tensor->name.length, shown, sizeof shown);
    return error_set(error, "%s: tensor '%s': %s", metadata_name, shown, reason);
}

static bool is_empty(const struct dcp_box *chunk, unsigned rank)
{
    for (unsigned i = 0; i < rank; i++)
        if (chunk->sizes[i] == 0)
            return true;
    return false;
}

static bool check_place(const struct file *file, const struct dcp_place *place, const char *what, struct error *error)
{
    uint64_t size = source_size(file->source);
    return (place->offset <= size && place->length <= size - place->offset) ||
           error_set(error, "%s: truncated: %s at bytes %" PRIu64 " to %" PRIu64 ", but the file has %" PRIu64,
                     source_name(file->source), what, place->offset, place->offset + place->length, size);
}

/* Makes the view of a chunk in a file. The first chunk of each file is read at once, so that a damaged file is refused.
 */
static const struct view *chunk_view(struct reader *reader, struct file *file, const struct dcp_place *place,
                                     const struct dcp_tensor *tensor, const struct dcp_box *chunk, struct error *error)
{
    bool is_first = !file->checked;
    file->checked = true;
    if (is_first &&
        !dcp_parts_read(reader->checkpoint, file->source, place->offset, reader->options, &file->parts, error))
        return NULL;
    if (file->parts != NULL)
        return dcp_part_view(file->parts, tensor, chunk, place->offset, error);
    const uint64_t *shape = arena_copy(reader->checkpoint->arena, chunk->sizes, tensor->rank * sizeof *shape);
    const struct view *view =
        dcp_chunk_view(reader->chunks, file->source, place->offset, place->length, tensor->dtype, tensor->rank, shape);
    return !is_first || dcp_chunk_check(view, error) ? view : NULL;
}

static bool make_tile(struct reader *reader, const struct dcp_tensor *tensor, const struct dcp_box *chunk,
                      struct tile *tile, struct error *error)
{
    const struct dcp_place *place = dcp_find_place(&reader->metadata, tensor, chunk);
    if (place == NULL)
        return refuse(tensor, "the place of a chunk is missing", error);
    if (place->transformed)
        return refuse(tensor, "an extension has transformed or compressed it; save the checkpoint without extensions",
                      error);
    struct file *file = find_file(reader, place->file);
    if (!check_place(file, place, "a chunk", error))
        return false;
    tile->first = chunk->first;
    tile->view = chunk_view(reader, file, place, tensor, chunk, error);
    return tile->view != NULL;
}

static const struct view *make_view(struct reader *reader, const struct dcp_tensor *tensor, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    const struct dcp_box whole = {.sizes = tensor->shape};
    if (is_empty(&whole, tensor->rank))
        return view_literal(arena, tensor->dtype, tensor->rank, tensor->shape, "");
    struct tile *tiles = memory_alloc(tensor->n_chunks * sizeof *tiles + 1);
    size_t n_tiles = 0;
    bool good = true;
    for (size_t i = 0; i < tensor->n_chunks && good; i++)
        if (!is_empty(&tensor->chunks[i], tensor->rank))
            good = make_tile(reader, tensor, &tensor->chunks[i], &tiles[n_tiles++], error);
    const char *reason;
    const struct view *view = good ? tiles_join(arena, tiles, n_tiles, tensor->rank, tensor->shape, &reason) : NULL;
    free(tiles);
    if (good && view == NULL)
        refuse(tensor, reason, error);
    return view;
}

static bool add_tensor(struct reader *reader, const struct dcp_tensor *tensor, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    size_t length = tensor->name.length - reader->root.length;
    struct tensor added = {.name = arena_strndup(arena, tensor->name.bytes + reader->root.length, length),
                           .name_length = (uint32_t)length,
                           .rank = (uint8_t)tensor->rank,
                           .dtype = tensor->dtype};
    added.shape = arena_copy(arena, tensor->shape, tensor->rank * sizeof *tensor->shape);
    added.view = make_view(reader, tensor, error);
    if (added.view == NULL)
        return false;
    tensor_set_add(reader->checkpoint->unsealed, &added);
    return true;
}

/* Returns the keys that begin every shown name and can be omitted. */
static struct dcp_text common_root(const struct reader *reader)
{
    const struct dcp_tensor *first = NULL;
    size_t length = 0;
    for (size_t i = 0; i < reader->metadata.n_tensors; i++) {
        const struct dcp_tensor *tensor = &reader->metadata.tensors[i];
        if (!is_shown(reader, tensor->name))
            continue;
        if (first == NULL) {
            first = tensor;
            length = tensor->root_length;
        }
        while (length > 0 &&
               (tensor->root_length < length || memcmp(tensor->name.bytes, first->name.bytes, length) != 0))
            for (length--; length > 0 && first->name.bytes[length - 1] != '.'; length--)
                ;
    }
    return (struct dcp_text){first != NULL ? first->name.bytes : "", length};
}

/* Objects. */

/* Adds the tensors of an object. */
static bool read_object(struct reader *reader, const struct dcp_place *place, bool *ret_found, struct error *error)
{
    size_t root = reader->root.length;
    bool is_rooted = place->name.length > root && memcmp(place->name.bytes, reader->root.bytes, root) == 0;
    size_t cut = is_rooted ? root : 0;
    const char *name = arena_strndup(reader->scratch, place->name.bytes + cut, place->name.length - cut);
    struct file *file = find_file(reader, place->file);
    return check_place(file, place, "an object", error) &&
           dcp_object_read(reader->checkpoint, file->source, place->offset, place->length, name, ret_found, error);
}

/* Objects lie apart from each other, so that reading them takes no longer than the files are. */
static bool check_objects(const struct reader *reader, struct error *error)
{
    uint64_t n_bytes = 0, n_stored = 0;
    for (size_t i = 0; i < reader->n_files; i++)
        n_stored += source_size(reader->files[i].source);
    for (size_t i = 0; i < reader->metadata.n_object_places; i++)
        if (!checked_add(n_bytes, reader->metadata.objects[i].length, &n_bytes) || n_bytes > n_stored)
            return error_set(error, "%s: its objects have more bytes than all files, %" PRIu64, metadata_name,
                             n_stored);
    return true;
}

static bool add_objects(struct reader *reader, struct error *error)
{
    if (!check_objects(reader, error))
        return false;
    for (size_t i = 0; i < reader->metadata.n_object_places; i++) {
        const struct dcp_place *place = &reader->metadata.objects[i];
        struct error reason;
        char shown[SHOWN_NAME];
        bool found = false;
        if (!is_shown(reader, place->name))
            continue;
        if (place->transformed || !read_object(reader, place, &found, &reason)) {
            text_printable(place->name.bytes, place->name.length, shown, sizeof shown);
            checkpoint_lacks(reader->checkpoint, reader->options, "%s: the object '%s' is not read: %s", metadata_name,
                             shown, place->transformed ? "an extension has transformed it" : reason.message);
        }
        reader->n_read_objects += found;
    }
    return true;
}

static bool add_tensors(struct reader *reader, struct error *error)
{
    const struct dcp_metadata *metadata = &reader->metadata;
    reader->root = common_root(reader);
    for (size_t i = 0; i < metadata->n_tensors; i++)
        if (!is_shown(reader, metadata->tensors[i].name))
            reader->n_optimizer++;
        else if (!add_tensor(reader, &metadata->tensors[i], error))
            return false;
    if (!add_objects(reader, error))
        return false;
    if (reader->checkpoint->unsealed->n_tensors == 0)
        return error_set(error, "%s: %s", metadata_name,
                         reader->n_optimizer > 0 ? "only the state of an optimizer; -o optimizer shows it"
                                                 : "it describes no tensors");
    return true;
}

static void add_hints(const struct reader *reader)
{
    if (reader->n_optimizer > 0)
        checkpoint_hint(reader->checkpoint, SUBJECT_SOURCE,
                        "%zu tensors of an optimizer's state are not shown; -o optimizer shows them",
                        reader->n_optimizer);
    if (reader->metadata.n_objects > reader->n_read_objects)
        checkpoint_hint(reader->checkpoint, SUBJECT_SOURCE, "%s: %zu entries are Python objects and are not shown",
                        metadata_name, reader->metadata.n_objects - reader->n_read_objects);
}

static bool read_checkpoint(struct reader *reader, struct error *error)
{
    struct source *source = location_source(reader->input->location, metadata_name, error);
    if (source == NULL)
        return false;
    bool good = dcp_metadata_read(&reader->metadata, source, reader->scratch, error) && open_files(reader, error) &&
                add_tensors(reader, error);
    checkpoint_add_guide(reader->checkpoint, source); /* after the weights */
    return good;
}

static bool dcp_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                     struct error *error)
{
    struct reader reader = {
        .checkpoint = checkpoint,
        .input = input,
        .options = options,
        .scratch = arena_new(),
        .chunks = dcp_chunks_new(checkpoint->arena),
    };
    bool good = read_checkpoint(&reader, error);
    if (good)
        add_hints(&reader);
    arena_free(reader.scratch);
    if (!good)
        return false;
    format_add_side_files(checkpoint, input);
    return true;
}

static const struct extension extensions[] = {{".distcp"}, {0}};

const struct format dcp_format = {
    .name = "dcp",
    .extensions = extensions,
    .summary = "a distributed torch checkpoint: .metadata, *.distcp",
    .probe = dcp_probe,
    .open = dcp_open,
};
