/* TensorFlow checkpoints: P.index and P.data-00000-of-00001 ..., on their own or as the variables of a SavedModel.
 *
 * Names are the keys of the index, unchanged: "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE". Tensors are in the order
 * of their names; the constants of a SavedModel's graph follow (graph.c), with "~2" after the name of a variable. The
 * slices of a partitioned variable are joined. Texts, such as the graph of objects, are listed without values.
 * Checksums of tensors, unlike those of the index, are not compared.
 *
 * In a directory with a file `checkpoint`, which names the latest one, that is opened; else the only one. */
#include "base/sort.h"
#include "base/text.h"
#include "formats/bits.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATE = 1024 * 1024, MAX_SLICES = 1024 * 1024 };

/* Names may take so many bytes for each byte of the index, and a constant: keys share their beginnings. */
enum { NAMES_RATIO = 16, NAMES_CONSTANT = 1024 * 1024 };

static const char index_ending[] = ".index", state_name[] = "checkpoint", graph_name[] = "saved_model.pb";
static const char variables_index[] = "variables/variables.index";

/* A slice of a variable. */
struct slice {
    const char *name;
    size_t name_length;
    const uint64_t *first, *sizes; /* as in struct bundle_slice, of the view's rank */
    const struct view *view;
};

struct reader {
    struct checkpoint *checkpoint;
    const struct input *input;
    const struct source *index;
    const char *prefix; /* of the data files: "ckpt-1" */
    struct bundle_header header;
    bool has_header;
    struct source **shards; /* by number; NULL: not opened yet */
    struct slice *slices;   /* in the order of their names */
    size_t n_slices;
    uint64_t names_left;
    struct window window;
};

static bool refuse(const struct reader *reader, const struct table_entry *entry, const char *reason,
                   struct error *error)
{
    char shown[200];
    text_printable(entry->key, entry->key_length, shown, sizeof shown);
    return error_set(error, "%s: tensor '%s': %s", source_name(reader->index), shown, reason);
}

/* Returns the message in a value. */
static struct protobuf message_of(struct reader *reader, const struct source *value)
{
    reader->window.source = value;
    reader->window.length = 0;
    return (struct protobuf){.window = &reader->window, .name = source_name(reader->index), .end = source_size(value)};
}

static const char *copy_name(struct reader *reader, const char *name, size_t length)
{
    if (length > reader->names_left)
        return NULL;
    reader->names_left -= length;
    return arena_strndup(reader->checkpoint->arena, name, length);
}

/* Data files. */

static struct source *open_shard(struct reader *reader, uint64_t number, struct error *error)
{
    if (number >= reader->header.n_shards) {
        error_set(error, "%s: a tensor in data file %" PRIu64 ", but there are %" PRIu32, source_name(reader->index),
                  number, reader->header.n_shards);
        return NULL;
    }
    if (reader->shards[number] != NULL)
        return reader->shards[number];
    const char *path = arena_printf(reader->checkpoint->arena, "%s.data-%05" PRIu64 "-of-%05" PRIu32, reader->prefix,
                                    number, reader->header.n_shards);
    struct source *shard = location_source(reader->input->location, path, error);
    if (shard == NULL)
        return NULL;
    checkpoint_add_source(reader->checkpoint, shard);
    reader->shards[number] = shard;
    return shard;
}

/* Sets where the elements of an entry lie, and their dtype and shape. */
static bool place_elements(struct reader *reader, const struct table_entry *entry, const struct bundle_entry *found,
                           struct tensor *tensor, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    uint64_t n_elements, n_bytes;
    tensor->dtype = found->dtype;
    tensor->rank = (uint8_t)found->rank;
    tensor->shape = arena_copy(arena, found->shape, found->rank * sizeof *found->shape);
    tensor->refusal = found->refusal;
    tensor->is_no_number = found->refusal != NULL;
    if (!shape_size(found->dtype, found->shape, found->rank, &n_elements, &n_bytes, NULL))
        return refuse(reader, entry, "its size overflows", error);
    if (found->refusal != NULL || found->is_sliced)
        return true;
    if (found->size != n_bytes)
        return refuse(reader, entry, "its size in the index is not that of its shape", error);
    struct source *shard = open_shard(reader, found->shard, error);
    if (shard == NULL)
        return false;
    if (found->offset > source_size(shard) || n_bytes > source_size(shard) - found->offset)
        return error_set(
            error, "%s: truncated: a tensor of %" PRIu64 " bytes at offset %" PRIu64 ", but the file has %" PRIu64,
            source_name(shard), n_bytes, found->offset, source_size(shard));
    tensor->source = shard;
    tensor->offset = found->offset;
    tensor->length = n_bytes;
    bool complex = found->dtype->kind == DTYPE_COMPLEX;
    const struct bits bits = {.component_bytes = (uint8_t)(found->dtype->block_bytes / (complex ? 2 : 1)),
                              .swap = true};
    if (reader->header.big_endian && bits.component_bytes > 1)
        tensor->view = view_bits(arena, tensor_view(tensor, arena), bits);
    return true;
}

