#include "remote/answer.h"

#include "remote/libcurl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool parse_decimal(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return *at != start;
}

static bool parse_bounds(const char **at, struct answer *answer)
{
    answer->is_unsatisfied = **at == '*';
    if (answer->is_unsatisfied) {
        (*at)++;
        return true;
    }
    return parse_decimal(at, &answer->first) && *(*at)++ == '-' && parse_decimal(at, &answer->last) &&
           answer->first <= answer->last;
}

/* "bytes 0-99/1000", "bytes 0-99/ *", "bytes * /1000". */
static void take_range(struct answer *answer, const char *value)
{
    bool good = strncasecmp(value, "bytes ", 6) == 0 && !answer->has_range;
    const char *at = value + 6;
    answer->total = SIZE_UNKNOWN;
    good = good && parse_bounds(&at, answer) && *at++ == '/';
    if (good && strcmp(at, "*") == 0)
        at++;
    else
        good = good && parse_decimal(&at, &answer->total) && *at == '\0' &&
               (answer->is_unsatisfied || answer->last < answer->total);
    answer->has_range = true;
    answer->is_malformed |= !good;
}

static void take_length(struct answer *answer, const char *value)
{
    uint64_t length;
    bool good = parse_decimal(&value, &length) && *value == '\0' && (!answer->has_length || answer->length == length);
    answer->is_malformed |= !good;
    answer->has_length = good;
    if (good)
        answer->length = length;
}

static void take_encoding(struct answer *answer, const char *value)
{
    answer->is_encoded |= *value != '\0' && strcasecmp(value, "identity") != 0;
}

static void take_pause(struct answer *answer, uint64_t seconds)
{
    unsigned pause = seconds < ANSWER_LONGEST_PAUSE ? (unsigned)seconds : ANSWER_LONGEST_PAUSE;
    answer->pause = pause > answer->pause ? pause : answer->pause;
}

static void take_retry_after(struct answer *answer, const char *value)
{
    uint64_t seconds;
    if (parse_decimal(&value, &seconds) && *value == '\0')
        take_pause(answer, seconds);
}

/* "resolvers";r=0;t=123 */
static void take_rate_limit(struct answer *answer, const char *value)
{
    uint64_t seconds;
    const char *at = strstr(value, ";t=");
    if (at == NULL || strstr(value, ";r=0") == NULL)
        return;
    at += 3;
    if (parse_decimal(&at, &seconds))
        take_pause(answer, seconds);
}

static void take_modified(struct answer *answer, const char *value)
{
    time_t time = libcurl.getdate(value, NULL);
    answer->modified = time > 0 ? time : 0;
}

static void take_text(char *field, size_t capacity, const char *value)
{
    if (strlen(value) < capacity)
        strcpy(field, value);
    else
        *field = '\0';
}

/* <https://...>; rel="next" */
static void take_link(struct answer *answer, const char *value)
{
    const char *end = *value == '<' ? strchr(value, '>') : NULL;
    if (end == NULL || strstr(end, "rel=\"next\"") == NULL || (size_t)(end - value) >= sizeof answer->next)
        return;
    snprintf(answer->next, sizeof answer->next, "%.*s", (int)(end - value - 1), value + 1);
}

static void take_type(struct answer *answer, const char *value)
{
    take_text(answer->type, sizeof answer->type, value);
    answer->is_multipart = strncasecmp(value, "multipart/", 10) == 0;
}

static void take_header(struct answer *answer, const char *name, const char *value)
{
    static const struct {
        const char *name;
        void (*take)(struct answer *answer, const char *value);
    } parsed[] = {
        {"Content-Range", take_range},       {"Content-Length", take_length},
        {"Content-Encoding", take_encoding}, {"Retry-After", take_retry_after},
        {"RateLimit", take_rate_limit},      {"Last-Modified", take_modified},
        {"Content-Type", take_type},         {"Link", take_link},
    };
    const struct {
        const char *name;
        char *field;
        size_t capacity;
    } kept[] = {
        {"ETag", answer->etag, sizeof answer->etag},
        {"Location", answer->location, sizeof answer->location},
        {"X-Error-Code", answer->error_code, sizeof answer->error_code},
        {"X-Error-Message", answer->error_message, sizeof answer->error_message},
    };
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++)
        if (strcasecmp(name, parsed[i].name) == 0)
            parsed[i].take(answer, value);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcasecmp(name, kept[i].name) == 0)
            take_text(kept[i].field, kept[i].capacity, value);
}

static void begin_answer(struct answer *answer, const char *line)
{
    const char *space = strchr(line, ' ');
    *answer = (struct answer){.status = space != NULL ? atoi(space + 1) : 0};
}

