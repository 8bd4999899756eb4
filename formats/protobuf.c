#include "formats/protobuf.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARINT = 10 };

bool protobuf_refuse(const struct protobuf *message, uint64_t offset, const char *reason, struct error *error)
{
    return error_set(error, "%s: offset %" PRIu64 ": %s", message->name, offset, reason);
}

bool protobuf_varint(struct protobuf *message, uint64_t *ret_value, struct error *error)
{
    unsigned char bytes[MAX_VARINT];
    uint64_t n_left = message->end - message->at, value = 0;
    size_t n = n_left < MAX_VARINT ? (size_t)n_left : MAX_VARINT;
    if (!window_read(message->window, message->at, n, bytes, error))
        return false;
    for (size_t i = 0; i < n; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] < 0x80) {
            message->at += i + 1;
            *ret_value = value;
            return true;
        }
    }
    return protobuf_refuse(message, message->at,
                           n == MAX_VARINT ? "a number of more than 10 bytes" : "truncated: a number has no end",
                           error);
}

static bool take_fixed(struct protobuf *message, struct protobuf_field *field, unsigned size, struct error *error)
{
    unsigned char bytes[8];
    if (message->end - message->at < size)
        return protobuf_refuse(message, message->at, "truncated: a number has no end", error);
    if (!window_read(message->window, message->at, size, bytes, error))
        return false;
    field->value = read_le(bytes, size);
    message->at += size;
    return true;
}

static bool take_bytes(struct protobuf *message, struct protobuf_field *field, struct error *error)
{
    uint64_t start = message->at;
    if (!protobuf_varint(message, &field->length, error))
        return false;
    if (field->length > message->end - message->at)
        return protobuf_refuse(message, start, "truncated: a field has more bytes than are left", error);
    field->offset = message->at;
    message->at += field->length;
    return true;
}

static bool take_value(struct protobuf *message, struct protobuf_field *field, struct error *error)
{
    bool taken = false;
    field->offset = message->at;
    switch (field->wire) {
    case PROTOBUF_VARINT:
        taken = protobuf_varint(message, &field->value, error);
        break;
    case PROTOBUF_FIXED64:
        taken = take_fixed(message, field, 8, error);
        break;
    case PROTOBUF_BYTES:
        return take_bytes(message, field, error);
    case PROTOBUF_FIXED32:
        taken = take_fixed(message, field, 4, error);
        break;
    default:
        return protobuf_refuse(message, message->at, "a group or an unknown kind of field", error);
    }
    field->length = message->at - field->offset;
    return taken;
}

bool protobuf_next(struct protobuf *message, struct protobuf_field *ret_field, bool *ret_more, struct error *error)
{
    uint64_t start = message->at, tag = 0;
    *ret_more = start < message->end;
    if (!*ret_more)
        return true;
    if (!protobuf_varint(message, &tag, error))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > (UINT32_MAX >> 3))
        return protobuf_refuse(message, start, "a field without a valid number", error);
    *ret_field = (struct protobuf_field){.number = (uint32_t)(tag >> 3), .wire = (enum protobuf_wire)(tag & 7)};
    return take_value(message, ret_field, error);
}

bool protobuf_find(struct protobuf message, uint32_t number, struct protobuf_field *ret_field, struct error *error)
{
    struct protobuf_field field;
    *ret_field = (struct protobuf_field){0};
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number == number && field.wire == PROTOBUF_BYTES)
            *ret_field = field;
    }
    return !more;
}

struct protobuf protobuf_inner(const struct protobuf *message, const struct protobuf_field *field)
{
    struct protobuf inner = *message;
    inner.at = field->offset;
    inner.end = field->offset + field->length;
    return inner;
}

char *protobuf_text(const struct protobuf *message, const struct protobuf_field *field, size_t limit,
                    struct error *error)
{
    if (field->length > limit) {
        protobuf_refuse(message, field->offset, "a text is too long", error);
        return NULL;
    }
    char *text = memory_alloc((size_t)field->length + 1);
    if (!window_read(message->window, field->offset, (size_t)field->length, text, error)) {
        free(text);
        return NULL;
    }
    text[field->length] = '\0';
    return text;
}

static unsigned size_of(enum protobuf_wire encoding)
{
    return encoding == PROTOBUF_FIXED32 ? 4 : 8;
}

/* Reads the next number of a packed field. */
static bool next_packed(struct protobuf *packed, enum protobuf_wire encoding, unsigned char bytes[8],
                        struct error *error)
{
    uint64_t value = 0;
    if (encoding == PROTOBUF_VARINT) {
        if (!protobuf_varint(packed, &value, error))
            return false;
        for (unsigned i = 0; i < 8; i++)
            bytes[i] = (unsigned char)(value >> (8 * i));
        return true;
    }
    if (packed->end - packed->at < size_of(encoding))
        return protobuf_refuse(packed, packed->at, "packed numbers that are not whole", error);
    if (!window_read(packed->window, packed->at, size_of(encoding), bytes, error))
        return false;
    packed->at += size_of(encoding);
    return true;
}

/* Counts the numbers of a packed field. */
static bool count_packed(struct protobuf packed, enum protobuf_wire encoding, uint64_t *count, struct error *error)
{
    unsigned char unused[8];
    uint64_t length = packed.end - packed.at;
    if (encoding != PROTOBUF_VARINT) {
        *count += length / size_of(encoding);
        return length % size_of(encoding) == 0 ||
               protobuf_refuse(&packed, packed.at, "packed numbers that are not whole", error);
    }
    for (; packed.at < packed.end; ++*count)
        if (!next_packed(&packed, encoding, unused, error))
            return false;
    return true;
}

bool protobuf_count_numbers(struct protobuf message, uint32_t number, enum protobuf_wire encoding,
                            struct protobuf_numbers *ret_numbers, struct error *error)
{
    struct protobuf_field field = {0};
    uint64_t n_fields = 0, n_packed = 0;
    *ret_numbers = (struct protobuf_numbers){0};
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number != number || (field.wire != encoding && field.wire != PROTOBUF_BYTES))
            continue;
        n_fields++;
        if (field.wire == encoding) {
            ret_numbers->count++;
            continue;
        }
        n_packed++;
        ret_numbers->offset = field.offset;
        if (!count_packed(protobuf_inner(&message, &field), encoding, &ret_numbers->count, error))
            return false;
    }
    if (more)
        return false;
    ret_numbers->in_place = n_fields == 1 && n_packed == 1 && encoding != PROTOBUF_VARINT;
    return true;
}

bool protobuf_read_numbers(struct protobuf message, uint32_t number, enum protobuf_wire encoding, unsigned width,
                           unsigned char *out, struct error *error)
{
    struct protobuf_field field = {0};
    unsigned char bytes[8];
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number != number || (field.wire != encoding && field.wire != PROTOBUF_BYTES))
            continue;
        struct protobuf packed =
            protobuf_inner(&message, &field); /* a number on its own is encoded like a packed one */
        for (; packed.at < packed.end; out += width) {
            if (!next_packed(&packed, encoding, bytes, error))
                return false;
            memcpy(out, bytes, width);
        }
    }
    return !more;
}
