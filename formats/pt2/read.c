/* Programs of torch.export: .pt2.
 *
 * A zip archive whose members are in one folder, or, in archives of torch before 2.7, in none. JSON files name each
 * weight and constant, its dtype, shape and strides, and the member that is its storage:
 * data/weights/MODEL_weights_config.json, data/constants/MODEL_constants_config.json. Tensors of several models begin
 * with the name of theirs. Older archives hold the weights as files of torch.save(). The graph of the program and its
 * sample inputs are not read. Source: torch/export/pt2_archive/_package.py, torch/_export/serde/schema.py. */
#include "base/checked.h"
#include "base/text.h"
#include "formats/bits.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"
#include "formats/zip/deflate_index.h"
#include "formats/zip/zip.h"
#include "sources/source.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CONFIG = 256 * 1024 * 1024, /* some 300 bytes a tensor */
    MAX_BYTE_ORDER = 64,
    LAYOUT_STRIDED = 7
};

/* The numbers of dtypes in the JSON files. */
static const char *const scalar_types[] = {
    [1] = "uint8",
    [2] = "int8",
    [3] = "int16",
    [4] = "int32",
    [5] = "int64",
    [6] = "float16",
    [7] = "float32",
    [8] = "float64",
    [9] = "complex32",
    [10] = "complex64",
    [11] = "complex128",
    [12] = "bool",
    [13] = "bfloat16",
    [28] = "uint16",
    [29] = "float8_e4m3fn",
    [30] = "float8_e5m2",
    [31] = "float8_e4m3fnuz",
    [32] = "float8_e5m2fnuz",
    [33] = "float8_e8m0fnu",
    [34] = "uint32",
    [35] = "uint64",
};

