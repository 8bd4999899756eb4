/* Expected: the test vectors of RFC 4648, section 10, and base64.b64decode(text, validate=True) of Python 3.11; white
 * space is passed over, as by b64_pton() and by Python without `validate`. */
#include "base/encodings.h"

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

static void check_encoded(struct arena *arena, const char *bytes, const char *expected)
{
    CHECK_NAMED(strcmp(base64_encode(arena, bytes, strlen(bytes)), expected) == 0, expected);
}

int main(void)
{
    struct arena *arena = arena_new();
    check_encoded(arena, "", "");
    check_encoded(arena, "f", "Zg==");
    check_encoded(arena, "fo", "Zm8=");
    check_encoded(arena, "foo", "Zm9v");
    check_encoded(arena, "foob", "Zm9vYg==");
    check_encoded(arena, "fooba", "Zm9vYmE=");
    check_encoded(arena, "foobar", "Zm9vYmFy");
    check_encoded(arena, "\xfb\xff\xbf", "+/+/");
    check(arena, " Zm\n9v\t", "foo");
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
