/* Errors keep their reason, however long the path is. */
#include "base/error.h"

#include "tests/unit/check.h"

#include <errno.h>

static char path[4000];

static bool ends_with(const struct error *error, const char *end)
{
    size_t length = strlen(error->message), n = strlen(end);
    return length < sizeof error->message && length >= n && strcmp(error->message + length - n, end) == 0;
}

static void long_paths(void)
{
    struct error error;
    memset(path, 'd', sizeof path - 1);
    error_set(&error, "%s: tensor 'a' is too long", path);
    CHECK(ends_with(&error, "ddd: tensor 'a' is too long") && strncmp(error.message, "dddd", 4) == 0);
    CHECK(strstr(error.message, " ... ") != NULL);
    error_set_errno(&error, ENOENT, "%s", path);
    CHECK(ends_with(&error, "ddd: No such file or directory"));
    error_set(&error, "the reason");
    error_prefix(&error, "%s", path);
    CHECK(ends_with(&error, "ddd: the reason") && error.code == EIO);
    error_prefix(&error, "a recipe");
    CHECK(ends_with(&error, "ddd: the reason") && strncmp(error.message, "a recipe: dddd", 14) == 0);
}

static void whole_characters(void)
{
    struct error error;
    for (size_t i = 0; i + 2 < sizeof path; i += 2)
        memcpy(path + i, "\xc3\xa4", 3);
    for (int shift = 0; shift < 2; shift++) {
        error_set(&error, "%.*s%s: the reason", shift, "x", path);
        const char *gap = strstr(error.message, " ... ");
        CHECK(gap != NULL && gap[-1] == '\xa4' && gap[5] == '\xc3' && ends_with(&error, "\xa4: the reason"));
    }
}

static void short_lines(void)
{
    struct error error;
    error_set(&error, "%s: %d bytes\n", "a", 3);
    CHECK_TEXT(error.message, "a: 3 bytes\\x0a");
}

int main(void)
{
    long_paths();
    whole_characters();
    short_lines();
    return check_done();
}
