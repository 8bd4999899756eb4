/* TensorFlow Lite (LiteRT) models, and MediaPipe's bundles of them.
 *
 * A .tflite file is a flatbuffer whose file identifier is "TFL3". Of each subgraph, the tensors that have a buffer are
 * shown, as they are stored; those without one are computed when the model runs. Tensors of two subgraphs that have one
 * name and one buffer are one; a later one with another buffer has its subgraph before its name: SUBGRAPH/NAME. Scales
 * and zero points are metadata, under NAME.quantization. A buffer lies in the flatbuffer or, in files of more than 2
 * GB, at an offset of the file after it.
 *
 * A .task file is a zip with such files as members, which are read where they lie; if there are several, each is named
 * before its tensors. Source: TensorFlow's schema.fbs. */
#include "base/buffer.h"
#include "base/text_index.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "formats/tflite/flatbuffer.h"
#include "formats/zip/zip.h"
#include "sources/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of Model, SubGraph, Tensor, QuantizationParameters and Buffer. */
enum { MODEL_SUBGRAPHS = 2, MODEL_DESCRIPTION = 3, MODEL_BUFFERS = 4 };
enum { SUBGRAPH_TENSORS = 0, SUBGRAPH_NAME = 4 };
enum { TENSOR_SHAPE, TENSOR_TYPE, TENSOR_BUFFER, TENSOR_NAME, TENSOR_QUANTIZATION, TENSOR_SPARSITY = 6 };
enum { QUANTIZATION_SCALE = 2, QUANTIZATION_ZERO_POINT = 3, QUANTIZATION_DIMENSION = 6 };
enum { BUFFER_DATA, BUFFER_OFFSET, BUFFER_SIZE };

enum {
    MAGIC_AT = 4,
    MAGIC_BYTES = 4,
    NO_OFFSET = 1, /* a buffer's offset that still means none */
    MAX_TEXT = 4096,
};

/* Names and quantizations take at most so many bytes for each byte of the file, and a constant: tensors may share them.
 */
enum { TEXTS_RATIO = 16, TEXTS_CONSTANT = 1024 * 1024 };

static const char magic[] = "TFL3";

/* dtypes by TensorType; NULL: no values. */
static const char *const dtype_names[] = {"F32",  "F16", "I32", "U8", "I64", NULL,  "BOOL", "I16",  "C64", "I8", "F64",
                                          "C128", "U64", NULL,  NULL, "U32", "U16", "I4",   "BF16", "I2",  "U4"};
enum { N_DTYPES = sizeof dtype_names / sizeof *dtype_names };

struct reader {
    struct checkpoint *checkpoint;
    struct source *file;
    struct tensor_set *tensors;
    const char *prefix;               /* of all names */
    struct flatbuffer graph, buffers; /* two places of the file that are read in turn */
    struct flat_vector buffer_list;
    struct text_index names; /* of tensors, by their number from `first` on */
    size_t first;
    uint64_t texts_left;
};

/* Reads a text of the graph into the arena; at most `limit` bytes. */
static bool read_text(struct reader *reader, const struct flat_table *table, unsigned field, size_t limit,
                      const char **ret_text, size_t *ret_length, struct error *error)
{
    struct flat_vector vector;
    if (!flat_vector(&reader->graph, table, field, 1, &vector, error))
        return false;
    if (vector.count > limit || vector.count > reader->texts_left)
        return flat_refuse(&reader->graph, vector.at, "names and other texts are too long", error);
    reader->texts_left -= vector.count;
    char *text = arena_alloc(reader->checkpoint->arena, vector.count + 1u);
    text[vector.count] = '\0';
    *ret_text = text;
    *ret_length = vector.count;
    return vector.count == 0 || window_read(&reader->graph.window, vector.at, vector.count, text, error);
}

/* Sets where the bytes of a buffer lie. */
static bool find_bytes(struct reader *reader, uint64_t number, struct tensor *tensor, struct error *error)
{
    struct flat_table buffer;
    struct flat_vector data;
    uint64_t offset, size, file_size = source_size(reader->file);
    if (number >= reader->buffer_list.count)
        return flat_refuse(&reader->graph, reader->buffer_list.at, "a tensor in a buffer that is not there", error);
    if (!flat_element(&reader->buffers, &reader->buffer_list, (uint32_t)number, &buffer, error) ||
        !flat_vector(&reader->buffers, &buffer, BUFFER_DATA, 1, &data, error) ||
        !flat_field(&reader->buffers, &buffer, BUFFER_OFFSET, 8, &offset, error) ||
        !flat_field(&reader->buffers, &buffer, BUFFER_SIZE, 8, &size, error))
        return false;
    bool is_outside = data.count == 0 && offset > NO_OFFSET;
    if (is_outside && (offset > file_size || size > file_size - offset))
        return flat_refuse(&reader->buffers, buffer.at, "truncated: a buffer past the end of the file", error);
    tensor->offset = is_outside ? offset : data.at;
    tensor->length = is_outside ? size : data.count;
    tensor->source = reader->file;
    return true;
}

