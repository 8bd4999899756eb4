/* Expected: the test vectors of RFC 4648, section 10, and base64.b64decode(text, validate=True) of Python 3.11. */
#include "base/base64.h"

#include "base/arena.h"
#include "tests/unit/check.h"

static void check(struct arena *arena, const char *text, const char *expected)
{
    size_t length;
    const char *bytes = base64_decode(arena, text, strlen(text), &length);
    CHECK_NAMED((bytes == NULL) == (expected == NULL), text);
    if (bytes != NULL && expected != NULL)
        CHECK_NAMED(length == strlen(expected) && memcmp(bytes, expected, length) == 0, text);
}

int main(void)
{
    struct arena *arena = arena_new();
    check(arena, "Zg==", "f");
    check(arena, "Zm8=", "fo");
    check(arena, "Zm9v", "foo");
    check(arena, "Zm9vYg==", "foob");
    check(arena, "Zm9vYmE=", "fooba");
    check(arena, "+/+/", "\xfb\xff\xbf");
    check(arena, "", NULL);
    check(arena, "Zg", NULL);
    check(arena, "Zg=", NULL);
    check(arena, "Zm9vYg", NULL);
    check(arena, "Z===", NULL);
    check(arena, "====", NULL);
    check(arena, "Zg==Zg==", NULL);
    check(arena, "Zm9-", NULL);
    check(arena, "Zm9\xc3", NULL);
    arena_free(arena);
    return check_done();
}
