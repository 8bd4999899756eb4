#include "formats/safetensors/write.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/json_write.h"
#include "formats/shape.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8, LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100 * 1000 * 1000 };

static const char metadata_key[] = "__metadata__";

/* The format's dtypes in the order of its tensors: the most aligned first. */
static const char *const dtype_names[] = {
    "U64",         "I64",         "F64",     "C64",     "F32",     "U32", "I32", "BF16",    "F16",     "U16", "I16",
    "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8",  "U8",  "F6_E3M2", "F6_E2M3", "F4",  "BOOL",
};

enum { N_DTYPES = sizeof dtype_names / sizeof *dtype_names };

static unsigned dtype_order(const struct dtype *type)
{
    unsigned order = 0;
    while (order < N_DTYPES && strcmp(dtype_names[order], type->name) != 0)
        order++;
    return order;
}

const char *safetensors_refusal(const char *name, size_t name_length, const struct dtype *type)
{
    if (dtype_order(type) == N_DTYPES)
        return "safetensors has no such dtype";
    if (text_valid_prefix(name, name_length) != name_length)
        return "its name is not UTF-8";
    if (name_length == strlen(metadata_key) && memcmp(name, metadata_key, name_length) == 0)
        return "its name is reserved in safetensors";
    return NULL;
}

int safetensors_compare(const struct artifact_tensor *a, const struct artifact_tensor *b)
{
    const struct tensor *left = a->tensor, *right = b->tensor;
    if (a->encoding.dtype != b->encoding.dtype)
        return dtype_order(a->encoding.dtype) < dtype_order(b->encoding.dtype) ? -1 : 1;
    return text_compare(left->name, left->name_length, right->name, right->name_length);
}

/* The place of a tensor in the file. */
struct place {
    const struct artifact_tensor *written;
    uint64_t offset; /* from the start of the data */
};

static int compare_places(const void *a, const void *b)
{
    return safetensors_compare(((const struct place *)a)->written, ((const struct place *)b)->written);
}

static bool put_metadata(struct json_writer *writer, const struct gguf_kvs *metadata, struct error *error)
{
    struct arena *arena = arena_new();
    bool good = true;
    size_t length;
    json_begin_object(writer, metadata_key);
    for (size_t i = 0; i < metadata->n_kvs && good; i++) {
        const char *text = gguf_get_string(metadata, metadata->kvs[i].key, arena, &length, error);
        good = text != NULL;
        if (good)
            json_put_text(writer, metadata->kvs[i].key, text);
    }
    json_end(writer);
    arena_free(arena);
    return good;
}

static void put_place(struct json_writer *writer, const struct place *place, uint64_t end)
{
    const struct tensor *tensor = place->written->tensor;
    json_put_key(writer, tensor->name, tensor->name_length);
    json_begin_object(writer, NULL);
    json_put_text(writer, "dtype", place->written->encoding.dtype->name);
    json_begin_array(writer, "shape");
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_end(writer);
    json_begin_array(writer, "data_offsets");
    json_put_number(writer, NULL, place->offset);
    json_put_number(writer, NULL, end);
    json_end(writer);
    json_end(writer);
}

/* Sorts the places and sets their offsets; *ret_size is where the last tensor ends. */
static bool place_tensors(const struct artifact *artifact, struct place *places, uint64_t *ret_size,
                          struct error *error)
{
    uint64_t size = 0, n_elements, n_bytes;
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct artifact_tensor *written = &artifact->tensors[i];
        const char *refusal =
            safetensors_refusal(written->tensor->name, written->tensor->name_length, written->encoding.dtype);
        if (refusal != NULL)
            return error_set(error, "'%.200s': %s", written->tensor->name, refusal);
        places[i] = (struct place){.written = written};
    }
    if (artifact->n_tensors > 0)
        qsort(places, artifact->n_tensors, sizeof *places, compare_places);
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct tensor *tensor = places[i].written->tensor;
        const struct dtype *type = places[i].written->encoding.dtype;
        places[i].offset = size;
        if (!shape_size(type, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL) ||
            !checked_add(size, n_bytes, &size))
            return error_set(error, "tensor '%.200s': its %s elements do not fit in a file", tensor->name, type->name);
    }
    *ret_size = size;
    return true;
}

static bool write_header(const struct artifact *artifact, const struct place *places, uint64_t size,
                         struct buffer *header, struct error *error)
{
    struct json_writer writer = {.out = header, .letters = JSON_UTF8, .compact = true};
    size_t n = artifact->n_tensors;
    buffer_append_zeros(header, LENGTH_BYTES);
    json_begin_object(&writer, NULL);
    if (artifact->metadata.n_kvs > 0 && !put_metadata(&writer, &artifact->metadata, error))
        return false;
    for (size_t i = 0; i < n; i++)
        put_place(&writer, &places[i], i + 1 < n ? places[i + 1].offset : size);
    json_end(&writer);
    while (header->length % ALIGNMENT != 0)
        buffer_append_text(header, " ");
    size_t length = header->length - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        header->bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    return length <= MAX_HEADER_BYTES ||
           error_set(error, "the header of %zu tensors would have %zu bytes, but readers accept at most %d", n, length,
                     MAX_HEADER_BYTES);
}

static bool lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    struct buffer header = {0};
    uint64_t size = 0;
    struct place *places = memory_alloc((artifact->n_tensors + 1) * sizeof *places);
    bool good = place_tensors(artifact, places, &size, error) && write_header(artifact, places, size, &header, error);
    if (good) {
        spans_add_buffer(spans, &header);
        spans_reserve(spans, artifact->n_tensors);
        for (size_t i = 0; i < artifact->n_tensors; i++)
            spans_add_tensor(spans, places[i].written->tensor, places[i].written->encoding);
    }
    buffer_free(&header);
    free(places);
    return good;
}

const struct container safetensors_container = {.name = "safetensors", .lay_out = lay_out};
