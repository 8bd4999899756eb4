#include "formats/tflite/flatbuffer.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

enum { REFERENCE = 4, VTABLE_HEAD = 4, VTABLE_FIELD = 2 };

bool flat_refuse(const struct flatbuffer *buffer, uint64_t at, const char *reason, struct error *error)
{
    return error_set(error, "%s: offset %" PRIu64 ": %s", source_name(buffer->window.source), at, reason);
}

bool flat_number(struct flatbuffer *buffer, uint64_t at, unsigned size, uint64_t *ret_value, struct error *error)
{
    unsigned char bytes[8];
    uint64_t file_size = source_size(buffer->window.source);
    *ret_value = 0;
    if (at > file_size || size > file_size - at)
        return flat_refuse(buffer, at, "truncated or damaged: a reference leads past the end of the file", error);
    if (!window_read(&buffer->window, at, size, bytes, error))
        return false;
    *ret_value = read_le(bytes, size);
    return true;
}

/* Reads the vtable at `at`, with its fields up to FLATBUFFER_FIELDS. */
static bool read_vtable(struct flatbuffer *buffer, uint64_t at, struct error *error)
{
    unsigned char bytes[FLATBUFFER_FIELDS * VTABLE_FIELD];
    uint64_t length;
    if (buffer->vtable == at && at != 0)
        return true;
    if (!flat_number(buffer, at, 2, &length, error))
        return false;
    if (length < VTABLE_HEAD || length % VTABLE_FIELD != 0 || length > source_size(buffer->window.source) - at)
        return flat_refuse(buffer, at, "damaged: the length of a vtable", error);
    uint64_t n_bytes = length - VTABLE_HEAD < sizeof bytes ? length - VTABLE_HEAD : sizeof bytes;
    if (!window_read(&buffer->window, at + VTABLE_HEAD, (size_t)n_bytes, bytes, error))
        return false;
    memset(buffer->fields, 0, sizeof buffer->fields);
    for (unsigned i = 0; i < n_bytes / VTABLE_FIELD; i++)
        buffer->fields[i] = (uint16_t)read_le(bytes + VTABLE_FIELD * i, VTABLE_FIELD);
    buffer->vtable = at;
    return true;
}

bool flat_table(struct flatbuffer *buffer, uint64_t at, struct flat_table *ret_table, struct error *error)
{
    uint64_t reference, back;
    if (!flat_number(buffer, at, REFERENCE, &reference, error))
        return false;
    uint64_t table = at + reference;
    if (!flat_number(buffer, table, REFERENCE, &back, error))
        return false;
    int64_t vtable = (int64_t)table - (int32_t)(uint32_t)back;
    if (vtable < 0)
        return flat_refuse(buffer, table, "damaged: a table whose vtable lies before the file", error);
    if (!read_vtable(buffer, (uint64_t)vtable, error))
        return false;
    ret_table->at = table;
    memcpy(ret_table->fields, buffer->fields, sizeof ret_table->fields);
    return true;
}

bool flat_field(struct flatbuffer *buffer, const struct flat_table *table, unsigned field, unsigned size,
                uint64_t *ret_value, struct error *error)
{
    *ret_value = 0;
    return table->fields[field] == 0 || flat_number(buffer, table->at + table->fields[field], size, ret_value, error);
}

bool flat_vector(struct flatbuffer *buffer, const struct flat_table *table, unsigned field, unsigned size,
                 struct flat_vector *ret_vector, struct error *error)
{
    uint64_t reference, count;
    *ret_vector = (struct flat_vector){0};
    if (table->fields[field] == 0)
        return true;
    uint64_t at = table->at + table->fields[field];
    if (!flat_number(buffer, at, REFERENCE, &reference, error) ||
        !flat_number(buffer, at + reference, REFERENCE, &count, error))
        return false;
    ret_vector->at = at + reference + REFERENCE;
    ret_vector->count = (uint32_t)count;
    return count * size <= source_size(buffer->window.source) - ret_vector->at ||
           flat_refuse(buffer, at + reference, "truncated or damaged: a vector has more elements than the file", error);
}

bool flat_element(struct flatbuffer *buffer, const struct flat_vector *vector, uint32_t index,
                  struct flat_table *ret_table, struct error *error)
{
    return flat_table(buffer, vector->at + (uint64_t)index * REFERENCE, ret_table, error);
}
