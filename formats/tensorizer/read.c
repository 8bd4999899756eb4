/* tensorizer's files, which vLLM loads: .tensors.
 *
 * All numbers are little-endian: "|TZR|", u32 version, 32 bytes of flags, u64 size, 8 unused bytes, u64 number of
 * tensors, u64 length of the table, which zeros may follow. An entry of the table: u32 version if the flags say so; u16
 * length and the name; u8 type; u8 length and the dtype; u8 rank and the dimensions, of 8 bytes each from version 5 on,
 * else 4; u64 offsets of the tensor's header and data, u64 length of the data. Names that begin with the byte 1e are
 * JSON lists of keys, here joined by '.'. The dtype is numpy's, or numpy's, NUL, and torch's. Encrypted files are
 * refused. Source: tensorizer/serialization.py, _FileHeader and _MetadataDeserializer. */
#include "base/buffer.h"
#include "base/checked.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"
#include "formats/window.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_VERSION = 5,
    LONG_VERSION = 5, /* dimensions have 8 bytes */
    FLAGS_BYTES = 32,
    ENCRYPTED = 1,
    VERSIONED = 2,
    UNUSED_BYTES = 16, /* the size of the data, which is not needed, and 8 bytes more */
    MAX_DTYPE = 256,
    PATH_MARK = 0x1e,
};

static const char magic[] = "|TZR|";
enum { MAGIC_BYTES = sizeof magic - 1 };

struct reader {
    struct file_cursor in; /* in the file, then in its table */
    struct arena *arena;
    struct tensor_set *tensors;
    bool versioned;
};

/* Joins the keys of a JSON list; returns false if they are not texts and numbers. */
static bool join_keys(const struct json *keys, struct buffer *out)
{
    for (const struct json *key = json_first(keys); key != NULL; key = json_next(key)) {
        size_t length;
        const char *text = json_string(key, &length), *number = json_number_text(key);
        if (text == NULL && number == NULL)
            return false;
        if (key != json_first(keys))
            buffer_append_text(out, ".");
        if (text != NULL)
            buffer_append(out, text, length);
        else
            buffer_append_text(out, number);
    }
    return out->length > 0 && out->length <= TENSOR_MAX_NAME;
}

static bool set_path(struct reader *reader, const char *text, size_t length, struct tensor *tensor)
{
    struct error unused;
    struct buffer name = {0};
    struct json_document *document = json_parse(text, length, &unused);
    bool good = document != NULL && join_keys(json_root(document), &name);
    if (good) {
        tensor->name = arena_strndup(reader->arena, (const char *)name.bytes, name.length);
        tensor->name_length = (uint32_t)name.length;
    }
    json_free(document);
    buffer_free(&name);
    return good || file_cursor_refuse(&reader->in, "a name that is not a list of keys");
}

static bool read_name(struct reader *reader, struct tensor *tensor)
{
    uint64_t length;
    if (!file_cursor_number(&reader->in, 2, &length))
        return false;
    if (length == 0)
        return file_cursor_refuse(&reader->in, "a tensor without a name");
    char *name = memory_alloc((size_t)length);
    bool good = file_cursor_read(&reader->in, (size_t)length, name);
    if (good && name[0] == PATH_MARK) {
        good = set_path(reader, name + 1, (size_t)length - 1, tensor);
    } else if (good) {
        tensor->name = arena_strndup(reader->arena, name, (size_t)length);
        tensor->name_length = (uint32_t)length;
    }
    free(name);
    return good;
}

/* Returns the dtype of numpy's name, or of torch's after a NUL; NULL if it is unknown. */
static const struct dtype *find_dtype(const char *name, size_t length)
{
    static const char of_torch[] = "torch.";
    const char *other = memchr(name, '\0', length);
    if (other != NULL) {
        bool is_torch = strncmp(other + 1, of_torch, sizeof of_torch - 1) == 0;
        const struct torch_dtype *dtype = is_torch ? torch_dtype_by_name(other + sizeof of_torch) : NULL;
        return dtype != NULL && !dtype->quantized ? dtype_by_name(dtype->dtype) : NULL;
    }
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if ((*dtype)->numpy != NULL && strcmp((*dtype)->numpy, name) == 0)
            return *dtype;
    return NULL;
}

static bool read_dtype(struct reader *reader, struct tensor *tensor)
{
    uint64_t length;
    char name[MAX_DTYPE + 1] = {0};
    if (!file_cursor_number(&reader->in, 1, &length) || !file_cursor_read(&reader->in, (size_t)length, name))
        return false;
    tensor->dtype = find_dtype(name, (size_t)length);
    if (tensor->dtype == NULL || tensor->dtype->block_elements > 1)
        return file_cursor_refuse(&reader->in, "a tensor of an unknown dtype");
    return true;
}