void answer_add_line(struct answer *answer, const char *bytes, size_t length)
{
    char line[ANSWER_URL + ANSWER_WORDS];
    while (length > 0 && strchr("\r\n \t", bytes[length - 1]) != NULL)
        length--;
    if (length >= sizeof line || memchr(bytes, '\0', length) != NULL)
        return;
    memcpy(line, bytes, length);
    line[length] = '\0';
    char *colon = strchr(line, ':');
    if (strncmp(line, "HTTP/", 5) == 0) {
        begin_answer(answer, line);
    } else if (colon != NULL) {
        *colon = '\0';
        take_header(answer, line, colon + 1 + strspn(colon + 1, " \t"));
    }
}

bool answer_tag_is_strong(const char *etag)
{
    return *etag == '"';
}

static enum verdict changed(struct error *error, const char *what)
{
    error_set(error, "the object has changed on the server: %s; open it again to read the new one", what);
    error_set_code(error, ESTALE);
    return VERDICT_CHANGED;
}

enum verdict answer_changed(struct error *error)
{
    return changed(error, "it has another ETag");
}

static enum verdict changed_size(struct error *error, uint64_t size, uint64_t before)
{
    char what[96];
    snprintf(what, sizeof what, "it has %llu bytes now, and had %llu", (unsigned long long)size,
             (unsigned long long)before);
    return changed(error, what);
}

static enum verdict refused(struct error *error, const char *why)
{
    error_set(error, "the server's answer cannot be used: %s", why);
    return VERDICT_REFUSED;
}

static bool has_other_tag(const struct answer *answer, const struct question *question)
{
    return question->etag != NULL && strcmp(question->etag, answer->etag) != 0;
}

static enum verdict judge_range(const struct answer *answer, const struct question *question, uint64_t *ret_length,
                                struct error *error)
{
    if (!question->is_range || answer->is_unsatisfied || !answer->has_range)
        return refused(error,
                       answer->is_multipart ? "it has several ranges" : "status 206 without the range asked for");
    if (has_other_tag(answer, question))
        return answer_changed(error);
    if (answer->total == SIZE_UNKNOWN)
        return refused(error, "its Content-Range does not state the size of the object");
    if (question->size != SIZE_UNKNOWN && answer->total != question->size)
        return changed_size(error, answer->total, question->size);
    uint64_t length = answer->last - answer->first + 1;
    bool ends_right = length < question->length && answer->last == answer->total - 1;
    if (answer->first != question->first || (length != question->length && !ends_right)) {
        error_set(error, "the server's answer cannot be used: it has the bytes %llu-%llu, and %llu-%llu were asked for",
                  (unsigned long long)answer->first, (unsigned long long)answer->last,
                  (unsigned long long)question->first, (unsigned long long)(question->first + question->length - 1));
        return VERDICT_REFUSED;
    }
    if (answer->has_length && answer->length != length)
        return refused(error, "its Content-Length and its Content-Range disagree");
    *ret_length = length;
    return VERDICT_TAKE;
}

static enum verdict judge_whole(const struct answer *answer, const struct question *question, uint64_t *ret_length,
                                struct error *error)
{
    if (has_other_tag(answer, question))
        return answer_changed(error);
    if (question->size != SIZE_UNKNOWN && answer->has_length && answer->length != question->size)
        return changed_size(error, answer->length, question->size);
    uint64_t size = answer->has_length ? answer->length : question->size;
    *ret_length = size;
    if (!question->is_range)
        return VERDICT_TAKE;
    bool is_all = question->first == 0 && size != SIZE_UNKNOWN && size <= question->length;
    if (is_all || size <= ANSWER_WHOLE_LIMIT)
        return VERDICT_WHOLE;
    return refused(error, "the server serves no ranges, and the file is too large to be fetched whole for each read");
}

static enum verdict judge_failure(const struct answer *answer, const struct question *question, struct error *error)
{
    switch (answer->status) {
    case 412:
        return answer_changed(error);
    case 416:
        if (answer->is_unsatisfied && answer->total == 0 && question->size == SIZE_UNKNOWN)
            return VERDICT_EMPTY;
        return question->size != SIZE_UNKNOWN && answer->is_unsatisfied && answer->total != question->size
                   ? changed_size(error, answer->total, question->size)
                   : refused(error, "status 416, no such range");
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        error_set(error, "the server answers with status %d", answer->status);
        return VERDICT_RETRY;
    default:
        error_set(error, "the server answers with status %d", answer->status);
        return VERDICT_REFUSED;
    }
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum verdict answer_judge(const struct answer *answer, const struct question *question, uint64_t *ret_length,
                          struct error *error)
{
    if (is_redirect(answer->status))
        return *answer->location != '\0' ? VERDICT_REDIRECT : refused(error, "a redirect without a usable Location");
    if (answer->status == 304 && question->is_conditional)
        return VERDICT_SAME;
    if (answer->status != 200 && answer->status != 206)
        return judge_failure(answer, question, error);
    if (answer->is_encoded)
        return refused(error, "it is compressed, though that was ruled out");
    if (answer->is_malformed)
        return refused(error, "its Content-Range or Content-Length is malformed");
    return answer->status == 206 ? judge_range(answer, question, ret_length, error)
                                 : judge_whole(answer, question, ret_length, error);
}
