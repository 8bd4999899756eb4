/* Protocol buffers written by hand. */
#pragma once

#include "base/buffer.h"

#include <string.h>

static inline void put_varint(struct buffer *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buffer_append_le(out, (value & 0x7f) | 0x80, 1);
    buffer_append_le(out, value, 1);
}

static inline void put_number(struct buffer *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static inline void put_bytes(struct buffer *out, unsigned field, const void *bytes, size_t length)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, length);
    buffer_append(out, bytes, length);
}

static inline void put_text(struct buffer *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

/* Appends a message, which is then empty. */
static inline void put_message(struct buffer *out, unsigned field, struct buffer *message)
{
    put_bytes(out, field, message->bytes != NULL ? (const char *)message->bytes : "", message->length);
    buffer_free(message);
    *message = (struct buffer){0};
}