/* Slices. */

static bool add_slice(struct reader *reader, const struct table_entry *entry, const struct bundle_entry *found,
                      struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    struct slice slice;
    struct bundle_slice place;
    struct tensor tensor = {.name = NULL};
    char *name = memory_alloc(entry->key_length + 1);
    bool good = bundle_read_slice_key(entry->key, entry->key_length, name, &slice.name_length, &place);
    slice.name = good ? copy_name(reader, name, slice.name_length) : NULL;
    free(name);
    if (slice.name == NULL || place.rank != found->rank || found->is_sliced || found->refusal != NULL ||
        reader->n_slices == MAX_SLICES)
        return refuse(reader, entry, "the key of a slice is damaged", error);
    if (!place_elements(reader, entry, found, &tensor, error))
        return false;
    slice.first = arena_copy(arena, place.first, place.rank * sizeof *place.first);
    slice.sizes = arena_copy(arena, place.sizes, place.rank * sizeof *place.sizes);
    slice.view = tensor_view(&tensor, arena);
    if ((reader->n_slices & (reader->n_slices - 1)) == 0)
        reader->slices =
            memory_resize(reader->slices, (reader->n_slices ? 2 * reader->n_slices : 1) * sizeof *reader->slices);
    reader->slices[reader->n_slices++] = slice;
    return true;
}

/* Reports whether a slice covers what its key says of a variable. */
static bool fits(const struct slice *slice, const struct tensor *tensor)
{
    if (slice->view->dtype != tensor->dtype || slice->view->rank != tensor->rank)
        return false;
    for (unsigned i = 0; i < tensor->rank; i++) {
        uint64_t size = slice->sizes[i] == BUNDLE_WHOLE ? tensor->shape[i] : slice->sizes[i];
        if (slice->view->shape[i] != size || size == 0)
            return false;
    }
    return true;
}

struct wanted_slices {
    const struct slice *slices;
    const struct tensor *tensor;
};

static bool comes_before(const void *context, size_t index)
{
    const struct wanted_slices *wanted = context;
    const struct slice *slice = &wanted->slices[index];
    return text_compare(slice->name, slice->name_length, wanted->tensor->name, wanted->tensor->name_length) < 0;
}

/* Joins the slices of a variable, whose keys came before, in the order of names. A variable whose slices do not fit is
 * listed. */
static void join_slices(struct reader *reader, struct tensor *tensor)
{
    const struct wanted_slices wanted = {reader->slices, tensor};
    size_t start = search_first(reader->n_slices, comes_before, &wanted), end = start;
    bool all_fit = true;
    for (; end < reader->n_slices && text_compare(reader->slices[end].name, reader->slices[end].name_length,
                                                  tensor->name, tensor->name_length) == 0;
         end++)
        all_fit &= fits(&reader->slices[end], tensor);
    const char *reason = "its slices have other shapes than their keys say";
    struct tile *tiles = memory_alloc((end - start) * sizeof *tiles + 1);
    for (size_t i = start; i < end; i++)
        tiles[i - start] = (struct tile){reader->slices[i].view, reader->slices[i].first};
    if (all_fit)
        tensor->view = tiles_join(reader->checkpoint->arena, tiles, end - start, tensor->rank, tensor->shape, &reason);
    if (tensor->view == NULL)
        tensor->refusal = reason;
    free(tiles);
}

/* Entries. */

static bool read_header(struct reader *reader, const struct table_entry *entry, struct error *error)
{
    if (entry->key_length > 0)
        return error_set(error, "%s: the header is missing", source_name(reader->index));
    reader->has_header = true;
    if (!bundle_read_header(message_of(reader, entry->value), &reader->header, error))
        return false;
    reader->shards = memory_alloc(reader->header.n_shards * sizeof(struct source *));
    memset(reader->shards, 0, reader->header.n_shards * sizeof(struct source *));
    return true;
}

