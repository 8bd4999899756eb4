#include "base/error.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set_message(struct error *error, const char *format, va_list arguments)
{
    char line[sizeof error->message];
    vsnprintf(line, sizeof line, format, arguments);
    text_printable(line, strlen(line), error->message, sizeof error->message);
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
    size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length, ": %s", strerror(errno_value));
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
    size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length, ": %s", inner.message);
    return false;
}
