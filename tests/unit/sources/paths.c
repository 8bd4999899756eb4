#include "sources/paths.h"

#include "tests/unit/check.h"

static const struct {
    const char *path;
    bool stays;
} rows[] = {
    {"a", true},     {"a/b.bin", true}, {".hidden", true}, {"..a", true},  {"a..", true},   {"", false},
    {".", false},    {"..", false},     {"/a", false},     {"a/", false},  {"a//b", false}, {"../a", false},
    {"a/..", false}, {"a/../b", false}, {"./a", false},    {"a/.", false}, {"/", false},    {"...", true},
};

int main(void)
{
    char longest[5000];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NAMED(inner_path(rows[i].path, strlen(rows[i].path)) == rows[i].stays, rows[i].path);
    CHECK(!inner_path("a\0b", 3));
    memset(longest, 'a', sizeof longest);
    CHECK(inner_path(longest, 4095) && !inner_path(longest, 4096));
    return check_done();
}