static bool take_entry(void *context, const struct table_entry *entry, struct error *error)
{
    struct reader *reader = context;
    struct bundle_entry found;
    struct tensor tensor = {.name_length = (uint32_t)entry->key_length};
    if (!reader->has_header)
        return read_header(reader, entry, error);
    if (entry->key_length == 0)
        return error_set(error, "%s: two headers", source_name(reader->index));
    if (!bundle_read_entry(message_of(reader, entry->value), &found, error))
        return false;
    if (*entry->key == '\0')
        return add_slice(reader, entry, &found, error);
    tensor.name = copy_name(reader, entry->key, entry->key_length);
    if (tensor.name == NULL || reader->checkpoint->tensors->n_tensors == TENSOR_SET_MAX)
        return refuse(reader, entry, "there are too many names, or they are too long", error);
    if (!place_elements(reader, entry, &found, &tensor, error))
        return false;
    if (found.is_sliced)
        join_slices(reader, &tensor);
    tensor_set_add(reader->checkpoint->unsealed, &tensor);
    return true;
}

/* Finding the index. */

/* Returns the index of the checkpoint that the file `checkpoint` names last, in the arena; NULL: none. */
static const char *index_of_state(const struct input *input, struct arena *arena)
{
    static const char key[] = "model_checkpoint_path:";
    struct error unused;
    size_t length;
    const char *found = NULL;
    struct source *source = location_source(input->location, state_name, &unused);
    char *text = source != NULL ? source_read_text(source, MAX_STATE, &length, &unused) : NULL;
    char *at = text != NULL && text_starts_with(text, key) ? strchr(text, '"') : NULL;
    char *end = at != NULL ? strpbrk(at + 1, "\"\n") : NULL;
    if (end != NULL && *end == '"') {
        *end = '\0';
        const char *slash = strrchr(at, '/');
        found = arena_printf(arena, "%s%s", slash != NULL ? slash + 1 : at + 1, index_ending);
    }
    free(text);
    source_close(source);
    return found != NULL && input_has(input, found) ? found : NULL;
}

static bool is_index(const struct input *input, const char *name)
{
    size_t length = strlen(name), stem = length - strlen(index_ending);
    if (!text_ends_with(name, index_ending))
        return false;
    for (size_t i = 0; i < input->list.count; i++)
        if (strncmp(input->list.entries[i].name, name, stem) == 0 &&
            text_starts_with(input->list.entries[i].name + stem, ".data-"))
            return true;
    return false;
}

/* Returns the path of the index to read. */
static const char *choose_index(const struct input *input, struct arena *arena, struct error *error)
{
    const char *found = NULL;
    if (input->file_name != NULL)
        return input->file_name;
    if (input_has(input, graph_name))
        return variables_index;
    const char *latest = input_has(input, state_name) ? index_of_state(input, arena) : NULL;
    if (latest != NULL)
        return latest;
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (!is_index(input, name))
            continue;
        if (found != NULL) {
            error_set(error, "%s: %s and %s: several TensorFlow checkpoints; name one file", input->path, found, name);
            return NULL;
        }
        found = name;
    }
    return found;
}

/* Reports whether saved_model.pb begins as such a message does, with the field for the version. */
static bool is_saved_model(const struct input *input)
{
    enum { VERSION_TAG = 1 << 3 | PROTOBUF_VARINT };
    unsigned char tag = 0;
    struct error unused;
    struct source *file = location_source(input->location, graph_name, &unused);
    bool is_message = file != NULL && source_size(file) > 0 && source_read(file, 0, 1, &tag, &unused);
    source_close(file);
    return is_message && tag == VERSION_TAG;
}

static enum probe tensorflow_probe(const struct input *input)
{
    if (input->file != NULL && input->location == NULL)
        return PROBE_NO; /* the data files would be missing */
    if (input->file != NULL && table_probe(input->file))
        return PROBE_SURE;
    if (input->file != NULL)
        return is_index(input, input->file_name) ? PROBE_LIKELY : PROBE_NO;
    if (input_has(input, graph_name) && (input_has(input, "variables") || is_saved_model(input)))
        return PROBE_MAYBE;
    for (size_t i = 0; i < input->list.count; i++)
        if (is_index(input, input->list.entries[i].name))
            return PROBE_MAYBE; /* Hugging Face's files come first */
    return PROBE_NO;
}

/* Hides data files, whose names have no ending of weights. */
static void hide_data(struct checkpoint *checkpoint)
{
    for (size_t i = checkpoint->n_side_files; i-- > 0;) {
        const char *name = checkpoint->side_files[i].name;
        if (strstr(name, ".data-") != NULL && strstr(name, "-of-") != NULL)
            checkpoint_hide_side_file(checkpoint, name, "weights");
    }
}