/* The folders of tensors, and the endings of their JSON files. */
static const struct kind {
    const char *folder, *config;
} kinds[] = {
    {"data/weights/", "_weights_config.json"},
    {"data/constants/", "_constants_config.json"},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

struct reader {
    struct checkpoint *checkpoint;
    struct tensor_set *tensors;
    struct source *file, *inflated; /* `inflated`: NULL if no member is deflated */
    const struct open_options *options;
    struct arena *scratch;
    struct zip_directory zip;
    const char *prefix; /* the folder of all members, with its '/'; "" */
    bool big_endian, several_models;
    size_t first_tensor;
    struct torch_stored *stored; /* of each tensor from first_tensor on */
    size_t n_stored, n_opaque;
    bool has_library;
};

/* One JSON file while it is read. */
struct config {
    struct reader *reader;
    const struct zip_member *member;
    const struct kind *kind;
    const char *model; /* "NAME." for the names of its tensors; "" */
};

static bool refuse(const struct config *config, const char *name, struct error *error, const char *reason)
{
    char shown[200];
    text_printable(name, strlen(name), shown, sizeof shown);
    return error_set(error, "%s: %s: '%s': %s", source_name(config->reader->file), config->member->name, shown, reason);
}

/* Returns the name of a member in the archive's folder. */
static const char *inner_name(const struct reader *reader, const struct zip_member *member)
{
    return member->name + strlen(reader->prefix);
}

static struct torch_storage storage_of(const struct reader *reader, const struct zip_member *member)
{
    bool deflated = member->method == ZIP_DEFLATED;
    return (struct torch_storage){
        .source = deflated ? reader->inflated : reader->file,
        .offset = deflated ? member->inflated : member->offset,
        .n_bytes = member->size,
        .stored = {reader->file, member->offset, member->compressed_size},
    };
}

static const struct zip_member *find_member(const struct reader *reader, const char *folder, const char *name,
                                            size_t length)
{
    if (length > TENSOR_MAX_NAME)
        return NULL;
    const char *full = arena_printf(reader->scratch, "%s%s%.*s", reader->prefix, folder, (int)length, name);
    return zip_directory_find(&reader->zip, full, strlen(full));
}

/* Records what the tensors that have been added since the last call are stored as. */
static void record(struct reader *reader, struct torch_stored stored)
{
    for (; reader->n_stored < reader->tensors->n_tensors - reader->first_tensor; reader->n_stored++) {
        reader->stored = memory_grow(reader->stored, reader->n_stored, sizeof *reader->stored);
        reader->stored[reader->n_stored] = stored;
    }
}

/* Reads a file of torch.save() in the archive, whose tensors are added under their own names. */
static bool read_saved(struct reader *reader, const struct zip_member *member, struct error *error)
{
    struct torch_storage storage = storage_of(reader, member);
    const char *name =
        arena_printf(reader->checkpoint->arena, "%s: %s", source_name(reader->file), inner_name(reader, member));
    struct source *saved = source_range_new(storage.source, name, storage.offset, storage.n_bytes);
    checkpoint_add_source(reader->checkpoint, saved);
    if (!torch_format.read_file(reader->checkpoint, saved, reader->tensors, reader->options, error))
        return false;
    record(reader, storage.stored);
    return true;
}

/* JSON. */

/* Reads [{"as_int": 2}, ...], numbers that are not symbols of the program. */
static bool read_numbers(const struct json *list, uint64_t *numbers, unsigned *ret_count)
{
    size_t n = json_count(list);
    if (!json_is(list, JSON_ARRAY) || n > SHAPE_MAX_RANK)
        return false;
    *ret_count = 0;
    for (const struct json *one = json_first(list); one != NULL; one = json_next(one))
        if (!json_u64(json_get(one, "as_int"), &numbers[(*ret_count)++]))
            return false;
    return true;
}

static const struct torch_dtype *read_dtype(const struct json *meta)
{
    uint64_t number;
    bool is_known = json_u64(json_get(meta, "dtype"), &number) && number < sizeof scalar_types / sizeof *scalar_types &&
                    scalar_types[number] != NULL;
    return is_known ? torch_dtype_by_name(scalar_types[number]) : NULL;
}

static bool read_shape(const struct config *config, const struct json *meta, struct tensor *tensor, struct error *error)
{
    uint64_t shape[SHAPE_MAX_RANK], n_elements, n_bytes;
    unsigned rank;
    if (!read_numbers(json_get(meta, "sizes"), shape, &rank))
        return refuse(config, tensor->name, error, "sizes are not numbers of the kind as_int");
    if (!shape_size(tensor->dtype, shape, rank, &n_elements, &n_bytes, NULL) || n_bytes > INT64_MAX)
        return refuse(config, tensor->name, error, "its size in bytes overflows");
    tensor->rank = (uint8_t)rank;
    tensor->shape = arena_copy(config->reader->checkpoint->arena, shape, rank * sizeof *shape);
    return true;
}

static bool place(const struct config *config, const struct json *meta, struct tensor *tensor,
                  const struct torch_storage *storage, struct error *error)
{
    uint64_t strides[SHAPE_MAX_RANK], layout, first, span;
    unsigned rank;
    if (!json_u64(json_get(meta, "layout"), &layout) || layout != LAYOUT_STRIDED)
        return refuse(config, tensor->name, error, "its layout is not strided; sparse tensors are not supported");
    if (!read_numbers(json_get(meta, "strides"), strides, &rank) || rank != tensor->rank)
        return refuse(config, tensor->name, error, "strides are not as many numbers as sizes");
    if (!json_u64(json_get(json_get(meta, "storage_offset"), "as_int"), &first))
        return refuse(config, tensor->name, error, "storage_offset is not a number of the kind as_int");
    if (torch_place(config->reader->checkpoint->arena, tensor, storage, first, strides, &span))
        return true;
    char reason[160];
    snprintf(reason, sizeof reason, "elements [%" PRIu64 ", +%" PRIu64 ") of %s in a storage of %" PRIu64 " bytes",
             first, span, tensor->dtype->name, storage->n_bytes);
    return refuse(config, tensor->name, error, reason);
}

/* Adds a tensor that lies in a member of its own as it is in memory. */
static bool add_raw(const struct config *config, const struct json *meta, struct tensor *tensor,
                    const struct zip_member *member, struct error *error)
{
    struct reader *reader = config->reader;
    const struct torch_dtype *dtype = read_dtype(meta);
    struct torch_storage storage = storage_of(reader, member);
    if (dtype == NULL)
        return refuse(config, tensor->name, error, "its dtype is unknown");
    tensor->dtype = dtype_by_name(dtype->dtype);
    if (!read_shape(config, meta, tensor, error) || !place(config, meta, tensor, &storage, error))
        return false;
    struct bits bits = {.component_bytes = dtype->component_bytes,
                        .swap = reader->big_endian && dtype->component_bytes > 1};
    if (bits.swap)
        tensor->view = view_bits(reader->checkpoint->arena, tensor_view(tensor, reader->checkpoint->arena), bits);
    tensor_set_add(reader->tensors, tensor);
    record(reader, storage.stored);
    return true;
}

/* Adds a tensor that is a file of torch.save(). */
static bool add_saved(const struct config *config, const struct tensor *tensor, const struct zip_member *member,
                      struct error *error)
{
    struct tensor_set *tensors = config->reader->tensors;
    size_t before = tensors->n_tensors;
    if (!read_saved(config->reader, member, error))
        return false;
    if (tensors->n_tensors != before + 1)
        return refuse(config, tensor->name, error, "its file of torch.save() is not one tensor");
    struct tensor *added = &tensor_set_edit(tensors)[before];
    added->name = tensor->name;
    added->name_length = tensor->name_length;
    return true;
}

static bool add_entry(const struct config *config, const struct json_member *entry, struct error *error)
{
    struct reader *reader = config->reader;
    const struct json *meta = json_get(entry->value, "tensor_meta");
    size_t length = 0, model_length = strlen(config->model);
    const char *path = json_string(json_get(entry->value, "path_name"), &length);
    if (entry->key_length > TENSOR_MAX_NAME - model_length)
        return refuse(config, entry->key, error, "a name that is too long");
    if (path == NULL)
        return refuse(config, entry->key, error, "path_name is missing");
    const struct zip_member *member = find_member(reader, config->kind->folder, path, length);
    if (member == NULL)
        return refuse(config, entry->key, error, "its member is missing from the archive");
    if (!json_is(meta, JSON_OBJECT)) { /* an object of torch's C++ classes */
        reader->n_opaque++;
        return true;
    }
    char *name = arena_alloc(reader->checkpoint->arena, model_length + entry->key_length + 1);
    memcpy(name, config->model, model_length);
    memcpy(name + model_length, entry->key, entry->key_length);
    struct tensor tensor = {.name = name, .name_length = (uint32_t)(model_length + entry->key_length)};
    if (reader->tensors->n_tensors >= TENSOR_SET_MAX)
        return refuse(config, entry->key, error, "too many tensors");
    return json_bool(json_get(entry->value, "use_pickle"), false) ? add_saved(config, &tensor, member, error)
                                                                  : add_raw(config, meta, &tensor, member, error);
}

static bool add_entries(const struct config *config, const struct json *root, struct error *error)
{
    const struct json *entries = json_get(root, "config");
    if (!json_is(entries, JSON_OBJECT))
        return error_set(error, "%s: %s: 'config' is not an object", source_name(config->reader->file),
                         config->member->name);
    for (struct json_member entry = {0}; json_next_member(entries, &entry);)
        if (!add_entry(config, &entry, error))
            return false;
    return true;
}

static bool read_config(const struct config *config, struct error *error)
{
    const struct reader *reader = config->reader;
    char *text = zip_member_read(&reader->zip, config->member, MAX_CONFIG, error);
    if (text == NULL)
        return false;
    struct json_document *document = json_parse(text, (size_t)config->member->size, error);
    free(text);
    if (document == NULL)
        return error_prefix(error, "%s: %s", source_name(reader->file), config->member->name);
    bool good = add_entries(config, json_root(document), error);
    json_free(document);
    return good;
}

/* The archive. */

/* Reports a member "FOLDER/MODEL_weights_config.json"; *ret_model is the length of MODEL. */
static bool is_config(const struct kind *kind, const char *inner, size_t *ret_model)
{
    size_t folder = strlen(kind->folder), length = strlen(inner), ending = strlen(kind->config);
    if (length < folder + ending || !text_starts_with(inner, kind->folder) || !text_ends_with(inner, kind->config))
        return false;
    *ret_model = length - folder - ending;
    return memchr(inner + folder, '/', length - folder) == NULL;
}

/* Reports a file of torch.save() with weights or constants, as torch wrote before it wrote JSON files. */
static bool is_saved(const char *inner)
{
    static const char *const names[] = {"serialized_state_dict.pt", "serialized_state_dict.json",
                                        "serialized_constants.pt", "serialized_constants.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(inner, names[i]) == 0)
            return true;
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++)
        if (text_starts_with(inner, kind->folder) && text_ends_with(inner, ".pt") &&
            strchr(inner + strlen(kind->folder), '/') == NULL)
            return true;
    return false;
}

/* Returns the folder of the first member that only such archives have; NULL: none. */
static const char *find_prefix(const struct reader *reader)
{
    static const char *const marks[] = {"archive_format", "serialized_exported_program.json"};
    for (size_t i = 0; i < reader->zip.n_members; i++) {
        const struct zip_member *member = &reader->zip.members[i];
        const char *slash = strchr(member->name, '/'), *inner = slash != NULL ? slash + 1 : member->name;
        for (size_t mark = 0; mark < sizeof marks / sizeof *marks; mark++)
            if (strcmp(inner, marks[mark]) == 0)
                return arena_strndup(reader->scratch, member->name, (size_t)(inner - member->name));
    }
    return NULL;
}

static bool read_byte_order(struct reader *reader, struct error *error)
{
    const struct zip_member *member = find_member(reader, "", "byteorder", strlen("byteorder"));
    char *text = member != NULL ? zip_member_read(&reader->zip, member, MAX_BYTE_ORDER, error) : NULL;
    if (text == NULL)
        return member == NULL;
    reader->big_endian = strcmp(text, "big") == 0;
    bool good = reader->big_endian || strcmp(text, "little") == 0;
    if (!good)
        error_set(error, "%s: %s: '%s' is neither little nor big", source_name(reader->file), member->name, text);
    free(text);
    return good;
}

/* Finds out what the archive's members are, before any is read. */
static void survey(struct reader *reader)
{
    size_t n_models = 0, unused;
    bool is_deflated = false;
    for (size_t i = 0; i < reader->zip.n_members; i++) {
        const struct zip_member *member = &reader->zip.members[i];
        is_deflated |= member->method == ZIP_DEFLATED;
        reader->has_library |= text_ends_with(member->name, ".so");
        n_models += is_config(&kinds[0], inner_name(reader, member), &unused);
    }
    reader->several_models = n_models > 1;
    if (is_deflated) {
        reader->inflated = inflated_source_new(&reader->zip);
        checkpoint_add_source(reader->checkpoint, reader->inflated);
    }
}

static bool read_member(struct reader *reader, const struct zip_member *member, struct error *error)
{
    const char *inner = inner_name(reader, member);
    if (is_saved(inner))
        return read_saved(reader, member, error);
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++) {
        size_t length;
        if (!is_config(kind, inner, &length))
            continue;
        struct config config = {.reader = reader, .member = member, .kind = kind, .model = ""};
        if (reader->several_models)
            config.model = arena_printf(reader->scratch, "%.*s.", (int)length, inner + strlen(kind->folder));
        return read_config(&config, error);
    }
    return true;
}

