#include "fs/tree/name.h"

#include "tests/unit/check.h"

static const struct {
    const char *what, *raw;
    size_t length;
    const char *escaped;
} rows[] = {
    {"an ordinary name", "model.layers.0.self_attn.q_proj.weight", 38, "model.layers.0.self_attn.q_proj.weight"},
    {"UTF-8 stays", "\xe5\xb1\x82", 3, "\xe5\xb1\x82"},
    {"slash", "a/b", 3, "a%2Fb"},
    {"percent", "100%", 4, "100%25"},
    {"NUL and newline", "a\0\nb", 4, "a%00%0Ab"},
    {"DEL", "\x7f", 1, "%7F"},
    {"invalid UTF-8", "a\xff\xc3", 3, "a%FF%C3"},
    {"an overlong slash", "\xc0\xaf", 2, "%C0%AF"},
    {"dot", ".", 1, "%2E"},
    {"dot dot", "..", 2, "%2E%2E"},
    {"three dots", "...", 3, "..."},
    {"hidden", ".a", 2, ".a"},
    {"empty", "", 0, "%"},
    {"what an escape looks like", "%41", 3, "%2541"},
    {"a path", "../../etc/passwd", 16, "..%2F..%2Fetc%2Fpasswd"},
};

static void both_ways(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char escaped[NAME_MAX_BYTES + 1], raw[NAME_MAX_BYTES + 1];
        size_t length = 0;
        CHECK_NAMED(name_escape(rows[i].raw, rows[i].length, escaped) && strcmp(escaped, rows[i].escaped) == 0,
                    rows[i].what);
        CHECK(name_unescape(escaped, raw, &length) && length == rows[i].length &&
              memcmp(raw, rows[i].raw, length) == 0);
    }
}

/* Only the one spelling is a name. */
static void not_names(void)
{
    static const char *const spellings[] = {"%41", "%2f", "%", "a%", "a%4", "..", ".", "a/b", "%~0123456789abcdef",
                                            "%%"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char raw[NAME_MAX_BYTES + 1];
        size_t length;
        bool is_name = name_unescape(spellings[i], raw, &length);
        CHECK_NAMED(is_name == (strcmp(spellings[i], "%") == 0), spellings[i]); /* "%" is the empty name */
    }
}

/* Digests: printf 'a%.0s' $(seq 256) | sha256sum, and of 85 times e5b182 before "ab". */
static void long_names(void)
{
    char raw[400], escaped[NAME_MAX_BYTES + 1], back[NAME_MAX_BYTES + 1], expected[NAME_MAX_BYTES + 1];
    size_t length;
    memset(raw, 'a', sizeof raw);
    CHECK(name_escape(raw, 255, escaped) && strlen(escaped) == 255);
    CHECK(!name_escape(raw, 256, escaped));
    memset(expected, 'a', 237);
    strcpy(expected + 237, "%~02d7160d77e18c64");
    CHECK_TEXT(escaped, expected);
    CHECK(!name_unescape(escaped, back, &length));

    for (int i = 0; i < 85; i++)
        memcpy(raw + 3 * i, "\xe5\xb1\x82", 3);
    CHECK(name_escape(raw, 255, escaped));
    memcpy(raw + 255, "ab", 2);
    CHECK(!name_escape(raw, 257, escaped));
    CHECK(strlen(escaped) == 237 + 18 && memcmp(escaped, raw, 237) == 0); /* 79 whole characters */
    CHECK_TEXT(escaped + 237, "%~66d2456253adb282");
}

int main(void)
{
    both_ways();
    not_names();
    long_names();
    return check_done();
}
