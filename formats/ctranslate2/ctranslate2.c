/* CTranslate2's model.bin, which faster-whisper loads.
 *
 * All numbers are little-endian: u32 version; the name of the model's specification, from version 2 on with its u32
 * revision; u32 number of variables. A variable is its name; u8 rank and u32 dimensions; u8 type and u32 number of
 * bytes, before version 4 u8 bytes of an element and u32 number of elements; its data. From version 3 on aliases
 * follow: u32 number, and two names each, the other one that of a variable. A name is a u16 length that counts a NUL at
 * the end, and its bytes. An alias is a tensor of its own here, with the bytes of its variable; an alias of quantized
 * codes has an alias of their scales, too, which the file does not list.
 *
 * Source: CTranslate2, python/ctranslate2/specs/model_spec.py, _serialize(); src/models/model.cc, Model::load(). */
#include "formats/ctranslate2/ctranslate2.h"

#include "base/checked.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "formats/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_VERSION = 2, ALIASED_VERSION = 3, TYPED_VERSION = 4, NEWEST_VERSION = 6 };

static const char scale_suffix[] = "_scale";

struct reader {
    struct file_cursor in;
    struct arena *arena;
    struct tensor_set *tensors;
    size_t first; /* of this file's tensors */
    uint64_t version;
};

static bool read_name(struct reader *reader, const char **ret_name, size_t *ret_length)
{
    uint64_t length;
    if (!file_cursor_number(&reader->in, 2, &length))
        return false;
    if (!file_cursor_has(&reader->in, length))
        return false;
    char *name = arena_alloc(reader->arena, (size_t)length + 1);
    if (!file_cursor_read(&reader->in, length, name))
        return false;
    if (length < 2 || name[length - 1] != '\0')
        return file_cursor_refuse(&reader->in, "a name that is empty, or does not end with a NUL");
    *ret_name = name;
    *ret_length = (size_t)length - 1;
    return true;
}

/* Variables. */

static const struct dtype *typed(uint64_t type)
{
    return type < CTRANSLATE2_TYPES ? dtype_by_name(ctranslate2_types[type]) : NULL;
}

/* Returns the type that CTranslate2 takes elements of that many bytes for. */
static const struct dtype *sized(uint64_t n_bytes)
{
    const char *name = n_bytes == 4 ? "F32" : n_bytes == 2 ? "I16" : "I8";
    return n_bytes == 1 || n_bytes == 2 || n_bytes == 4 ? dtype_by_name(name) : NULL;
}

static bool read_shape(struct reader *reader, struct tensor *tensor)
{
    uint64_t rank, shape[SHAPE_MAX_RANK];
    if (!file_cursor_number(&reader->in, 1, &rank))
        return false;
    if (rank > SHAPE_MAX_RANK)
        return file_cursor_refuse(&reader->in, "a variable of more than 64 dimensions");
    for (unsigned i = 0; i < rank; i++)
        if (!file_cursor_number(&reader->in, 4, &shape[i]))
            return false;
    tensor->rank = (uint8_t)rank;
    tensor->shape = arena_copy(reader->arena, shape, (size_t)rank * sizeof *shape);
    return true;
}

static bool read_data(struct reader *reader, struct tensor *tensor)
{
    uint64_t type, count, n_elements, n_bytes;
    bool has_type = reader->version >= TYPED_VERSION;
    if (!file_cursor_number(&reader->in, 1, &type) || !file_cursor_number(&reader->in, 4, &count))
        return false;
    tensor->dtype = has_type ? typed(type) : sized(type);
    if (tensor->dtype == NULL)
        return file_cursor_refuse(&reader->in, "a variable of an unknown type");
    if (!shape_size(tensor->dtype, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL))
        return file_cursor_refuse(&reader->in, "a variable whose size in bytes overflows");
    if ((has_type ? count : count * type) != n_bytes)
        return file_cursor_refuse(&reader->in, "a variable whose data do not have the bytes of its shape");
    if (n_bytes > reader->in.end - reader->in.at)
        return file_cursor_refuse(&reader->in, "truncated: a variable's data are past the end of the file");
    tensor->source = reader->in.file;
    tensor->offset = reader->in.at;
    tensor->length = n_bytes;
    reader->in.at += n_bytes;
    return true;
}