static bool check_prefix(const struct reader *reader, struct error *error)
{
    for (size_t i = 0; i < reader->zip.n_members; i++)
        if (!text_starts_with(reader->zip.members[i].name, reader->prefix))
            return error_set(error, "%s: zip: member '%s' is outside the folder '%s'", source_name(reader->file),
                             reader->zip.members[i].name, reader->prefix);
    return true;
}

static bool read_archive(struct reader *reader, struct error *error)
{
    if (!zip_directory_read(&reader->zip, reader->file, reader->scratch, error))
        return false;
    reader->prefix = find_prefix(reader);
    if (reader->prefix == NULL)
        return error_set(error, "%s: a zip archive, but not torch.export's: archive_format is missing",
                         source_name(reader->file));
    if (!check_prefix(reader, error) || !read_byte_order(reader, error))
        return false;
    survey(reader);
    for (size_t i = 0; i < reader->zip.n_members; i++)
        if (!read_member(reader, &reader->zip.members[i], error))
            return false;
    size_t n = reader->tensors->n_tensors - reader->first_tensor;
    if (n == 0)
        return error_set(error, "%s: %s", source_name(reader->file),
                         reader->has_library ? "its weights are inside a compiled library, which wfs does not read"
                                             : "it holds no tensors");
    torch_limit_expansion(reader->checkpoint, reader->file, tensor_set_edit(reader->tensors) + reader->first_tensor,
                          reader->stored, n);
    return true;
}

