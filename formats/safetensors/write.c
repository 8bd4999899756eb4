#include "formats/safetensors/write.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/json_write.h"
#include "formats/layout.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8, LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100 * 1000 * 1000 };

static const char metadata_key[] = "__metadata__";

/* What the format has, in the order of the tensors: from the most aligned to the least. */
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
        return "its name means something else in safetensors";
    return NULL;
}

static int compare_places(const void *a, const void *b)
{
    const struct safetensors_place *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return text_compare(x->tensor->name, x->tensor->name_length, y->tensor->name, y->tensor->name_length);
}

static void put_metadata(struct json_writer *writer, const struct safetensors_metadata *metadata)
{
    json_begin_object(writer, metadata_key);
    for (size_t i = 0; metadata[i].key != NULL; i++)
        json_put_text(writer, metadata[i].key, metadata[i].value);
    json_end(writer);
}

static void put_place(struct json_writer *writer, const struct safetensors_place *place, uint64_t end)
{
    const struct tensor *tensor = place->tensor;
    json_put_key(writer, tensor->name, tensor->name_length);
    json_begin_object(writer, NULL);
    json_put_text(writer, "dtype", place->type->name);
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

/* Sets the offsets; *ret_size is where the last tensor ends. */
static bool set_offsets(struct safetensors_place *places, size_t n_places, uint64_t *ret_size, struct error *error)
{
    uint64_t size = 0, n_elements, n_bytes;
    for (size_t i = 0; i < n_places; i++) {
        const struct tensor *tensor = places[i].tensor;
        places[i].offset = size;
        if (!layout_size(places[i].type, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL) ||
            !checked_add(size, n_bytes, &size))
            return error_set(error, "tensor '%.200s': its %s elements do not fit in a file", tensor->name,
                             places[i].type->name);
    }
    *ret_size = size;
    return true;
}

bool safetensors_lay_out(struct safetensors_place *places, size_t n_places, const struct safetensors_metadata *metadata,
                         struct buffer *ret_header, uint64_t *ret_data_size, struct error *error)
{
    struct buffer header = {0};
    struct json_writer writer = {.out = &header, .letters = JSON_UTF8, .compact = true};
    uint64_t size = 0;
    for (size_t i = 0; i < n_places; i++)
        places[i].order = dtype_order(places[i].type);
    if (n_places > 0)
        qsort(places, n_places, sizeof *places, compare_places);
    if (!set_offsets(places, n_places, &size, error))
        return false;
    buffer_append_zeros(&header, LENGTH_BYTES);
    json_begin_object(&writer, NULL);
    if (metadata != NULL)
        put_metadata(&writer, metadata);
    for (size_t i = 0; i < n_places; i++)
        put_place(&writer, &places[i], i + 1 < n_places ? places[i + 1].offset : size);
    json_end(&writer);
    while (header.length % ALIGNMENT != 0)
        buffer_append_text(&header, " ");
    size_t length = header.length - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        header.bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    if (length > MAX_HEADER_BYTES) {
        buffer_free(&header);
        return error_set(error, "the header of %zu tensors would have %zu bytes, more than the %d that readers take",
                         n_places, length, MAX_HEADER_BYTES);
    }
    *ret_header = header;
    *ret_data_size = size;
    return true;
}
