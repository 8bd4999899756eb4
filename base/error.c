#include "base/error.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 6000 }; /* a path and what is said of it */

static const char gap[] = " ... ";

/* Reports whether a byte goes on with a character of UTF-8. */
static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Copies a line. Of one that is too long the middle is left out: a path comes first, and the reason last. */
static void fit(const char *line, char *message, size_t capacity)
{
    size_t length = strlen(line), head = capacity / 3, tail = capacity - head - sizeof gap;
    if (length < capacity) {
        memcpy(message, line, length + 1);
        return;
    }
    const char *end = line + length - tail;
    while (head > 0 && is_inside_character(line[head]))
        head--;
    while (is_inside_character(*end))
        end++;
    memcpy(message, line, head);
    snprintf(message + head, capacity - head, "%s%s", gap, end);
}

static void set_message(struct error *error, const char *format, va_list arguments)
{
    char line[LINE_BYTES], shown[2 * LINE_BYTES];
    vsnprintf(line, sizeof line, format, arguments);
    text_printable(line, strlen(line), shown, sizeof shown);
    fit(shown, error->message, sizeof error->message);
}

/* Appends ": " and a text that is printable. */
static void append(struct error *error, const char *text)
{
    char line[2 * sizeof error->message + sizeof ": "];
    snprintf(line, sizeof line, "%s: %s", error->message, text);
    fit(line, error->message, sizeof error->message);
}

bool error_set(struct error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_message(error, format, arguments);
    va_end(arguments);
    error->code = EIO;
    return false;
}

bool error_set_errno(struct error *error, int errno_value, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_message(error, format, arguments);
    va_end(arguments);
    append(error, strerror(errno_value));
    error->code = EIO;
    return false;
}

bool error_set_code(struct error *error, int code)
{
    error->code = code;
    return false;
}

bool error_prefix(struct error *error, const char *format, ...)
{
    struct error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    set_message(error, format, arguments);
    va_end(arguments);
    append(error, inner.message);
    return false;
}
