/* safetensors: a length, a JSON header, the elements of all tensors without gaps.
 *
 * The checks are those of the reference implementation (the safetensors crate) in its order, with its limits. Stricter
 * on purpose, it refuses duplicate keys, as the format's description demands, two spellings that only the crate's JSON
 * library accepts (a tensor as an array, a dtype as an object), names of more than TENSOR_MAX_NAME bytes, and more than
 * SHAPE_MAX_RANK dimensions. */
#include "formats/safetensors/safetensors.h"

#include "base/checked.h"
#include "base/sort.h"
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100 * 1000 * 1000, SHOWN_NAME = 200, SHOWN_SHAPE = 160 };

/* The shortest text of a tensor that is valid. */
#define SHORTEST_ENTRY "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,0]}"

/* The format's own list: wfs has more dtypes. */
static const char *const dtype_names[] = {
    "BF16",    "F16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4",   "F6_E2M3",
    "F6_E3M2", "I8",  "I16", "I32", "I64",     "U8",      "U16",     "U32",         "U64",         "BOOL", "C64",
};

/* Neighbouring tensors share few shapes, which are kept once. */
enum { RECENT_SHAPES = 8 };

struct shape {
    const uint64_t *sizes;
    unsigned rank;
};

/* A file being read. `tensors` are in the order of the header, with room for as many as its length allows, most of
 * which is never touched; `order` is that of their offsets. */
struct reader {
    struct checkpoint *checkpoint;
    struct source *source;
    struct tensor_set *set;
    const char *file;
    struct tensor *tensors;
    uint32_t *order;
    size_t n_tensors;
    const struct open_options *options;
    const char **ret_places;            /* of safetensors_read_parts(); NULL: the file has whole tensors */
    bool has_metadata, is_blamed;       /* is_blamed: the error names the file */
    struct shape shapes[RECENT_SHAPES]; /* of earlier tensors, the last first */
    const struct dtype *dtype;          /* of the last tensor; NULL: there is none yet */
};

/* Puts the file and the tensor before an error. */
static bool blame(const struct reader *reader, const struct tensor *tensor, struct error *error)
{
    char name[SHOWN_NAME];
    text_printable(tensor->name, tensor->name_length, name, sizeof name);
    return error_prefix(error, "%s: tensor '%s'", reader->file, name);
}

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtype_names / sizeof *dtype_names; i++)
        if (strcmp(dtype_names[i], name) == 0)
            return dtype_by_name(name);
    return NULL;
}

static bool parse_dtype(struct reader *reader, const struct json *value, struct error *error)
{
    size_t length;
    const char *name = json_string(value, &length);
    if (name == NULL)
        return error_set(error, value == NULL ? "no dtype" : "dtype is not a string");
    if (reader->dtype != NULL && json_string_is(value, reader->dtype->name))
        return true;
    reader->dtype = strlen(name) == length ? find_dtype(name) : NULL;
    return reader->dtype != NULL || error_set(error, "unknown dtype '%.40s'", name);
}

/* Parses the sizes in an array of integers; `what` names it. */
static bool parse_sizes(const struct json *value, const char *what, size_t most, uint64_t *sizes, struct error *error)
{
    if (!json_is(value, JSON_ARRAY))
        return error_set(error, value == NULL ? "no %s" : "%s is not an array", what);
    if (json_count(value) > most)
        return error_set(error, "%s has %zu numbers, the limit is %zu", what, json_count(value), most);
    for (const struct json *number = json_first(value); number != NULL; number = json_next(number))
        if (!json_u64(number, sizes++))
            return error_set(error, "%s contains an element that is not an unsigned 64-bit integer", what);
    return true;
}

/* Returns the shape, in the checkpoint's arena. */
static const uint64_t *keep_shape(struct reader *reader, const uint64_t *sizes, unsigned rank)
{
    struct shape kept = {.sizes = NULL};
    size_t at = 0, bytes = rank * sizeof *sizes;
    for (; at < RECENT_SHAPES && kept.sizes == NULL; at++)
        if (reader->shapes[at].rank == rank && reader->shapes[at].sizes != NULL &&
            memcmp(reader->shapes[at].sizes, sizes, bytes) == 0)
            kept = reader->shapes[at];
    if (kept.sizes == NULL)
        kept = (struct shape){arena_copy(reader->checkpoint->arena, sizes, bytes), rank};
    memmove(reader->shapes + 1, reader->shapes, (at - 1) * sizeof *reader->shapes);
    reader->shapes[0] = kept;
    return kept.sizes;
}