static bool read_shape(struct reader *reader, const struct flat_table *table, struct tensor *tensor,
                       struct error *error)
{
    struct flat_vector dimensions;
    uint64_t shape[SHAPE_MAX_RANK], n_elements, n_bytes, number;
    if (!flat_vector(&reader->graph, table, TENSOR_SHAPE, 4, &dimensions, error))
        return false;
    if (dimensions.count > SHAPE_MAX_RANK)
        return flat_refuse(&reader->graph, dimensions.at, "a tensor of more than 64 dimensions", error);
    for (uint32_t i = 0; i < dimensions.count; i++) {
        if (!flat_number(&reader->graph, dimensions.at + 4 * i, 4, &number, error))
            return false;
        if (number > INT32_MAX)
            return flat_refuse(&reader->graph, dimensions.at, "a tensor with a negative dimension", error);
        shape[i] = number;
    }
    if (!shape_size(tensor->dtype, shape, dimensions.count, &n_elements, &n_bytes, NULL))
        return flat_refuse(&reader->graph, dimensions.at, "a tensor whose size overflows", error);
    tensor->rank = (uint8_t)dimensions.count;
    tensor->shape = arena_copy(reader->checkpoint->arena, shape, dimensions.count * sizeof *shape);
    if (tensor->refusal != NULL || tensor->length == n_bytes)
        return true;
    char reason[128];
    snprintf(reason, sizeof reason, "a tensor in a buffer of %" PRIu64 " bytes, but its shape needs %" PRIu64,
             tensor->length, n_bytes);
    return flat_refuse(&reader->graph, table->at, reason, error);
}

static bool read_dtype(struct reader *reader, const struct flat_table *table, struct tensor *tensor,
                       struct error *error)
{
    uint64_t type;
    if (!flat_field(&reader->graph, table, TENSOR_TYPE, 1, &type, error))
        return false;
    if (type >= N_DTYPES)
        return flat_refuse(&reader->graph, table->at, "a tensor of an unknown type", error);
    tensor->dtype = dtype_names[type] != NULL ? dtype_by_name(dtype_names[type]) : &u8_dtype;
    tensor->is_no_number = dtype_names[type] == NULL;
    if (tensor->is_no_number)
        tensor->refusal = "texts and resources have no values";
    else if (table->fields[TENSOR_SPARSITY] != 0)
        tensor->refusal = "sparse tensors are not supported";
    return true;
}

/* Appends a vector as a JSON list: of F32, or else of integers of 8 bytes. */
static bool put_numbers(struct reader *reader, const struct flat_vector *vector, bool is_float, struct buffer *text,
                        struct error *error)
{
    buffer_append_text(text, "[");
    for (uint32_t i = 0; i < vector->count; i++) {
        unsigned size = is_float ? 4 : 8;
        uint64_t bits;
        if (!flat_number(&reader->graph, vector->at + (uint64_t)size * i, size, &bits, error))
            return false;
        uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        buffer_append_text(text, i > 0 ? ", " : "");
        if (is_float)
            buffer_printf(text, "%.9g", (double)value);
        else
            buffer_printf(text, "%" PRId64, (int64_t)bits);
    }
    buffer_append_text(text, "]");
    return true;
}