static bool read_shape(struct reader *reader, uint64_t version, struct tensor *tensor, uint64_t *ret_bytes)
{
    uint64_t rank, shape[SHAPE_MAX_RANK], n_elements;
    if (!file_cursor_number(&reader->in, 1, &rank))
        return false;
    if (rank > SHAPE_MAX_RANK)
        return file_cursor_refuse(&reader->in, "a tensor of more than 64 dimensions");
    for (unsigned i = 0; i < rank; i++)
        if (!file_cursor_number(&reader->in, version >= LONG_VERSION ? 8 : 4, &shape[i]))
            return false;
    if (!shape_size(tensor->dtype, shape, (unsigned)rank, &n_elements, ret_bytes, NULL))
        return file_cursor_refuse(&reader->in, "a tensor whose size in bytes overflows");
    tensor->rank = (uint8_t)rank;
    tensor->shape = arena_copy(reader->arena, shape, (size_t)rank * sizeof *shape);
    return true;
}

static bool place(struct reader *reader, struct tensor *tensor, uint64_t n_bytes)
{
    uint64_t header, offset, length;
    if (!file_cursor_number(&reader->in, 8, &header) || !file_cursor_number(&reader->in, 8, &offset) ||
        !file_cursor_number(&reader->in, 8, &length))
        return false;
    if (length == 0 && n_bytes > 0) {
        tensor->source = NULL;
        tensor->refusal = "a meta tensor has no values";
        return true;
    }
    if (length != n_bytes)
        return file_cursor_refuse(&reader->in, "a tensor whose data do not have the bytes of its shape");
    if (offset > source_size(reader->in.file) || length > source_size(reader->in.file) - offset)
        return file_cursor_refuse(&reader->in, "truncated: a tensor's data are past the end of the file");
    tensor->offset = offset;
    tensor->length = length;
    return true;
}

static bool read_entry(struct reader *reader)
{
    struct tensor tensor = {.source = reader->in.file};
    uint64_t version = 1, type, n_bytes;
    if (reader->versioned && !file_cursor_number(&reader->in, 4, &version))
        return false;
    if (version == 0 || version > MAX_VERSION)
        return file_cursor_refuse(&reader->in, "an entry of an unknown version");
    if (!read_name(reader, &tensor) || !file_cursor_number(&reader->in, 1, &type) || !read_dtype(reader, &tensor) ||
        !read_shape(reader, version, &tensor, &n_bytes) || !place(reader, &tensor, n_bytes))
        return false;
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return file_cursor_refuse(&reader->in, "too many tensors");
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

static bool read_flags(struct reader *reader)
{
    unsigned char flags[FLAGS_BYTES];
    if (!file_cursor_read(&reader->in, sizeof flags, flags))
        return false;
    for (unsigned i = 0; i < sizeof flags; i++)
        if (flags[i] > (i == 0 ? ENCRYPTED | VERSIONED : 0))
            return file_cursor_refuse(&reader->in, "unknown flags");
    reader->versioned = flags[0] & VERSIONED;
    return !(flags[0] & ENCRYPTED) || file_cursor_refuse(&reader->in, "the file is encrypted");
}

static bool read_table(struct reader *reader)
{
    uint64_t version, n_tensors, length;
    if (!file_cursor_number(&reader->in, 4, &version))
        return false;
    if (version == 0 || version > MAX_VERSION)
        return file_cursor_refuse(&reader->in, "an unknown version; known are 1 to 5");
    if (!read_flags(reader))
        return false;
    if (!file_cursor_skip(&reader->in, UNUSED_BYTES) || !file_cursor_number(&reader->in, 8, &n_tensors) ||
        !file_cursor_number(&reader->in, 8, &length))
        return false;
    if (!file_cursor_has(&reader->in, length))
        return false;
    reader->in.end = reader->in.at + length;
    if (n_tensors == 0)
        return file_cursor_refuse(&reader->in, "it holds no tensors");
    for (uint64_t i = 0; i < n_tensors; i++)
        if (!read_entry(reader))
            return false;
    return true;
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    (void)options;
    if (source_size(file) < MAGIC_BYTES)
        return error_set(error, "%s: not a file of tensorizer", source_name(file));
    struct reader reader = {
        .in = file_cursor_begin(file, MAGIC_BYTES, "tensorizer", error),
        .arena = checkpoint->arena,
        .tensors = tensors,
    };
    bool good = read_table(&reader);
    file_cursor_end(&reader.in);
    return good;
}

static enum probe probe(const struct input *input)
{
    return input->head_length >= MAGIC_BYTES && memcmp(input->head, magic, MAGIC_BYTES) == 0 ? PROBE_SURE : PROBE_NO;
}

static const struct extension extensions[] = {{".tensors", .alone = true}, {0}};

const struct format tensorizer_format = {
    .name = "tensorizer",
    .extensions = extensions,
    .summary = "tensorizer's .tensors",
    .probe = probe,
    .read_file = read_file,
};
