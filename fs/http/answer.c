#include "fs/http/answer.h"

#include "text/json_write.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *request_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

void answer_begin(struct answer *answer)
{
    *answer = (struct answer){.arena = arena_new(), .status = 200};
}

void answer_free(struct answer *answer)
{
    buffer_free(&answer->text);
    arena_free(answer->arena);
}

static void add_header(struct answer *answer, const char *name, const char *value)
{
    char *copy = arena_strdup(answer->arena, value);
    for (char *c = copy; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    assert(answer->n_headers < ANSWER_MAX_HEADERS);
    answer->headers[answer->n_headers++] = (struct http_header){name, copy};
}

void answer_header(struct answer *answer, const char *name, const char *format, ...)
{
    char value[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    add_header(answer, name, value);
}

bool http_date(time_t time, char out[HTTP_DATE])
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm utc;
    if (gmtime_r(&time, &utc) == NULL)
        return false;
    snprintf(out, HTTP_DATE, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday], utc.tm_mday, months[utc.tm_mon],
             utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
    return true;
}

void answer_date(struct answer *answer, const char *name, time_t time)
{
    char date[HTTP_DATE];
    if (http_date(time, date))
        add_header(answer, name, date);
}

void answer_fail(struct answer *answer, unsigned status, const char *code, const char *format, ...)
{
    struct error message;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message.message, sizeof message.message, format, arguments);
    va_end(arguments);
    answer->status = status;
    answer->is_file = false;
    answer->n_headers = 0;
    buffer_free(&answer->text);
    answer->text = (struct buffer){0};
    struct json_writer writer = {.out = &answer->text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "error", message.message);
    if (code != NULL) /* as in registries */
        json_put_template(&writer, "'errors': [{'code': %s, 'message': %s}]", code, message.message);
    json_end(&writer);
    answer_header(answer, "Content-Type", "application/json");
    add_header(answer, "X-Error-Message", message.message);
    if (code != NULL)
        add_header(answer, "X-Error-Code", code);
}