static bool parse_fields(struct reader *reader, const struct json *entry, struct tensor *tensor, struct error *error)
{
    uint64_t shape[SHAPE_MAX_RANK], range[2];
    if (!json_is(entry, JSON_OBJECT))
        return error_set(error, "its description is not an object");
    const struct json *shape_value = json_get(entry, "shape"), *range_value = json_get(entry, "data_offsets");
    if (!parse_dtype(reader, json_get(entry, "dtype"), error) ||
        !parse_sizes(shape_value, "shape", SHAPE_MAX_RANK, shape, error) ||
        !parse_sizes(range_value, "data_offsets", 2, range, error))
        return false;
    if (json_count(range_value) != 2)
        return error_set(error, "data_offsets has %zu numbers, expected 2", json_count(range_value));
    if (range[1] < range[0])
        return error_set(error, "data_offsets [%" PRIu64 ", %" PRIu64 "] are reversed", range[0], range[1]);
    tensor->dtype = reader->dtype;
    tensor->rank = (uint8_t)json_count(shape_value);
    tensor->offset = range[0];
    tensor->length = range[1] - range[0];
    tensor->shape = keep_shape(reader, shape, tensor->rank);
    tensor->name = arena_strndup(reader->checkpoint->arena, tensor->name, tensor->name_length);
    return true;
}

static bool parse_tensor(struct reader *reader, const struct json_member *entry, struct error *error)
{
    struct tensor tensor = {.name = entry->key, .name_length = (uint32_t)entry->key_length, .source = reader->source};
    if (entry->key_length > TENSOR_MAX_NAME) {
        error_set(error, "its name is too long: %zu bytes, the limit is %d", entry->key_length, TENSOR_MAX_NAME);
        return blame(reader, &tensor, error);
    }
    if (!parse_fields(reader, entry->value, &tensor, error))
        return blame(reader, &tensor, error);
    reader->tensors[reader->n_tensors++] = tensor;
    return true;
}

/* Adds metadata, which is text for people; a text with a NUL is left out, with a note. */
static void add_metadata(struct reader *reader, const char *key, size_t key_length, const char *value,
                         size_t value_length)
{
    if (strlen(key) != key_length || strlen(value) != value_length) {
        checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "%s: metadata '%s' contains a NUL byte and is not shown",
                        reader->file, key);
        return;
    }
    checkpoint_add_metadata(reader->checkpoint, key, value);
}

/* Parses __metadata__. A file with DCP_SHARDING_INFO, from torch.distributed.checkpoint's HuggingFaceStorageWriter, has
 * a part of each tensor: nothing in it says how large the whole is. */
static bool parse_metadata(struct reader *reader, const struct json *metadata, struct error *error)
{
    if (json_is(metadata, JSON_NULL)) /* as MLX writes it */
        return true;
    if (!json_is(metadata, JSON_OBJECT))
        return error_set(error, "%s: __metadata__ is not an object", reader->file);
    for (struct json_member entry = {0}; json_next_member(metadata, &entry);) {
        size_t length;
        const char *text = json_string(entry.value, &length);
        if (text == NULL)
            return error_set(error, "%s: __metadata__: '%.200s' is not a string", reader->file, entry.key);
        if (reader->ret_places == NULL || !text_starts_with(entry.key, "DCP_"))
            add_metadata(reader, entry.key, entry.key_length, text, length);
    }
    const char *places = json_string(json_get(metadata, "DCP_SHARDING_INFO"), NULL);
    if (places != NULL && reader->ret_places != NULL)
        *reader->ret_places = arena_strdup(reader->checkpoint->arena, places);
    if (places == NULL || reader->ret_places != NULL)
        return true;
    checkpoint_lacks(reader->checkpoint, reader->options, "%s: parts of tensors, which one of several processes saved",
                     reader->file);
    return reader->options->partial ||
           error_set(
               error,
               "%s: parts of tensors, which one of several processes saved (DCP_SHARDING_INFO); name the directory of "
               "the files of all processes, which wfs joins, or see these parts with -o partial",
               reader->file);
}

static bool refuse_twice(const struct reader *reader, const char *key, struct error *error)
{
    return error_set(error, "%s: header: key '%.200s' appears twice in one object", reader->file, key);
}

