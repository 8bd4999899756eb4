#include "fs/http/file_answer.h"

#include <stddef.h>
#include <string.h>

/* Reads decimal digits; NULL if there is none or the number does not fit. */
static const char *read_number(const char *text, uint64_t *ret_number)
{
    const char *c = text;
    uint64_t number = 0;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
            return NULL;
    *ret_number = number;
    return c != text ? c : NULL;
}

static enum range part_of(uint64_t first, uint64_t length, uint64_t *ret_first, uint64_t *ret_length)
{
    *ret_first = first;
    *ret_length = length;
    return length != 0 ? RANGE_PART : RANGE_UNSATISFIABLE;
}

enum range range_parse(const char *header, uint64_t size, uint64_t *ret_first, uint64_t *ret_length)
{
    static const char unit[] = "bytes=";
    uint64_t first, last = UINT64_MAX;
    if (header == NULL || strncmp(header, unit, strlen(unit)) != 0)
        return RANGE_WHOLE;
    const char *at = header + strlen(unit);
    if (*at == '-') {
        at = read_number(at + 1, &last);
        if (at == NULL || *at != '\0')
            return RANGE_WHOLE;
        return part_of(last < size ? size - last : 0, last < size ? last : size, ret_first, ret_length);
    }
    at = read_number(at, &first);
    if (at == NULL || *at++ != '-')
        return RANGE_WHOLE;
    if (*at != '\0')
        at = read_number(at, &last);
    if (at == NULL || *at != '\0' || last < first)
        return RANGE_WHOLE;
    if (first >= size)
        return RANGE_UNSATISFIABLE;
    return part_of(first, last < size ? last - first + 1 : size - first, ret_first, ret_length);
}

bool etag_is_listed(const char *list, const char *etag, bool weak)
{
    size_t length = strlen(etag);
    for (const char *at = list; *at != '\0';) {
        at += strspn(at, " \t,");
        bool is_weak = strncmp(at, "W/", 2) == 0;
        const char *tag = at + (is_weak ? 2 : 0);
        size_t end = *tag == '"' && strchr(tag + 1, '"') != NULL ? (size_t)(strchr(tag + 1, '"') - tag) + 1
                                                                 : strcspn(tag, " \t,");
        if (end == 1 && *tag == '*')
            return true;
        if ((weak || !is_weak) && end == length && memcmp(tag, etag, length) == 0)
            return true;
        at = tag + end;
    }
    return false;
}

bool unmodified_since(const char *header, time_t modified)
{
    struct tm utc = {0};
    const char *end = strptime(header, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    return end != NULL && *end == '\0' && modified <= timegm(&utc);
}