static bool add(struct reader *reader, const struct tensor *tensor)
{
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return file_cursor_refuse(&reader->in, "too many variables");
    tensor_set_add(reader->tensors, tensor);
    return true;
}

static bool read_variable(struct reader *reader)
{
    size_t length = 0;
    struct tensor tensor = {.name = NULL};
    if (!read_name(reader, &tensor.name, &length) || !read_shape(reader, &tensor) || !read_data(reader, &tensor))
        return false;
    tensor.name_length = (uint32_t)length;
    return add(reader, &tensor);
}

/* Aliases. */

static bool add_alias(struct reader *reader, const struct tensor *variable, const char *name, size_t length)
{
    struct tensor alias = *variable;
    alias.name = name;
    alias.name_length = (uint32_t)length;
    return add(reader, &alias);
}

static bool read_alias(struct reader *reader, const struct tensor_set *variables)
{
    const char *name, *other;
    size_t length, other_length;
    if (!read_name(reader, &name, &length) || !read_name(reader, &other, &other_length))
        return false;
    const struct tensor *variable = tensor_set_find(variables, other, other_length);
    if (variable == NULL)
        return file_cursor_refuse(&reader->in, "an alias of a variable that the file does not have");
    const char *scale = arena_printf(reader->arena, "%s%s", other, scale_suffix);
    const struct tensor *scales = tensor_set_find_text(variables, scale);
    if (!add_alias(reader, variable, name, length))
        return false;
    const char *scale_name = arena_printf(reader->arena, "%s%s", name, scale_suffix);
    return scales == NULL || add_alias(reader, scales, scale_name, strlen(scale_name));
}

static bool read_aliases(struct reader *reader)
{
    uint64_t n_aliases;
    struct arena *scratch = arena_new();
    struct tensor_set *variables = tensor_set_new(scratch);
    for (size_t i = reader->first; i < reader->tensors->n_tensors; i++)
        tensor_set_add(variables, &reader->tensors->tensors[i]);
    bool good = file_cursor_number(&reader->in, 4, &n_aliases) && tensor_set_seal(variables, reader->in.error);
    for (uint64_t i = 0; good && i < n_aliases; i++)
        good = read_alias(reader, variables);
    arena_free(scratch);
    return good;
}

/* The file. */

static bool read_head(struct reader *reader, struct checkpoint *checkpoint)
{
    const char *name;
    size_t length;
    uint64_t revision;
    char number[24];
    if (!file_cursor_number(&reader->in, 4, &reader->version))
        return false;
    if (reader->version < NAMED_VERSION || reader->version > NEWEST_VERSION)
        return file_cursor_refuse(&reader->in, "an unknown version; known are 2 to 6");
    if (!read_name(reader, &name, &length) || !file_cursor_number(&reader->in, 4, &revision))
        return false;
    snprintf(number, sizeof number, "%" PRIu64, revision);
    checkpoint_add_metadata(checkpoint, "specification", name);
    checkpoint_add_metadata(checkpoint, "revision", number);
    return true;
}

static bool read_all(struct reader *reader, struct checkpoint *checkpoint)
{
    uint64_t n_variables;
    if (!read_head(reader, checkpoint) || !file_cursor_number(&reader->in, 4, &n_variables))
        return false;
    if (n_variables == 0)
        return file_cursor_refuse(&reader->in, "it holds no variables");
    for (uint64_t i = 0; i < n_variables; i++)
        if (!read_variable(reader))
            return false;
    return reader->version < ALIASED_VERSION || read_aliases(reader);
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    struct reader reader = {
        .in = file_cursor_begin(file, 0, "CTranslate2", error),
        .arena = checkpoint->arena,
        .tensors = tensors,
        .first = tensors->n_tensors,
    };
    bool good = read_all(&reader, checkpoint);
    file_cursor_end(&reader.in);
    return good;
}

