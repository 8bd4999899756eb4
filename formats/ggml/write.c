#include "formats/ggml/whisper.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_DIMENSIONS = 4 }; /* ggml's */

/* Appends a number that whisper.cpp reads as i32. */
static bool append_number(struct buffer *out, uint64_t number, const char *what, struct error *error)
{
    if (number > INT32_MAX)
        return error_set(error, "%s: %" PRIu64 " exceeds the 31 bits that whisper.cpp reads", what, number);
    buffer_append_le(out, number, 4);
    return true;
}

/* Appends the bytes of an array of F32, or the number of strings and each with its length. */
static bool append_array(struct buffer *out, const struct gguf_kvs *metadata, const char *key, struct error *error)
{
    struct arena *arena = arena_new();
    struct gguf_array array;
    bool good = gguf_get_array(metadata, key, arena, &array, error);
    if (good && array.type == GGUF_STRING)
        good = append_number(out, array.count, key, error);
    else if (good)
        buffer_append(out, array.elements, array.count * sizeof(float));
    for (uint64_t i = 0; good && array.type == GGUF_STRING && i < array.count; i++) {
        size_t length;
        const char *text = gguf_array_string(&array, i, &length);
        good = append_number(out, length, key, error);
        buffer_append(out, text, length);
    }
    arena_free(arena);
    return good;
}

static bool append_header(struct buffer *out, const struct gguf_kvs *metadata, struct error *error)
{
    buffer_append_text(out, "lmgg");
    for (size_t i = 0; i < metadata->n_kvs; i++) {
        const char *key = metadata->kvs[i].key;
        uint64_t number;
        bool is_number = gguf_get_u64(metadata, key, &number);
        if (is_number ? !append_number(out, number, key, error) : !append_array(out, metadata, key, error))
            return false;
    }
    return true;
}

static bool append_record(struct buffer *out, const struct artifact_tensor *written, struct error *error)
{
    const struct tensor *tensor = written->tensor;
    if (tensor->rank > MAX_DIMENSIONS)
        return error_set(error, "tensor '%s' has %d dimensions; ggml has at most %d", tensor->name, tensor->rank,
                         MAX_DIMENSIONS);
    buffer_append_le(out, tensor->rank, 4);
    buffer_append_le(out, tensor->name_length, 4);
    buffer_append_le(out, (uint64_t)written->encoding.dtype->ggml_type, 4);
    for (unsigned i = tensor->rank; i-- > 0;)
        if (!append_number(out, tensor->shape[i], tensor->name, error))
            return false;
    buffer_append(out, tensor->name, tensor->name_length);
    return true;
}

static bool lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    struct buffer literal = {0};
    bool good = append_header(&literal, &artifact->metadata, error);
    spans_reserve(spans, 2 * artifact->n_tensors);
    for (size_t i = 0; good && i < artifact->n_tensors; i++) {
        good = append_record(&literal, &artifact->tensors[i], error);
        spans_add_buffer(spans, &literal);
        spans_add_tensor(spans, artifact->tensors[i].tensor, artifact->tensors[i].encoding);
    }
    buffer_free(&literal);
    return good;
}

const struct container whisper_container = {.name = "ggml", .lay_out = lay_out};
