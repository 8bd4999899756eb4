/* Expected: urllib.parse.quote(text, safe=kept) and unquote() of Python 3.11, and the rules of the header. */
#include "base/encodings.h"

#include "tests/unit/check.h"

#include <string.h>

static void encoding(struct arena *arena)
{
    CHECK_TEXT(percent_encode("", "", arena), "");
    CHECK_TEXT(percent_encode("a b/c+d~e.f-g_h%2F", "", arena), "a%20b%2Fc%2Bd~e.f-g_h%252F");
    CHECK_TEXT(percent_encode("a b/c", "/", arena), "a%20b/c");
    CHECK_TEXT(percent_encode("\xe2\x96\x81", "", arena), "%E2%96%81");
}

static void decoding(struct arena *arena)
{
    CHECK_TEXT(percent_decode("a%2Fb%20%e2", 11, arena), "a/b \xe2");
    CHECK_TEXT(percent_decode("%41%42", 3, arena), "A");
    CHECK_TEXT(percent_decode("..", 2, arena), "..");
    CHECK_TEXT(percent_decode("", 0, arena), "");
    CHECK(percent_decode("%00", 3, arena) == NULL && percent_decode("%4", 2, arena) == NULL);
    CHECK(percent_decode("%41%42", 5, arena) == NULL && percent_decode("%4g", 3, arena) == NULL);
}

static const char *decoded(const char *text, struct arena *arena)
{
    const char *name = percent_decode_name(text, strlen(text), arena);
    return name != NULL ? name : "none";
}

static void names(struct arena *arena)
{
    char longest[300] = "";
    memset(longest, 'x', 256);
    CHECK_TEXT(decoded("model%2D1%20.json", arena), "model-1 .json");
    CHECK_TEXT(decoded("%e2%96%81", arena), "\xe2\x96\x81");
    static const char *const none[] = {"", ".", "..", "%2e%2e", "a%2Fb", "a/b", "a%00b", "a%", "a%4", "a%zz"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_NAMED(strcmp(decoded(none[i], arena), "none") == 0, none[i]);
    CHECK_TEXT(decoded(longest, arena), "none");
}

int main(void)
{
    struct arena *arena = arena_new();
    encoding(arena);
    decoding(arena);
    names(arena);
    arena_free(arena);
    return check_done();
}
