#include "remote/answer.h"

#include "remote/libcurl.h"

#include "tests/unit/check.h"

#include <errno.h>

static const struct question middle = {true, false, 100, 50, 1000, "\"v1\""},
                             first_contact = {true, true, 0, 256, SIZE_UNKNOWN, NULL}, whole = {.size = 1000},
                             huge = {true, false, 0, 256, UINT64_C(1) << 30, NULL};

static struct answer parse(const char *text)
{
    struct answer answer = {0};
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
        answer_add_line(&answer, line, strcspn(line, "\n"));
    return answer;
}

#define OK_206 "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\n"
#define OK_200 "HTTP/1.1 200 OK\r\n"

static void judgements(void)
{
    static const struct {
        const char *headers;
        const struct question *question;
        enum verdict verdict;
        uint64_t length;
        const char *name;
    } rows[] = {
        {OK_206 "Content-Range: bytes 100-149/1000\r\nContent-Length: 50\r\n", &middle, VERDICT_TAKE, 50, "a range"},
        {OK_206 "content-range: BYTES 100-149/*\r\n", &middle, VERDICT_REFUSED, 0, "no total, where it is known"},
        {OK_206 "Content-Range: bytes 0-255/9999\r\n", &first_contact, VERDICT_TAKE, 256, "first contact"},
        {OK_206 "Content-Range: bytes 0-99/100\r\n", &first_contact, VERDICT_TAKE, 100, "of a short file"},
        {OK_206 "Content-Range: bytes 0-99/1000\r\n", &first_contact, VERDICT_REFUSED, 0, "less than there is"},
        {OK_206 "Content-Range: bytes 0-49/1000\r\n", &middle, VERDICT_REFUSED, 0, "other first byte"},
        {OK_206 "Content-Range: bytes 100-150/1000\r\n", &middle, VERDICT_REFUSED, 0, "one byte more"},
        {OK_206 "Content-Range: bytes 100-148/1000\r\n", &middle, VERDICT_REFUSED, 0, "one byte less"},
        {OK_206 "Content-Range: bytes 100-149/1001\r\n", &middle, VERDICT_CHANGED, 0, "other total"},
        {OK_206 "Content-Range: bytes 100-149/120\r\n", &middle, VERDICT_REFUSED, 0, "last byte past the total"},
        {OK_206 "Content-Range: bytes 149-100/1000\r\n", &middle, VERDICT_REFUSED, 0, "backwards"},
        {OK_206 "Content-Range: bytes 100-149/1000\r\nContent-Length: 49\r\n", &middle, VERDICT_REFUSED, 0,
         "length and range disagree"},
        {OK_206 "Content-Range: bytes 100-149/1000\r\nContent-Range: bytes 100-149/1000\r\n", &middle, VERDICT_REFUSED,
         0, "two ranges"},
        {OK_206 "Content-Range: bytes 18446744073709551616-0/1000\r\n", &middle, VERDICT_REFUSED, 0, "overflow"},
        {OK_206 "Content-Range: lines 100-149/1000\r\n", &middle, VERDICT_REFUSED, 0, "another unit"},
        {OK_206 "Content-Type: multipart/byteranges; boundary=x\r\n", &middle, VERDICT_REFUSED, 0, "multipart"},
        {OK_206, &middle, VERDICT_REFUSED, 0, "206 without a range"},
        {OK_206 "Content-Range: bytes 0-999/1000\r\n", &whole, VERDICT_REFUSED, 0, "206 for all of it"},
        {OK_206 "Content-Range: bytes 100-149/1000\r\nContent-Encoding: gzip\r\n", &middle, VERDICT_REFUSED, 0, "gzip"},
        {"HTTP/1.1 206 X\r\nETag: \"v2\"\r\nContent-Range: bytes 100-149/1000\r\n", &middle, VERDICT_CHANGED, 0,
         "other ETag"},
        {"HTTP/1.1 206 X\r\nContent-Range: bytes 100-149/1000\r\n", &middle, VERDICT_CHANGED, 0, "no ETag any more"},
        {OK_200 "ETag: \"v1\"\r\nContent-Length: 1000\r\n", &middle, VERDICT_WHOLE, 1000, "no ranges, small"},
        {OK_200 "ETag: W/\"v1\"\r\nContent-Length: 1000\r\n", &middle, VERDICT_CHANGED, 0, "no ranges, changed"},
        {OK_200 "Content-Length: 1073741824\r\n", &huge, VERDICT_REFUSED, 0, "no ranges, large"},
        {OK_200, &first_contact, VERDICT_REFUSED, 0, "no ranges, no length"},
        {OK_200 "Content-Length: 16777217\r\n", &first_contact, VERDICT_REFUSED, 0, "above the limit"},
        {OK_200 "Content-Length: 1000\r\n", &whole, VERDICT_TAKE, 1000, "all"},
        {OK_200, &whole, VERDICT_TAKE, 1000, "all, without a length"},
        {OK_200 "Content-Length: 999\r\n", &whole, VERDICT_CHANGED, 0, "all, of another size"},
        {OK_200 "Content-Length: 1000\r\nContent-Length: 1\r\n", &whole, VERDICT_REFUSED, 0, "two lengths"},
        {OK_200 "Content-Length: -1\r\n", &whole, VERDICT_REFUSED, 0, "a negative length"},
        {"HTTP/1.1 302 Found\r\nLocation: /there\r\n", &middle, VERDICT_REDIRECT, 0, "a redirect"},
        {"HTTP/1.1 302 Found\r\n", &middle, VERDICT_REFUSED, 0, "a redirect to nowhere"},
        {"HTTP/1.1 304 Not Modified\r\n", &first_contact, VERDICT_SAME, 0, "304"},
        {"HTTP/1.1 304 Not Modified\r\n", &middle, VERDICT_REFUSED, 0, "304, never asked for"},
        {"HTTP/1.1 412 X\r\n", &middle, VERDICT_CHANGED, 0, "412"},
        {"HTTP/1.1 416 X\r\nContent-Range: bytes */0\r\n", &first_contact, VERDICT_EMPTY, 0, "an empty file"},
        {"HTTP/1.1 416 X\r\nContent-Range: bytes */50\r\n", &middle, VERDICT_CHANGED, 0, "416 of a file that was cut"},
        {"HTTP/1.1 416 X\r\n", &middle, VERDICT_REFUSED, 0, "416"},
        {"HTTP/1.1 403 Forbidden\r\n", &middle, VERDICT_REFUSED, 0, "403"},
        {"HTTP/1.1 404 Not Found\r\n", &middle, VERDICT_REFUSED, 0, "404"},
        {"HTTP/1.1 408 X\r\n", &middle, VERDICT_RETRY, 0, "408"},
        {"HTTP/1.1 429 X\r\n", &middle, VERDICT_RETRY, 0, "429"},
        {"HTTP/1.1 503 X\r\n", &middle, VERDICT_RETRY, 0, "503"},
        {"nonsense\r\n", &middle, VERDICT_REFUSED, 0, "no status"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct answer answer = parse(rows[i].headers);
        struct error error = {.message = ""};
        uint64_t length = 0;
        enum verdict verdict = answer_judge(&answer, rows[i].question, &length, &error);
        bool as_said = verdict >= VERDICT_RETRY ? error.message[0] != '\0' : true;
        bool measured = verdict > VERDICT_WHOLE || length == rows[i].length;
        CHECK_NAMED(verdict == rows[i].verdict && as_said && measured, rows[i].name);
        CHECK_NAMED(verdict != VERDICT_CHANGED || error.code == ESTALE, rows[i].name);
    }
}

static void pauses(void)
{
    static const struct {
        const char *headers;
        unsigned pause;
    } rows[] = {
        {"HTTP/1.1 429 X\nRetry-After: 7\n", 7},
        {"HTTP/1.1 429 X\nRetry-After: 99999999999999999999\n", 0},
        {"HTTP/1.1 429 X\nRetry-After: 3600\n", ANSWER_LONGEST_PAUSE},
        {"HTTP/1.1 429 X\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\n", 0},
        {"HTTP/1.1 429 X\nRateLimit: \"resolvers\";r=0;t=12\n", 12},
        {"HTTP/1.1 200 X\nRateLimit: \"resolvers\";r=99;t=12\n", 0},
        {"HTTP/1.1 200 X\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NAMED(parse(rows[i].headers).pause == rows[i].pause, rows[i].headers);
}

static void headers(void)
{
    char long_line[ANSWER_URL + 100] = "Location: ";
    struct answer answer = parse("HTTP/1.1 302 Found\nLocation: /a\nHTTP/1.1 200 OK\nLast-Modified: Thu, 01 Jan 1970 "
                                 "00:01:00 GMT\nX-Error-Code: GatedRepo\nETag:   \"x\"  \n"
                                 "Link: <https://h/api?cursor=2>; rel=\"next\"\n");
    CHECK_NAMED(*answer.location == '\0', "each answer has its own headers");
    CHECK(answer.modified == 60);
    CHECK_TEXT(answer.error_code, "GatedRepo");
    CHECK_TEXT(answer.etag, "\"x\"");
    CHECK_TEXT(answer.next, "https://h/api?cursor=2");
    memset(long_line + 10, 'x', ANSWER_URL);
    answer_add_line(&answer, long_line, 10 + ANSWER_URL);
    CHECK_NAMED(*answer.location == '\0', "a URL that is too long is none");
    answer_add_line(&answer, "ETag: \"y\0z\"", 11);
    CHECK_NAMED(strcmp(answer.etag, "\"x\"") == 0, "a line with a NUL byte is none");
    CHECK(answer_tag_is_strong("\"x\"") && !answer_tag_is_strong("W/\"x\"") && !answer_tag_is_strong(""));
}

int main(void)
{
    struct error error;
    CHECK(libcurl_load(&error));
    judgements();
    pauses();
    headers();
    return check_done();
}