/* Recognizes a version, then the name of a specification, such as "WhisperSpec". */
static enum probe probe(const struct input *input)
{
    enum { NEWEST = 32, NAME = 6, SPEC = 5 }; /* SPEC: "Spec" and a NUL */
    const unsigned char *head = input->head;
    size_t length = input->head_length, n_name = length > NAME ? (size_t)read_le(head + 4, 2) : 0;
    bool is_version = length > NAME && read_le(head, 4) >= 1 && read_le(head, 4) <= NEWEST;
    bool is_named = is_version && n_name > SPEC && n_name <= length - NAME &&
                    memcmp(head + NAME + n_name - SPEC, "Spec", SPEC) == 0;
    return is_named ? PROBE_SURE : PROBE_NO;
}

static const struct extension extensions[] = {{".bin", .shared = true}, {0}};

const struct format ctranslate2_format = {
    .name = "ctranslate2",
    .extensions = extensions,
    .summary = "CTranslate2's model.bin",
    .probe = probe,
    .read_file = read_file,
};

/* Writing. */

enum { VERSION = 6, HEAD_KEYS = 2 };

static bool append_name(struct buffer *out, const char *name, size_t length, struct error *error)
{
    if (length >= UINT16_MAX)
        return error_set(error, "the name '%.100s...' is too long for CTranslate2", name);
    buffer_append_le(out, length + 1, 2);
    buffer_append(out, name, length);
    buffer_append_zeros(out, 1);
    return true;
}

/* Appends the value of a metadata key as a name. */
static bool append_text(struct buffer *out, const struct gguf_kvs *metadata, const char *key, struct error *error)
{
    struct arena *arena = arena_new();
    const char *text = gguf_get_text(metadata, key, arena);
    bool good = append_name(out, text, strlen(text), error);
    arena_free(arena);
    return good;
}

static bool append_head(struct buffer *out, const struct artifact *artifact, struct error *error)
{
    struct arena *arena = arena_new();
    buffer_append_le(out, VERSION, 4);
    bool good = append_text(out, &artifact->metadata, "specification", error);
    buffer_append_le(out, strtoull(gguf_get_text(&artifact->metadata, "revision", arena), NULL, 10), 4);
    buffer_append_le(out, artifact->n_tensors, 4);
    arena_free(arena);
    return good;
}

static bool append_record(struct buffer *out, const struct artifact_tensor *written, struct error *error)
{
    const struct tensor *tensor = written->tensor;
    uint64_t n_bytes = artifact_tensor_bytes(written), type;
    if (!ctranslate2_type_of(written->encoding.dtype, &type))
        return error_set(error, "tensor '%.200s': CTranslate2 has no %s", tensor->name, written->encoding.dtype->name);
    if (n_bytes > UINT32_MAX)
        return error_set(error, "tensor '%.200s' has %" PRIu64 " bytes; CTranslate2's files hold fewer than 4 GiB",
                         tensor->name, n_bytes);
    if (!append_name(out, tensor->name, tensor->name_length, error))
        return false;
    buffer_append_le(out, tensor->rank, 1);
    for (unsigned i = 0; i < tensor->rank; i++)
        buffer_append_le(out, tensor->shape[i], 4);
    buffer_append_le(out, type, 1);
    buffer_append_le(out, n_bytes, 4);
    return true;
}

static bool append_aliases(struct buffer *out, const struct gguf_kvs *metadata, struct error *error)
{
    bool good = true;
    buffer_append_le(out, metadata->n_kvs - HEAD_KEYS, 4);
    for (size_t i = HEAD_KEYS; good && i < metadata->n_kvs; i++) {
        const char *name = metadata->kvs[i].key;
        good = append_name(out, name, strlen(name), error) && append_text(out, metadata, name, error);
    }
    return good;
}

static bool lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    struct buffer literal = {0};
    bool good = append_head(&literal, artifact, error);
    spans_reserve(spans, 2 * artifact->n_tensors + 1);
    for (size_t i = 0; good && i < artifact->n_tensors; i++) {
        good = append_record(&literal, &artifact->tensors[i], error);
        spans_add_buffer(spans, &literal);
        spans_add_tensor(spans, artifact->tensors[i].tensor, artifact->tensors[i].encoding);
    }
    good = good && append_aliases(&literal, &artifact->metadata, error);
    spans_add_buffer(spans, &literal);
    buffer_free(&literal);
    return good;
}

const struct container ctranslate2_container = {.name = "ctranslate2", .lay_out = lay_out};