static bool parse_entry(struct reader *reader, const struct json_member *entry, struct error *error)
{
    static const char metadata[] = "__metadata__";
    bool is_metadata =
        entry->key_length == sizeof metadata - 1 && memcmp(entry->key, metadata, sizeof metadata - 1) == 0;
    if (is_metadata && reader->has_metadata)
        return refuse_twice(reader, metadata, error);
    if (is_metadata)
        return reader->has_metadata = parse_metadata(reader, entry->value, error);
    if (reader->n_tensors == TENSOR_SET_MAX - reader->set->n_tensors)
        return error_set(error, "%s: too many tensors: the total is above %d", reader->file, TENSOR_SET_MAX);
    return parse_tensor(reader, entry, error);
}

static bool take_entry(void *context, const struct json_member *entry, struct error *error)
{
    struct reader *reader = context;
    reader->is_blamed = !parse_entry(reader, entry, error);
    return !reader->is_blamed;
}

static int compare_offsets(const void *tensors, uint32_t a, uint32_t b)
{
    const struct tensor *x = (const struct tensor *)tensors + a, *y = (const struct tensor *)tensors + b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->length > y->length) - (x->length < y->length);
}

/* Checks that the tensor begins at `offset`, where the previous one ends, and has the length of its dtype and shape. */
static bool check_tensor(const struct tensor *tensor, uint64_t offset, struct error *error)
{
    uint64_t begin = tensor->offset, end = begin + tensor->length, n_elements, n_bytes;
    bool misaligned;
    char shape[SHOWN_SHAPE];
    if (begin != offset)
        return error_set(error,
                         "data_offsets [%" PRIu64 ", %" PRIu64 "] %s the previous tensor, which ends at %" PRIu64,
                         begin, end, begin < offset ? "overlap" : "leave a gap after", offset);
    if (!shape_size(tensor->dtype, tensor->shape, tensor->rank, &n_elements, &n_bytes, &misaligned))
        return error_set(error, "%s %s %s", tensor->dtype->name,
                         shape_text(tensor->shape, tensor->rank, shape, sizeof shape),
                         misaligned ? "is not a whole number of bytes" : "has a size of more than 64 bits");
    if (n_bytes != tensor->length)
        return error_set(error, "data_offsets [%" PRIu64 ", %" PRIu64 "] do not match %s %s (%" PRIu64 " bytes)", begin,
                         end, tensor->dtype->name, shape_text(tensor->shape, tensor->rank, shape, sizeof shape),
                         n_bytes);
    return true;
}

/* Checks that the tensors, sorted by offset, fill the `available` bytes after the header. */
static bool check_data(struct reader *reader, uint64_t available, struct error *error)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < reader->n_tensors; i++) {
        const struct tensor *tensor = &reader->tensors[reader->order[i]];
        if (!check_tensor(tensor, offset, error))
            return blame(reader, tensor, error);
        offset += tensor->length;
    }
    if (offset > available)
        return error_set(error,
                         "%s: truncated: %" PRIu64 " of %" PRIu64 " tensor bytes are missing; an interrupted download?",
                         reader->file, offset - available, offset);
    if (offset < available && !reader->options->allow_trailing)
        return error_set(error, "%s: %" PRIu64 " extra bytes after the last tensor; -o allow_trailing ignores them",
                         reader->file, available - offset);
    if (offset < available)
        checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "%s: ignored %" PRIu64 " bytes after the last tensor",
                        reader->file, available - offset);
    return true;
}

/* Reads the length of the header, and checks it against the file's size. */
static bool read_header_length(const struct source *source, uint64_t *ret_length, struct error *error)
{
    unsigned char prefix[LENGTH_BYTES];
    uint64_t size = source_size(source);
    if (size < LENGTH_BYTES)
        return error_set(error, "%s: truncated: it has %" PRIu64 " of the first %u bytes of a safetensors file",
                         source_name(source), size, LENGTH_BYTES);
    if (!source_read(source, 0, LENGTH_BYTES, prefix, error))
        return false;
    uint64_t length = read_le(prefix, LENGTH_BYTES);
    if (length > MAX_HEADER_BYTES)
        return error_set(error, "%s: header too long: %" PRIu64 " bytes, the limit is %d", source_name(source), length,
                         MAX_HEADER_BYTES);
    if (length > size - LENGTH_BYTES)
        return error_set(error, "%s: truncated: a header of %" PRIu64 " bytes, but the file has %" PRIu64,
                         source_name(source), length, size);
    *ret_length = length;
    return true;
}

