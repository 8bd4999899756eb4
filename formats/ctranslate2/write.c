#include "formats/ctranslate2/write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
