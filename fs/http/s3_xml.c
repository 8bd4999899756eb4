#include "fs/http/s3.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put_head(struct buffer *out)
{
    buffer_append_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

struct buffer *s3_begin(struct answer *answer, const char *element)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "application/xml");
    put_head(out);
    buffer_printf(out, "<%s xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", element);
    return out;
}

void s3_put_text(struct buffer *out, const char *text, size_t length)
{
    struct buffer valid = {0};
    text_append_valid(text, length, &valid);
    for (size_t i = 0; i < valid.length; i++) {
        const char *c = (const char *)valid.bytes + i;
        if ((unsigned char)*c < ' ' || strchr("&<>\"'", *c) != NULL)
            buffer_printf(out, "&#%d;", *c);
        else
            buffer_append(out, c, 1);
    }
    buffer_free(&valid);
}

void s3_put(struct buffer *out, const char *element, const char *text)
{
    buffer_printf(out, "<%s>", element);
    s3_put_text(out, text, strlen(text));
    buffer_printf(out, "</%s>", element);
}

void s3_put_number(struct buffer *out, const char *element, uint64_t number)
{
    buffer_printf(out, "<%s>%" PRIu64 "</%s>", element, number, element);
}

void s3_put_time(struct buffer *out, const char *element, time_t time)
{
    char text[40];
    struct tm utc = {0};
    gmtime_r(&time, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &utc);
    s3_put(out, element, text);
}

void s3_fail(struct answer *answer, unsigned status, const char *code, const char *format, ...)
{
    struct error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    answer_fail(answer, status, NULL, "%s", error.message);
    buffer_free(&answer->text);
    answer->text = (struct buffer){0};
    answer->n_headers = 0;
    answer_header(answer, "Content-Type", "application/xml");
    put_head(&answer->text);
    buffer_append_text(&answer->text, "<Error>");
    s3_put(&answer->text, "Code", code);
    s3_put(&answer->text, "Message", error.message);
    buffer_append_text(&answer->text, "</Error>\n");
}