static bool read_part(void *context, size_t offset, char *to, size_t length, struct error *error)
{
    struct reader *reader = context;
    reader->is_blamed = !source_read(reader->source, LENGTH_BYTES + offset, length, to, error);
    return !reader->is_blamed;
}

/* Parses a copy: a mapping could change between check and use. */
static bool read_header(struct reader *reader, size_t length, struct error *error)
{
    source_want(reader->source, LENGTH_BYTES, length, true);
    reader->tensors = memory_alloc((length / (sizeof SHORTEST_ENTRY - 1) + 1) * sizeof *reader->tensors);
    if (!json_read_members(read_part, reader, length, take_entry, error))
        return reader->is_blamed ? false : error_prefix(error, "%s: header", reader->file);
    return true;
}

static bool check_names(const struct reader *reader, const uint32_t *by_name, struct error *error)
{
    for (size_t i = 1; i < reader->n_tensors; i++) {
        const struct tensor *a = &reader->tensors[by_name[i - 1]], *b = &reader->tensors[by_name[i]];
        if (text_compare(a->name, a->name_length, b->name, b->name_length) == 0)
            return refuse_twice(reader, b->name, error);
    }
    return true;
}

/* Adds the tensors by name: UTF-8 bytes sort like code points. Offsets in the header count from `data`. */
static void add_by_name(const struct reader *reader, const uint32_t *by_name, uint64_t data)
{
    tensor_set_reserve(reader->set, reader->n_tensors);
    for (size_t i = 0; i < reader->n_tensors; i++) {
        struct tensor *tensor = &reader->tensors[by_name[i]];
        tensor->offset += data;
        tensor_set_add(reader->set, tensor);
    }
}

static bool add_tensors(struct reader *reader, uint64_t data, struct error *error)
{
    uint32_t *by_name = tensors_by_name(reader->tensors, reader->n_tensors);
    reader->order = memory_alloc(reader->n_tensors * sizeof *reader->order);
    for (size_t i = 0; i < reader->n_tensors; i++)
        reader->order[i] = (uint32_t)i;
    bool valid = check_names(reader, by_name, error);
    if (valid) {
        sort_indices(reader->order, reader->n_tensors, compare_offsets, reader->tensors);
        valid = check_data(reader, source_size(reader->source) - data, error);
    }
    if (valid)
        add_by_name(reader, by_name, data);
    free(by_name);
    return valid;
}

static bool read_tensors(struct reader *reader, struct error *error)
{
    uint64_t header_length = 0;
    bool valid = read_header_length(reader->source, &header_length, error) &&
                 read_header(reader, header_length, error) && add_tensors(reader, LENGTH_BYTES + header_length, error);
    free(reader->tensors);
    free(reader->order);
    return valid;
}

static bool safetensors_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                                  const struct open_options *options, struct error *error)
{
    struct reader reader = {
        .checkpoint = checkpoint, .source = file, .set = tensors, .file = source_name(file), .options = options};
    return read_tensors(&reader, error);
}

bool safetensors_read_parts(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                            const struct open_options *options, const char **ret_places, struct error *error)
{
    struct reader reader = {.checkpoint = checkpoint,
                            .source = file,
                            .set = tensors,
                            .file = source_name(file),
                            .options = options,
                            .ret_places = ret_places};
    *ret_places = NULL;
    return read_tensors(&reader, error);
}

/* Looks for a plausible length and the beginning of a JSON object, since there is no magic number. A file with the
 * right name is always read, so that the error names its fault. */
static enum probe safetensors_probe(const struct input *input)
{
    if (input->file == NULL)
        return PROBE_NO;
    if (input->head_length > LENGTH_BYTES) {
        uint64_t length = read_le(input->head, LENGTH_BYTES);
        if (length <= MAX_HEADER_BYTES && length <= source_size(input->file) - LENGTH_BYTES &&
            memchr("{ \t\r\n", input->head[LENGTH_BYTES], 5) != NULL)
            return PROBE_SURE;
    }
    return format_extension(&safetensors_format, input->file_name) ? PROBE_MAYBE : PROBE_NO;
}

static const struct extension extensions[] = {{".safetensors"}, {0}};

const struct format safetensors_format = {
    .name = "safetensors",
    .extensions = extensions,
    .summary = "a .safetensors file",
    .probe = safetensors_probe,
    .read_file = safetensors_read_file,
};