/* Adds the scales and zero points of a tensor to the metadata, as JSON. */
static bool add_quantization(struct reader *reader, const struct flat_table *tensor, const char *name,
                             struct error *error)
{
    struct flat_table table;
    struct flat_vector scales, zeros;
    uint64_t dimension;
    struct buffer text = {0};
    if (tensor->fields[TENSOR_QUANTIZATION] == 0)
        return true;
    if (!flat_table(&reader->graph, tensor->at + tensor->fields[TENSOR_QUANTIZATION], &table, error) ||
        !flat_vector(&reader->graph, &table, QUANTIZATION_SCALE, 4, &scales, error) ||
        !flat_vector(&reader->graph, &table, QUANTIZATION_ZERO_POINT, 8, &zeros, error) ||
        !flat_field(&reader->graph, &table, QUANTIZATION_DIMENSION, 4, &dimension, error))
        return false;
    if (scales.count == 0)
        return true;
    if (4 * (uint64_t)scales.count + 8 * (uint64_t)zeros.count > reader->texts_left)
        return flat_refuse(&reader->graph, scales.at, "scales and zero points are too many", error);
    reader->texts_left -= 4 * (uint64_t)scales.count + 8 * (uint64_t)zeros.count;
    buffer_append_text(&text, "{\"scale\": ");
    bool good = put_numbers(reader, &scales, true, &text, error);
    buffer_append_text(&text, ", \"zero_point\": ");
    good = good && put_numbers(reader, &zeros, false, &text, error);
    buffer_printf(&text, ", \"quantized_dimension\": %" PRId32 "}", (int32_t)(uint32_t)dimension);
    if (good)
        checkpoint_add_metadata(reader->checkpoint, arena_printf(reader->checkpoint->arena, "%s.quantization", name),
                                (const char *)text.bytes);
    buffer_free(&text);
    return good;
}

/* Names a tensor with what comes before it; returns false if it is one of those that were added before. */
static bool set_name(struct reader *reader, const char *subgraph, const char *name, struct tensor *tensor)
{
    size_t number;
    struct arena *arena = reader->checkpoint->arena;
    for (int is_second = 0; is_second < 2; is_second++) {
        tensor->name = is_second ? arena_printf(arena, "%s%s/%s", reader->prefix, subgraph, name)
                                 : arena_printf(arena, "%s%s", reader->prefix, name);
        tensor->name_length = (uint32_t)strlen(tensor->name);
        if (!text_index_find(&reader->names, tensor->name, tensor->name_length, &number)) {
            text_index_add(&reader->names, tensor->name, tensor->name_length, reader->tensors->n_tensors);
            return true;
        }
        if (reader->tensors->tensors[number].offset == tensor->offset)
            return false;
    }
    return true; /* sealing finds it */
}

static bool add_tensor(struct reader *reader, const struct flat_table *table, const char *subgraph, struct error *error)
{
    struct tensor tensor = {0};
    const char *name;
    size_t length;
    uint64_t number;
    if (!flat_field(&reader->graph, table, TENSOR_BUFFER, 4, &number, error) ||
        !find_bytes(reader, number, &tensor, error))
        return false;
    if (tensor.length == 0)
        return true;
    if (!read_dtype(reader, table, &tensor, error) || !read_shape(reader, table, &tensor, error) ||
        !read_text(reader, table, TENSOR_NAME, TENSOR_MAX_NAME / 4, &name, &length, error))
        return false;
    if (strlen(name) != length)
        return flat_refuse(&reader->graph, table->at, "the name of a tensor has a NUL", error);
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return flat_refuse(&reader->graph, table->at, "too many tensors", error);
    size_t prefixes = strlen(reader->prefix) + strlen(subgraph);
    if (prefixes > reader->texts_left)
        return flat_refuse(&reader->graph, table->at, "names are too long", error);
    reader->texts_left -= prefixes;
    if (!set_name(reader, subgraph, name, &tensor))
        return true;
    tensor_set_add(reader->tensors, &tensor);
    return add_quantization(reader, table, tensor.name, error);
}

static bool add_subgraph(struct reader *reader, const struct flat_vector *subgraphs, uint32_t index,
                         struct error *error)
{
    struct flat_table subgraph, tensor;
    struct flat_vector tensors;
    const char *name;
    size_t length;
    if (!flat_element(&reader->graph, subgraphs, index, &subgraph, error) ||
        !flat_vector(&reader->graph, &subgraph, SUBGRAPH_TENSORS, 4, &tensors, error) ||
        !read_text(reader, &subgraph, SUBGRAPH_NAME, MAX_TEXT, &name, &length, error))
        return false;
    if (*name == '\0')
        name = arena_printf(reader->checkpoint->arena, "%" PRIu32, index);
    for (uint32_t i = 0; i < tensors.count; i++)
        if (!flat_element(&reader->graph, &tensors, i, &tensor, error) || !add_tensor(reader, &tensor, name, error))
            return false;
    return true;
}