static void add_hints(const struct reader *reader)
{
    if (reader->n_opaque > 0)
        checkpoint_hint(reader->checkpoint, SUBJECT_SOURCE, "%s: %zu constants are objects and are not shown",
                        source_name(reader->file), reader->n_opaque);
    if (reader->has_library)
        checkpoint_hint(reader->checkpoint, SUBJECT_SOURCE, "%s: constants in compiled libraries are not shown",
                        source_name(reader->file));
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    struct reader reader = {
        .checkpoint = checkpoint,
        .tensors = tensors,
        .file = file,
        .options = options,
        .scratch = arena_new(),
        .first_tensor = tensors->n_tensors,
    };
    bool good = read_archive(&reader, error);
    if (good)
        add_hints(&reader);
    free(reader.stored);
    arena_free(reader.scratch);
    return good;
}

static enum probe probe(const struct input *input)
{
    bool is_named = input->file_name != NULL && format_extension(&pt2_format, input->file_name) != NULL;
    return is_named && input->head_length >= 4 && memcmp(input->head, "PK\3\4", 4) == 0 ? PROBE_SURE : PROBE_NO;
}

static const struct extension extensions[] = {{".pt2", .alone = true}, {0}};

const struct format pt2_format = {
    .name = "pt2",
    .extensions = extensions,
    .summary = "programs of torch.export: .pt2",
    .probe = probe,
    .read_file = read_file,
};
