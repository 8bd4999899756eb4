#include "formats/flax/msgpack.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* What follows the first byte of a value. */
enum shape {
    INVALID,
    NUMBER, /* an integer in `width` bytes */
    SIGNED, /* a signed one */
    REAL,   /* a float in `width` bytes */
    CONSTANT /* nothing */,
    RUN,     /* a length in `width` bytes, and as many bytes */
    TYPED,   /* a length in `width` bytes, a type, and as many bytes */
    FIXED,   /* a type, and `width` bytes */
    COUNTED, /* a count in `width` bytes, and as many values */
};

/* The first bytes 0xc0 to 0xdf. */
static const struct {
    uint8_t kind, shape, width;
} firsts[] = {
    {MSGPACK_NIL, CONSTANT, 0},     {MSGPACK_NIL, INVALID, 0},     {MSGPACK_FALSE, CONSTANT, 0},
    {MSGPACK_TRUE, CONSTANT, 0},    {MSGPACK_BINARY, RUN, 1},      {MSGPACK_BINARY, RUN, 2},
    {MSGPACK_BINARY, RUN, 4},       {MSGPACK_EXTENSION, TYPED, 1}, {MSGPACK_EXTENSION, TYPED, 2},
    {MSGPACK_EXTENSION, TYPED, 4},  {MSGPACK_FLOAT, REAL, 4},      {MSGPACK_FLOAT, REAL, 8},
    {MSGPACK_UNSIGNED, NUMBER, 1},  {MSGPACK_UNSIGNED, NUMBER, 2}, {MSGPACK_UNSIGNED, NUMBER, 4},
    {MSGPACK_UNSIGNED, NUMBER, 8},  {MSGPACK_NEGATIVE, SIGNED, 1}, {MSGPACK_NEGATIVE, SIGNED, 2},
    {MSGPACK_NEGATIVE, SIGNED, 4},  {MSGPACK_NEGATIVE, SIGNED, 8}, {MSGPACK_EXTENSION, FIXED, 1},
    {MSGPACK_EXTENSION, FIXED, 2},  {MSGPACK_EXTENSION, FIXED, 4}, {MSGPACK_EXTENSION, FIXED, 8},
    {MSGPACK_EXTENSION, FIXED, 16}, {MSGPACK_TEXT, RUN, 1},        {MSGPACK_TEXT, RUN, 2},
    {MSGPACK_TEXT, RUN, 4},         {MSGPACK_ARRAY, COUNTED, 2},   {MSGPACK_ARRAY, COUNTED, 4},
    {MSGPACK_MAP, COUNTED, 2},      {MSGPACK_MAP, COUNTED, 4},
};

bool msgpack_refuse(const struct msgpack *reader, uint64_t offset, const char *reason, struct error *error)
{
    return error_set(error, "%s: offset %" PRIu64 ": %s", reader->name, offset, reason);
}

static bool truncated(const struct msgpack *reader, uint64_t offset, struct error *error)
{
    return msgpack_refuse(reader, offset, "truncated: the value needs more bytes than are left", error);
}

/* Reads a big-endian number. */
static bool take(struct msgpack *reader, unsigned width, uint64_t *ret_number, struct error *error)
{
    unsigned char bytes[8];
    if (reader->end - reader->at < width)
        return truncated(reader, reader->at, error);
    if (!window_read(reader->window, reader->at, width, bytes, error))
        return false;
    reader->at += width;
    *ret_number = read_be(bytes, width);
    return true;
}

/* Skips the bytes of a text, binary data or an extension. */
static bool take_run(struct msgpack *reader, uint64_t start, struct msgpack_value *value, struct error *error)
{
    if (value->number > reader->end - reader->at)
        return truncated(reader, start, error);
    value->offset = reader->at;
    reader->at += value->number;
    return true;
}

/* Checks a count: each value takes a byte at least. */
static bool check_count(const struct msgpack *reader, uint64_t start, const struct msgpack_value *value,
                        struct error *error)
{
    uint64_t least = value->kind == MSGPACK_MAP ? 2 : 1;
    return value->number <= (reader->end - reader->at) / least || truncated(reader, start, error);
}

static double real_of(uint64_t bits, unsigned width)
{
    float small;
    double large;
    uint32_t half = (uint32_t)bits;
    memcpy(&small, &half, sizeof small);
    memcpy(&large, &bits, sizeof large);
    return width == sizeof small ? (double)small : large;
}

static void set_signed(struct msgpack_value *value, unsigned width)
{
    unsigned unused = 64 - 8 * width;
    int64_t number = (int64_t)(value->number << unused) >> unused;
    value->number = (uint64_t)number;
    value->kind = number < 0 ? MSGPACK_NEGATIVE : MSGPACK_UNSIGNED;
}

static bool take_type(struct msgpack *reader, struct msgpack_value *value, struct error *error)
{
    uint64_t type = 0;
    if (!take(reader, 1, &type, error))
        return false;
    value->type = (int8_t)type;
    return true;
}

/* Reads a value whose first byte, `start`, says how long its numbers are. */
static bool take_long(struct msgpack *reader, uint64_t start, unsigned first, struct msgpack_value *value,
                      struct error *error)
{
    unsigned width = firsts[first].width;
    enum shape shape = firsts[first].shape;
    value->kind = firsts[first].kind;
    value->number = width;
    if (shape == INVALID)
        return msgpack_refuse(reader, start, "0xc1 begins no value", error);
    if (shape != FIXED && !take(reader, width, &value->number, error))
        return false;
    switch (shape) {
    case SIGNED:
        set_signed(value, width);
        return true;
    case REAL:
        value->real = real_of(value->number, width);
        return true;
    case TYPED:
    case FIXED:
        return take_type(reader, value, error) && take_run(reader, start, value, error);
    case RUN:
        return take_run(reader, start, value, error);
    case COUNTED:
        return check_count(reader, start, value, error);
    default:
        return true;
    }
}

bool msgpack_next(struct msgpack *reader, struct msgpack_value *ret_value, struct error *error)
{
    uint64_t start = reader->at, first = 0;
    if (!take(reader, 1, &first, error))
        return false;
    *ret_value = (struct msgpack_value){.kind = MSGPACK_UNSIGNED, .number = first};
    if (first >= 0xc0 && first < 0xe0)
        return take_long(reader, start, (unsigned)first - 0xc0, ret_value, error);
    if (first >= 0xe0) {
        set_signed(ret_value, 1);
    } else if (first >= 0xa0) {
        ret_value->kind = MSGPACK_TEXT;
        ret_value->number = first & 0x1f;
        return take_run(reader, start, ret_value, error);
    } else if (first >= 0x80) {
        ret_value->kind = first >= 0x90 ? MSGPACK_ARRAY : MSGPACK_MAP;
        ret_value->number = first & 0x0f;
        return check_count(reader, start, ret_value, error);
    }
    return true;
}
