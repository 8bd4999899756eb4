/* Safetensors files for tests, put together tensor by tensor. */
#pragma once

#include "base/buffer.h"
#include "base/little_endian.h"

#include "tests/unit/files.h"

/* Writes a safetensors file of that header, which may be wrong, and `n_data` bytes 0, 1, 2 ... after it. */
static inline void files_write_safetensors(const char *path, const char *header, size_t header_length, size_t n_data)
{
    struct buffer file = {0};
    buffer_append_le(&file, header_length, 8);
    buffer_append(&file, header, header_length);
    for (size_t i = 0; i < n_data; i++)
        buffer_append_le(&file, i & 0xff, 1);
    files_write(path, file.bytes, file.length);
    buffer_free(&file);
}

/* Begins as all zeros, which is a file without tensors. */
struct safetensors {
    struct buffer header, data; /* the header without its braces */
};

/* Adds a tensor of the shape "4,8", and `length` bytes of data, numbers of this machine: zeros where `numbers` is NULL.
 */
static inline void safetensors_add(struct safetensors *file, const char *name, const char *dtype, const char *shape,
                                   const void *numbers, size_t length)
{
    buffer_printf(&file->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                  file->header.length > 0 ? "," : "", name, dtype, shape, file->data.length,
                  file->data.length + length);
    size_t bits = strtoul(dtype + strcspn(dtype, "123456789"), NULL, 10), size = bits / (*dtype == 'C' ? 16 : 8);
    if (numbers == NULL) {
        buffer_append_zeros(&file->data, length);
        return;
    }
    buffer_append(&file->data, numbers, length);
    if (size > 1)
        little_endian(file->data.bytes + file->data.length - length, length / size, size);
}

/* Writes the file, and begins anew. */
static inline void safetensors_write(struct safetensors *file, const char *path)
{
    struct buffer whole = {0};
    buffer_append_le(&whole, file->header.length + 2, 8);
    buffer_append_text(&whole, "{");
    buffer_append(&whole, file->header.bytes, file->header.length);
    buffer_append_text(&whole, "}");
    buffer_append(&whole, file->data.bytes, file->data.length);
    files_write(path, whole.bytes, whole.length);
    buffer_free(&whole);
    buffer_free(&file->header);
    buffer_free(&file->data);
}

/* Writes a file of one tensor, as safetensors_add() does. */
static inline void safetensors_write_one(const char *path, const char *name, const char *dtype, const char *shape,
                                         const void *numbers, size_t length)
{
    struct safetensors file = {0};
    safetensors_add(&file, name, dtype, shape, numbers, length);
    safetensors_write(&file, path);
}

/* Writes F32 tensors "NAME ROWS COLUMNS, ..."; no rows make a vector, "3 2x4" four matrices. Element i of each is i. */
static inline void safetensors_write_ramps(const char *path, const char *tensors)
{
    enum { MOST = 1 << 16 };
    static float ramp[MOST];
    struct safetensors file = {0};
    for (size_t i = 0; i < MOST; i++)
        ramp[i] = (float)i;
    for (int consumed; *tensors != '\0'; tensors += consumed + (int)strspn(tensors + consumed, ", ")) {
        char name[200], matrix[32], shape[64];
        unsigned rows, columns, n_matrices;
        files_must(sscanf(tensors, "%199s %u %u%n", name, &rows, &columns, &consumed) == 3, tensors);
        bool are_several = sscanf(tensors + consumed, "x%u", &n_matrices) == 1;
        size_t count = (size_t)(rows > 0 ? rows : 1) * columns;
        snprintf(matrix, sizeof matrix, rows > 0 ? "%u,%u" : "%.0u%u", rows, columns);
        snprintf(shape, sizeof shape, are_several ? "%u,%s" : "%.0u%s", are_several ? n_matrices : 0, matrix);
        consumed += are_several ? (int)strcspn(tensors + consumed, ",") : 0;
        safetensors_add(&file, name, "F32", shape, ramp, count * (are_several ? n_matrices : 1) * sizeof *ramp);
    }
    safetensors_write(&file, path);
}

/* Calls add(context, NAME) for a name with the range "[0-3]" in it written out: for each number, the first range first.
 */
static inline void each_name(const char *name, void (*add)(void *context, const char *name), void *context)
{
    const char *open = strchr(name, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    unsigned first = 0, last = 0;
    if (open == NULL) {
        add(context, name);
        return;
    }
    files_must(close != NULL && sscanf(open, "[%u-%u]", &first, &last) == 2, name);
    for (unsigned i = first; i <= last; i++) {
        char one[256];
        snprintf(one, sizeof one, "%.*s%u%s", (int)(open - name), name, i, close + 1);
        each_name(one, add, context);
    }
}

/* The shape "32,48" of "32x48", up to anything else, and the number of its elements. */
static inline uint64_t safetensors_shape(const char *dimensions, char shape[64])
{
    uint64_t count = 1;
    size_t length = strspn(dimensions, "0123456789x");
    snprintf(shape, 64, "%.*s", (int)length, dimensions);
    for (char *at = shape, *end; *at != '\0'; at = end + (*end == ',')) {
        count *= strtoull(at, &end, 10);
        if (*end == 'x')
            *end = ',';
    }
    return count;
}
