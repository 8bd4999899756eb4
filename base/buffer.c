#include "base/buffer.h"

#include "base/arena.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}

static unsigned char *extend(struct buffer *buffer, size_t length)
{
    if (buffer->capacity - buffer->length < length) {
        size_t wanted = buffer->length + length;
        buffer->capacity = wanted < 256 ? 256 : wanted + wanted / 2;
        buffer->bytes = memory_resize(buffer->bytes, buffer->capacity);
    }
    unsigned char *place = buffer->bytes + buffer->length;
    buffer->length += length;
    return place;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
    if (length != 0)
        memcpy(extend(buffer, length), bytes, length);
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void buffer_append_zeros(struct buffer *buffer, size_t length)
{
    if (length != 0)
        memset(extend(buffer, length), 0, length);
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t length = (size_t)vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *place = (char *)extend(buffer, length + 1);
    vsnprintf(place, length + 1, format, arguments);
    va_end(arguments);
    buffer->length--;
}

void buffer_append_le(struct buffer *buffer, uint64_t value, size_t size)
{
    unsigned char *place = extend(buffer, size);
    for (size_t i = 0; i < size; i++)
        place[i] = (unsigned char)(value >> (8 * i));
}

void buffer_append_json_string(struct buffer *buffer, const char *text, size_t length)
{
    buffer_append(buffer, "\"", 1);
    for (size_t at = 0; at < length;) {
        size_t taken = text_character(text + at, length - at);
        unsigned char byte = (unsigned char)text[at];
        if (taken == 0)
            buffer_append_text(buffer, "\xef\xbf\xbd");
        else if (taken == 1 && (byte == '"' || byte == '\\'))
            buffer_printf(buffer, "\\%c", byte);
        else if (taken == 1 && (byte < 0x20 || byte == 0x7f))
            buffer_printf(buffer, "\\u%04x", byte);
        else
            buffer_append(buffer, text + at, taken);
        at += taken ? taken : 1;
    }
    buffer_append(buffer, "\"", 1);
}