static bool read_bundle(struct reader *reader, struct error *error)
{
    struct checkpoint *checkpoint = reader->checkpoint;
    if (!table_read(reader->index, take_entry, reader, error))
        return false;
    return checkpoint->tensors->n_tensors > 0 ||
           error_set(error, "%s: a TensorFlow checkpoint without tensors", source_name(reader->index));
}

static bool read_variables(struct checkpoint *checkpoint, const struct input *input, const char *path,
                           struct error *error)
{
    struct source *index = location_source(input->location, path, error);
    if (index == NULL)
        return false;
    struct reader *reader = memory_alloc(sizeof *reader);
    *reader = (struct reader){
        .checkpoint = checkpoint,
        .input = input,
        .index = index,
        .names_left = NAMES_CONSTANT + NAMES_RATIO * source_size(index),
    };
    size_t stem = strlen(path) - (text_ends_with(path, index_ending) ? strlen(index_ending) : 0);
    reader->prefix = arena_strndup(checkpoint->arena, path, stem);
    bool good = read_bundle(reader, error);
    checkpoint_add_guide(checkpoint, index); /* after the weights */
    free(reader->shards);
    free(reader->slices);
    free(reader);
    return good;
}

/* Constants of a SavedModel. */

struct wanted_variable {
    const struct tensor *variables, *constant;
};

static bool variable_comes_before(const void *context, size_t index)
{
    const struct wanted_variable *wanted = context;
    const struct tensor *variable = &wanted->variables[index];
    return text_compare(variable->name, variable->name_length, wanted->constant->name, wanted->constant->name_length) <
           0;
}

/* Adds a constant after the first `n_variables` tensors, which are sorted by name. */
static void add_constant(struct checkpoint *checkpoint, size_t n_variables, struct tensor constant)
{
    const struct tensor *variables = checkpoint->tensors->tensors;
    const struct wanted_variable wanted = {variables, &constant};
    size_t at = search_first(n_variables, variable_comes_before, &wanted);
    if (at < n_variables &&
        text_compare(variables[at].name, variables[at].name_length, constant.name, constant.name_length) == 0) {
        constant.name = arena_printf(checkpoint->arena, "%s~2", constant.name);
        constant.name_length = (uint32_t)strlen(constant.name);
    }
    tensor_set_add(checkpoint->unsealed, &constant);
}

/* Adds the constants of a SavedModel. If its graph cannot be read, the variables are a part of the model. */
static bool read_constants(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                           struct error *error)
{
    size_t n_variables = checkpoint->tensors->n_tensors;
    struct source *file = location_source(input->location, graph_name, error);
    if (file == NULL)
        return false;
    struct tensor_set *constants = tensor_set_new(checkpoint->arena);
    bool good = saved_model_read(checkpoint, file, constants, error);
    if (good && constants->n_tensors > 0)
        checkpoint_add_source(checkpoint, file);
    else
        checkpoint_add_guide(checkpoint, file);
    if (!good && n_variables > 0) {
        checkpoint_lacks(checkpoint, options, "the constants of the graph cannot be read (%s)", error->message);
        return true;
    }
    for (size_t i = 0; i < constants->n_tensors; i++)
        add_constant(checkpoint, n_variables, constants->tensors[i]);
    return good && (checkpoint->tensors->n_tensors > 0 ||
                    error_set(error, "%s: a TensorFlow graph without variables and constants", graph_name));
}

static bool tensorflow_open(struct checkpoint *checkpoint, const struct input *input,
                            const struct open_options *options, struct error *error)
{
    bool is_model = input->file_name == NULL && input_has(input, graph_name);
    const char *path = choose_index(input, checkpoint->arena, error);
    if (path == NULL)
        return false;
    bool has_variables = !is_model || location_kind(input->location, path) != LOCATION_NOTHING;
    if ((has_variables && !read_variables(checkpoint, input, path, error)) ||
        (is_model && !read_constants(checkpoint, input, options, error)))
        return false;
    format_add_side_files(checkpoint, input);
    hide_data(checkpoint);
    return true;
}

static const struct extension extensions[] = {{".index", .shared = true}, {0}};

const struct format tensorflow_format = {
    .name = "tensorflow",
    .extensions = extensions,
    .directory_name = "saved_model.pb",
    .summary = "TensorFlow checkpoints: *.index, *.data-00000-of-00001, SavedModel",
    .probe = tensorflow_probe,
    .open = tensorflow_open,
};
