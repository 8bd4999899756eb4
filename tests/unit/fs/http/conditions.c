/* Expected: RFC 9110, sections 13.1 and 14.1.2, with its examples for a representation of 10000 bytes. */
#include "fs/http/file_answer.h"

#include "tests/unit/check.h"

static const struct {
    const char *header;
    uint64_t size;
    enum range expected;
    uint64_t first, length;
} ranges[] = {
    {NULL, 10000, RANGE_WHOLE, 0, 0},
    {"bytes=0-499", 10000, RANGE_PART, 0, 500},
    {"bytes=500-999", 10000, RANGE_PART, 500, 500},
    {"bytes=-500", 10000, RANGE_PART, 9500, 500},
    {"bytes=9500-", 10000, RANGE_PART, 9500, 500},
    {"bytes=0-0", 10000, RANGE_PART, 0, 1},
    {"bytes=9999-20000", 10000, RANGE_PART, 9999, 1},
    {"bytes=-20000", 10000, RANGE_PART, 0, 10000},
    {"bytes=0-18446744073709551615", 10000, RANGE_PART, 0, 10000},
    {"bytes=10000-", 10000, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=10000-10001", 10000, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=-0", 10000, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=-5", 0, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=0-0,-1", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=5-4", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=-", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=a-b", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=1", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=1-2x", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=+1-2", 10000, RANGE_WHOLE, 0, 0},
    {"bytes=18446744073709551616-", 10000, RANGE_WHOLE, 0, 0},
    {"lines=1-2", 10000, RANGE_WHOLE, 0, 0},
};

static const struct {
    const char *list;
    bool strong, weak; /* matches */
} lists[] = {
    {"\"xyzzy\"", true, true},
    {"W/\"xyzzy\"", false, true},
    {"\"a\", \"xyzzy\" ,\"b\"", true, true},
    {"\"a,xyzzy\", \"b\"", false, false},
    {"*", true, true},
    {"\"*\"", false, false},
    {"xyzzy", false, false},
    {"\"xyzzy", false, false},
    {"\"xyzzyx\"", false, false},
    {"", false, false},
    {" , ,", false, false},
};

/* 784111777: RFC 9110, section 5.6.7's date, by `date -d ... +%s`. */
static const struct {
    const char *header;
    time_t modified;
    bool unmodified;
} dates[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777, true},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111776, true},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111778, false},
    {"Sun, 06 Nov 1994 08:49:37 GMT, x", 784111777, false},
    {"Sun, 06 Nov 1994 08:49:37", 784111777, false},
    {"Sun Nov  6 08:49:37 1994", 784111777, false},
    {"Sun, 46 Nov 1994 08:49:37 GMT", 0, false},
    {"784111777", 0, false},
    {"", 0, false},
};

int main(void)
{
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        CHECK_NAMED(unmodified_since(dates[i].header, dates[i].modified) == dates[i].unmodified, dates[i].header);

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        uint64_t first = 0, length = 0;
        const char *name = ranges[i].header != NULL ? ranges[i].header : "no header";
        CHECK_NAMED(range_parse(ranges[i].header, ranges[i].size, &first, &length) == ranges[i].expected, name);
        if (ranges[i].expected == RANGE_PART)
            CHECK_NAMED(first == ranges[i].first && length == ranges[i].length, name);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        CHECK_NAMED(etag_is_listed(lists[i].list, "\"xyzzy\"", false) == lists[i].strong, lists[i].list);
        CHECK_NAMED(etag_is_listed(lists[i].list, "\"xyzzy\"", true) == lists[i].weak, lists[i].list);
    }
    return check_done();
}
