#include "formats/protobuf_numbers.h"

#include <string.h>

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
    struct protobuf_field field;
    uint64_t n_fields = 0, n_packed = 0;
    *ret_numbers = (struct protobuf_numbers){0};
    for (bool more;;) {
        if (!protobuf_next(&message, &field, &more, error))
            return false;
        if (!more)
            break;
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
    ret_numbers->in_place = n_fields == 1 && n_packed == 1 && encoding != PROTOBUF_VARINT;
    return true;
}

bool protobuf_read_numbers(struct protobuf message, uint32_t number, enum protobuf_wire encoding, unsigned width,
                           unsigned char *out, struct error *error)
{
    struct protobuf_field field;
    unsigned char bytes[8];
    for (bool more;;) {
        if (!protobuf_next(&message, &field, &more, error))
            return false;
        if (!more)
            return true;
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
}