static bool read_model(struct reader *reader, struct error *error)
{
    struct flat_table model;
    struct flat_vector subgraphs;
    const char *description;
    size_t length;
    if (!flat_table(&reader->graph, 0, &model, error) ||
        !flat_vector(&reader->graph, &model, MODEL_SUBGRAPHS, 4, &subgraphs, error) ||
        !flat_vector(&reader->graph, &model, MODEL_BUFFERS, 4, &reader->buffer_list, error) ||
        !read_text(reader, &model, MODEL_DESCRIPTION, MAX_TEXT, &description, &length, error))
        return false;
    if (length > 0)
        checkpoint_add_metadata(reader->checkpoint, "description", description);
    for (uint32_t i = 0; i < subgraphs.count; i++)
        if (!add_subgraph(reader, &subgraphs, i, error))
            return false;
    return reader->tensors->n_tensors > reader->first ||
           error_set(error, "%s: a TensorFlow Lite model without weights", source_name(reader->file));
}

static bool is_model(const struct source *source)
{
    unsigned char head[MAGIC_AT + MAGIC_BYTES];
    struct error unused;
    return source_size(source) >= sizeof head && source_read(source, 0, sizeof head, head, &unused) &&
           memcmp(head + MAGIC_AT, magic, MAGIC_BYTES) == 0;
}

/* Adds the tensors of a model; the prefix begins their names. */
static bool add_model(struct checkpoint *checkpoint, struct source *file, const char *prefix,
                      struct tensor_set *tensors, struct error *error)
{
    if (!is_model(file))
        return error_set(error, "%s: not a TensorFlow Lite model: it does not have 'TFL3' at offset 4",
                         source_name(file));
    struct reader *reader = memory_alloc(sizeof *reader);
    *reader = (struct reader){
        .checkpoint = checkpoint,
        .file = file,
        .tensors = tensors,
        .prefix = prefix,
        .graph.window.source = file,
        .buffers.window.source = file,
        .first = tensors->n_tensors,
        .texts_left = TEXTS_CONSTANT + TEXTS_RATIO * source_size(file),
    };
    bool good = read_model(reader, error);
    text_index_free(&reader->names);
    free(reader);
    return good;
}

/* Bundles. */

/* Returns the members that are models, in the checkpoint, and their number. */
static struct source **find_models(struct checkpoint *checkpoint, struct source *file, const struct zip_directory *zip,
                                   size_t *ret_count)
{
    struct source **models = arena_array(checkpoint->arena, zip->n_members, sizeof(struct source *));
    *ret_count = 0;
    for (size_t i = 0; i < zip->n_members; i++) {
        const struct zip_member *member = &zip->members[i];
        if (member->method != ZIP_STORED || member->name_length > MAX_TEXT)
            continue;
        struct source *source = source_range_new(file, member->name, member->offset, member->size);
        if (is_model(source)) {
            checkpoint_add_source(checkpoint, source);
            models[(*ret_count)++] = source;
        } else {
            source_close(source);
        }
    }
    return models;
}

static bool read_bundle(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                        struct error *error)
{
    struct zip_directory zip;
    size_t n_models;
    if (!zip_directory_read(&zip, file, checkpoint->arena, error))
        return false;
    struct source **models = find_models(checkpoint, file, &zip, &n_models);
    for (size_t i = 0; i < n_models; i++) {
        const char *prefix = n_models > 1 ? arena_printf(checkpoint->arena, "%s/", source_name(models[i])) : "";
        if (!add_model(checkpoint, models[i], prefix, tensors, error))
            return error_prefix(error, "%s", source_name(file));
    }
    return n_models > 0 || error_set(error, "%s: a bundle without stored TensorFlow Lite models", source_name(file));
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    unsigned char head[4] = {0};
    (void)options;
    if (source_size(file) >= sizeof head && !source_read(file, 0, sizeof head, head, error))
        return false;
    if (memcmp(head, "PK\3\4", sizeof head) == 0)
        return read_bundle(checkpoint, file, tensors, error);
    return add_model(checkpoint, file, "", tensors, error);
}

static enum probe probe(const struct input *input)
{
    bool has_magic =
        input->head_length >= MAGIC_AT + MAGIC_BYTES && memcmp(input->head + MAGIC_AT, magic, MAGIC_BYTES) == 0;
    bool has_name = input->file_name != NULL && format_extension(&tflite_format, input->file_name) != NULL;
    return has_magic || has_name ? PROBE_SURE : PROBE_NO;
}

static const struct extension extensions[] = {{".tflite", .alone = true}, {".task", .alone = true}, {0}};

const struct format tflite_format = {
    .name = "tflite",
    .extensions = extensions,
    .summary = "TensorFlow Lite (LiteRT): .tflite, and the .task bundles of MediaPipe",
    .probe = probe,
    .read_file = read_file,
};
