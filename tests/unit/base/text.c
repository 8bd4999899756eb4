#include "base/text.h"

#include "base/arena.h"
#include "base/buffer.h"

#include "tests/unit/check.h"

#include <ctype.h>

static void characters(void)
{
    static const struct {
        const char *bytes;
        size_t length, expected;
        const char *name;
    } rows[] = {
        {"a", 1, 1, "ASCII"},
        {"\xc3\xa9", 2, 2, "two bytes"},
        {"\xe2\x96\x81", 3, 3, "three bytes"},
        {"\xf0\x9f\x98\x80", 4, 4, "four bytes"},
        {"\xc0\xaf", 2, 0, "overlong"},
        {"\xed\xa0\x80", 3, 0, "a surrogate"},
        {"\xf4\x90\x80\x80", 4, 0, "above U+10FFFF"},
        {"\xe2\x96", 2, 0, "cut off"},
        {"\x80", 1, 0, "a continuation byte alone"},
        {"\0", 1, 1, "NUL"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NAMED(text_character(rows[i].bytes, rows[i].length) == rows[i].expected, rows[i].name);
}

static void hex_digits(void)
{
    static const char digits[] = "0123456789abcdef";
    bool good = true;
    for (int c = -128; c < 128; c++) {
        const char *digit = c != 0 ? strchr(digits, tolower((unsigned char)c)) : NULL;
        good &= text_hex_digit((char)c) == (digit != NULL ? (int)(digit - digits) : -1);
    }
    CHECK_NAMED(good, "the 22 digits and no other character");
}

static void beginnings_and_endings(void)
{
    CHECK(text_starts_with("blk.0", "blk.") && text_starts_with("blk.", "blk.") && text_starts_with("a", ""));
    CHECK(!text_starts_with("blk", "blk.") && !text_starts_with("a.blk.", "blk."));
    CHECK(text_ends_with("a.json", ".json") && text_ends_with(".json", ".json") && text_ends_with("a", ""));
    CHECK(!text_ends_with("json", ".json") && !text_ends_with("a.json.", ".json"));
}

static const char *guess(const char *typed)
{
    static const char *const words[] = {"mount", "umount", "ls", "cat", "a", "tensor-type", "Q4_0", "Q4_K_M", NULL};
    struct text_guess guess = {.typed = typed};
    for (const char *const *word = words; *word != NULL; word++)
        text_guess_try(&guess, *word);
    return guess.best != NULL ? guess.best : "none";
}

static void guesses(void)
{
    CHECK_TEXT(guess("muont"), "mount");
    CHECK_TEXT(guess("unmount"), "umount");
    CHECK_TEXT(guess("Tensor_typ"), "tensor-type");
    CHECK_TEXT(guess("cats"), "cat");
    CHECK_TEXT(guess("model-q4k"), "none");
    CHECK_TEXT(guess("q4_K"), "Q4_K_M");
    CHECK_TEXT(guess("Q4K"), "Q4_K_M");
    CHECK_TEXT(guess("verify"), "none");
    CHECK_TEXT(guess(""), "none");
    CHECK_TEXT(guess("x"), "none");
    CHECK_TEXT(guess("mountmountmountmountmountmountmountmountmount"), "none");
}

static void columns(void)
{
    CHECK(text_columns("") == 0 && text_columns("abc") == 3 && text_columns("\xc3\xa9") == 1);
    CHECK_NAMED(text_columns("\xe6\xa8\xa1\xe5\x9e\x8b") == 4, "wide characters");
    CHECK_NAMED(text_columns("e\xcc\x81") == 1, "a mark");
    CHECK_NAMED(text_columns("a\xff") == 2, "what is not UTF-8");
}

static void printable(void)
{
    char out[64];
    text_printable("a\nb\x7f\xff\xc3\xa9", 7, out, sizeof out);
    CHECK_TEXT(out, "a\\x0ab\\x7f\\xff\xc3\xa9");
    text_printable("\xc3\xa9\xc3\xa9", 4, out, 4);
    CHECK_TEXT(out, "\xc3\xa9");
    static const char *const obeyed[] = {"\xc2\x80",     "\xc2\x9b",     "\xc2\x9f",     "\xe2\x80\xae",
                                         "\xe2\x80\xaa", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xe2\x80\x8f",
                                         "\xd8\x9c",     "\xe2\x80\xa8", "\xe2\x80\xa9", "\x1b"};
    for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++) {
        text_printable(obeyed[i], strlen(obeyed[i]), out, sizeof out);
        CHECK_NAMED(strlen(out) == 4 * strlen(obeyed[i]) && strspn(out, "\\x0123456789abcdef") == strlen(out), out);
    }
    text_printable("\xc2\xa0\xe2\x80\x8d\xd7\x90", 7, out, sizeof out);
    CHECK_TEXT(out, "\xc2\xa0\xe2\x80\x8d\xd7\x90");
}

/* As Python's bytes.decode("utf-8", "replace") has it. */
static void made_valid(void)
{
    static const char *const rows[][2] = {
        {"na\xefve", "na\ufffdve"},
        {"a\xe4\xb8", "a\ufffd"},
        {"\xf0\x9f\x98x", "\ufffdx"},
        {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
        {"\xe0\x80\x80", "\ufffd\ufffd\ufffd"},
        {"\xc3\xa9\xff\xf4\x90\x80", "\u00e9\ufffd\ufffd\ufffd\ufffd"},
        {"\xf0\x90\x80\xe4\xb8\xad\xc3", "\ufffd\u4e2d\ufffd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer out = {0};
        text_append_valid(rows[i][0], strlen(rows[i][0]), &out);
        buffer_append(&out, "", 1);
        CHECK_TEXT((const char *)out.bytes, rows[i][1]);
        buffer_free(&out);
    }
}

static void last_names(void)
{
    /* a path, what comes after its last slash, its name without slashes at the end, and its length without these */
    static const struct {
        const char *path, *last, *trimmed;
        size_t length;
    } rows[] = {
        {"", "", "", 0},     {"a", "a", "a", 1},         {"/", "", "", 1},      {"//", "", "", 1},
        {"/a", "a", "a", 2}, {"a/b.c", "b.c", "b.c", 5}, {"a/b//", "", "b", 3}, {"a/.", ".", ".", 3},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_TEXT(text_last_name(rows[i].path), rows[i].last);
        CHECK_TEXT(text_trimmed_name(arena, rows[i].path), rows[i].trimmed);
        CHECK(text_trimmed_length(rows[i].path) == rows[i].length);
    }
    arena_free(arena);
}

int main(void)
{
    characters();
    made_valid();
    CHECK(text_valid_prefix("0123456789\xc3\xa9\xff", 13) == 12);
    CHECK(text_valid_prefix("0123456789abcdef", 16) == 16);
    hex_digits();
    beginnings_and_endings();
    guesses();
    columns();
    printable();
    CHECK(text_last("a.b.c", 4, '.') != NULL && strcmp(text_last("a.b.c", 5, '.'), ".c") == 0);
    CHECK(strcmp(text_last("a.b.c", 3, '.'), ".b.c") == 0 && text_last("a.b", 1, '.') == NULL &&
          text_last("", 0, '.') == NULL);
    last_names();
    return check_done();
}
