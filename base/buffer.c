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

void buffer_reserve(struct buffer *buffer, size_t length)
{
    if (buffer->capacity - buffer->length >= length)
        return;
    buffer->capacity = buffer->length + length;
    buffer->bytes = memory_resize(buffer->bytes, buffer->capacity);
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
    enum { USUAL_LENGTH = 128 };
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    char *place = (char *)extend(buffer, USUAL_LENGTH);
    size_t length = (size_t)vsnprintf(place, USUAL_LENGTH, format, arguments);
    buffer->length -= USUAL_LENGTH;
    if (length >= USUAL_LENGTH) {
        place = (char *)extend(buffer, length + 1);
        vsnprintf(place, length + 1, format, again);
        buffer->length -= length + 1;
    }
    buffer->length += length;
    va_end(again);
    va_end(arguments);
}

/* Without printf(), which would take half of the time of writing a list of files: such lists are mostly numbers. */
void buffer_append_decimal(struct buffer *buffer, uint64_t number)
{
    enum { MOST_DIGITS = 20 };
    char digits[MOST_DIGITS];
    size_t first = MOST_DIGITS;
    do
        digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    buffer_append(buffer, digits + first, MOST_DIGITS - first);
}

void buffer_append_le(struct buffer *buffer, uint64_t value, size_t size)
{
    unsigned char *place = extend(buffer, size), bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) /* a single store, once compiled */
        bytes[i] = (unsigned char)(value >> (8 * i));
    if (size == sizeof bytes)
        memcpy(place, bytes, sizeof bytes);
    else
        memcpy(place, bytes, size);
}

/* Returns how many bytes at the start of `text` a JSON string shows unchanged: printable ASCII except '"' and '\\'. */
static size_t plain_run(const char *text, size_t length)
{
    size_t run = 0;
    while (run < length && text[run] >= 0x20 && text[run] < 0x7f && text[run] != '"' && text[run] != '\\')
        run++;
    return run;
}

/* Appends a byte that JSON does not show unchanged. */
static void append_escaped(struct buffer *buffer, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        buffer_printf(buffer, "\\%c", byte);
    else
        buffer_printf(buffer, "\\u%04x", byte);
}

/* Appends a character of `length` bytes as \uXXXX; above U+FFFF as a pair of surrogates. */
static void append_code_units(struct buffer *buffer, const char *character, size_t length)
{
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)character[0] & lead_bits[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)character[i] & 0x3f);
    if (code < 0x10000)
        buffer_printf(buffer, "\\u%04x", code);
    else
        buffer_printf(buffer, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
}

void buffer_append_json_text(struct buffer *buffer, const char *text, size_t length, enum json_letters letters)
{
    static const char controls[] = "\b\t\n\f\r", letters_of_controls[] = "btnfr";
    buffer_append(buffer, "\"", 1);
    for (size_t at = 0; at < length;) {
        size_t run = plain_run(text + at, length - at), taken = run;
        if (run == 0)
            taken = text_character(text + at, length - at);
        const char *control = taken == 1 && text[at] != '\0' ? strchr(controls, text[at]) : NULL;
        if (taken == 0)
            buffer_append_text(buffer, letters == JSON_ASCII ? "\\ufffd" : "\xef\xbf\xbd");
        else if (taken > 1 && run == 0 && letters == JSON_ASCII)
            append_code_units(buffer, text + at, taken);
        else if (run != 0 || taken > 1 || (text[at] == 0x7f && letters == JSON_UTF8))
            buffer_append(buffer, text + at, taken);
        else if (control != NULL && run == 0)
            buffer_printf(buffer, "\\%c", letters_of_controls[control - controls]);
        else
            append_escaped(buffer, (unsigned char)text[at]);
        at += taken ? taken : 1;
    }
    buffer_append(buffer, "\"", 1);
}
