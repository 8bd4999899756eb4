/* Any bytes as the status line and headers of a server's answer.
 *
 * Holds for every answer: what is taken is no more than was asked for, unless the answer is the whole object; what is
 * refused says so in one line. */
#include "remote/answer.h"
#include "remote/libcurl.h"
#include "tests/fuzz/fuzz.h"

static void read_headers(const uint8_t *data, size_t size, struct answer *answer)
{
    *answer = (struct answer){0};
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end != NULL ? (size_t)(end + 1 - data) : size;
        answer_add_line(answer, (const char *)data, length);
        data += length;
        size -= length;
    }
}

static void judge(const struct answer *answer, const struct question *question)
{
    struct error error = {""};
    uint64_t length = 0;
    enum verdict verdict = answer_judge(answer, question, &length, &error);
    if (verdict >= VERDICT_RETRY)
        require_one_line(&error);
    if (verdict == VERDICT_TAKE && question->is_range)
        require(length <= question->length);
    if ((verdict == VERDICT_TAKE || verdict == VERDICT_WHOLE) && question->size != SIZE_UNKNOWN)
        require(length == SIZE_UNKNOWN || length <= question->size);
    if (verdict == VERDICT_REDIRECT)
        require(*answer->location != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct question questions[] = {
        {.is_range = true, .first = 100, .length = 50, .size = 1000, .etag = "\"v1\""},
        {.is_range = true, .is_conditional = true, .length = 256, .size = SIZE_UNKNOWN},
        {.size = 1000},
        {.size = SIZE_UNKNOWN},
    };
    struct error error;
    struct answer answer;
    require(libcurl_load(&error));
    read_headers(data, size, &answer);
    require(answer.pause <= ANSWER_LONGEST_PAUSE);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        judge(&answer, &questions[i]);
    return 0;
}
