#include "text/json.h"

#include "base/text.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
    size_t length; /* 0: of the text */
    bool valid;
} documents[] = {
    {"an empty object", "{}", 0, true},
    {"white space around", " \n\t{} \r\n", 0, true},
    {"a surrogate pair", "\"\\ud83d\\ude00\"", 0, true},
    {"an escaped backslash before u", "\"\\\\ud83d\"", 0, true},
    {"NUL in a string", "\"a\\u0000b\"", 0, true},
    {"nothing", "", 0, false},
    {"a byte order mark", "\xef\xbb\xbf{}", 0, false},
    {"two documents", "{}{}", 0, false},
    {"trailing NUL", "{}\0", 3, false},
    {"an open string after the document", "{}\"", 0, false},
    {"an open string that looks like an end", "{}\"}", 0, false},
    {"an open word after the document", "{}tru", 0, false},
    {"a number after the document", "{} 1", 0, false},
    {"a number without an end", "12", 0, true},
    {"trailing comma", "{\"a\":1,}", 0, false},
    {"comment", "{}/**/", 0, false},
    {"single quotes", "{'a':1}", 0, false},
    {"NaN", "[NaN]", 0, false},
    {"leading zero", "[01]", 0, false},
    {"leading plus", "[+1]", 0, false},
    {"a raw control byte", "\"a\nb\"", 0, false},
    {"a bad escape", "\"\\x\"", 0, false},
    {"a lone high surrogate", "\"\\ud83d\"", 0, false},
    {"a lone low surrogate", "\"\\ude00\"", 0, false},
    {"a high surrogate before another escape", "\"\\ud83d\\n0000\"", 0, false},
    {"an overlong sequence", "\"\xc0\xaf\"", 0, false},
    {"an encoded surrogate", "\"\xed\xa0\xbd\"", 0, false},
    {"a form feed as white space", "[1,\f2]", 0, false},
    {"a vertical tab as white space", "\v{}", 0, false},
    {"a form feed in a string, escaped", "\"\\f\"", 0, true},
    {"a key twice", "{\"a\":1,\"b\":2,\"a\":1}", 0, false},
    {"a key twice, once escaped", "{\"a\":1,\"\\u0061\":1}", 0, false},
    {"a key twice among many",
     "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,\"c\":0}", 0, false},
    {"the same key at two depths", "{\"a\":{\"a\":1}}", 0, true},
    {"an object that does not end", "{\"a\":", 0, false},
    {"keys that differ after a NUL", "{\"a\\u0000b\":1,\"a\\u0000c\":2}", 0, true},
    {"keys that are equal after a NUL", "{\"a\\u0000b\":1,\"a\\u0000b\":2}", 0, false},
    {"an overlong sequence of three bytes", "\"\xe0\x80\xaf\"", 0, false},
    {"an overlong sequence of four bytes", "\"\xf0\x80\x80\xaf\"", 0, false},
    {"a character above U+10FFFF", "\"\xf4\x90\x80\x80\"", 0, false},
    {"a byte that begins no character", "\"\xff\"", 0, false},
    {"a continuation byte alone", "\"a\x80\"", 0, false},
    {"a character that is cut short", "\"\xe2\x82\"", 0, false},
    {"invalid UTF-8 in a key", "{\"\xc3(\":1}", 0, false},
    {"invalid UTF-8 after an escape", "\"\\n\xc3(\"", 0, false},
    {"UTF-8 outside of strings", "[\xc2\xa0 1]", 0, false},
    {"UTF-16", "\xff\xfe{\0}\0", 6, false},
    {"the greatest character", "\"\xf4\x8f\xbf\xbf\"", 0, true},
    {"a raw NUL in a string", "\"a\0b\"", 5, false},
    {"a raw NUL between values", "[1,\0 2]", 7, false},
    {"the last control byte", "\"\x1f\"", 0, false},
    {"DEL", "\"\x7f\"", 0, true},
    {"an escape that ends early", "\"\\u12\"", 0, false},
    {"an escape of other digits", "\"\\u12g4\"", 0, false},
    {"an escape at the end", "\"\\", 0, false},
    {"a pair of two high surrogates", "\"\\ud83d\\ud83d\"", 0, false},
    {"no digit before the point", "[.5]", 0, false},
    {"no digit after the point", "[1.]", 0, false},
    {"no digit in the exponent", "[1e+]", 0, false},
    {"a sign alone", "[-]", 0, false},
    {"two signs", "[--1]", 0, false},
    {"a leading zero after a sign", "[-01]", 0, false},
    {"a hexadecimal number", "[0x1]", 0, false},
    {"a number of 40 digits", "[1234567890123456789012345678901234567890]", 0, true},
    {"a number beyond doubles", "[-1e999999]", 0, true},
    {"a word in capitals", "[TRUE]", 0, false},
    {"half a word", "[nul]", 0, false},
    {"a word that goes on", "[true1]", 0, false},
    {"a comma before the first element", "[,1]", 0, false},
    {"two commas", "[1,,2]", 0, false},
    {"no comma", "[1 2]", 0, false},
    {"a number as the key", "{1:2}", 0, false},
    {"a key without value", "{\"a\"}", 0, false},
    {"brackets that do not match", "[{]}", 0, false},
    {"a closing bracket too many", "[]]", 0, false},
    {"white space alone", " \n", 0, false},
    {"all four bytes of white space", "\t[\r\n1 ]\r", 0, true},
};

static void validity(void)
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct error error;
        size_t length = documents[i].length ? documents[i].length : strlen(documents[i].text);
        struct json_document *document = json_parse(documents[i].text, length, &error);
        CHECK_NAMED((document != NULL) == documents[i].valid, documents[i].name);
        json_free(document);
    }
}

/* A text that json_read_python() and json_read_members() read, after white space that makes it long. Reads of a part
 * count, too. */
struct text {
    struct taken {
        size_t n, n_wanted;
        uint64_t sum;
    } taken; /* first: what take() sees */
    const char *bytes;
    size_t n_spaces;
    unsigned n_reads;
};

static bool read_bytes(void *context, char *to, size_t length, struct error *error)
{
    struct text *text = context;
    memset(to, ' ', text->n_spaces);
    memcpy(to + text->n_spaces, text->bytes, length - text->n_spaces);
    text->n_reads++;
    return text->bytes[0] != '!' || error_set(error, "cannot be read");
}

static bool read_part(void *context, size_t offset, char *to, size_t length, struct error *error)
{
    struct text *text = context;
    for (size_t i = 0; i < length; i++)
        to[i] = offset + i < text->n_spaces ? ' ' : text->bytes[offset + i - text->n_spaces];
    text->n_reads++;
    return text->bytes[0] != '!' || error_set(error, "cannot be read");
}

/* The same where a text is parsed in place, and read again for the reason. */
static void validity_in_place(void)
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct error error;
        size_t length = documents[i].length ? documents[i].length : strlen(documents[i].text);
        struct text text = {.bytes = documents[i].text, .n_spaces = JSON_LINED + 1};
        struct json_document *document = json_read_python(read_bytes, &text, JSON_LINED + 1 + length, &error);
        CHECK_NAMED((document != NULL) == documents[i].valid, documents[i].name);
        CHECK_NAMED(text.n_reads == (documents[i].valid ? 1 : 2), documents[i].name);
        CHECK_NAMED(documents[i].valid || text_starts_with(error.message, "line 1: ") ||
                        text_starts_with(error.message, "line 2: "),
                    documents[i].name);
        json_free(document);
    }
}

static void lines(void)
{
    static const char text[] = "{\"a\": 1,\n \"b\": [\"\\n\",\n\n  2], \"c\":\n{}}\n";
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"{\n\"a\": 1,\n\"b\" 2}", "line 3: invalid JSON at offset 14"},
        {"[1,\n", "line 2: invalid JSON at offset 4"},
        {"{\n\"a\": 1,\n\"a\":\n2}", "line 4: key 'a' appears twice in one object"},
    };
    struct error error;
    struct json_document *document = json_parse(text, strlen(text), &error);
    const struct json *root = json_root(document), *b = json_get(root, "b");
    CHECK(json_line(root) == 1 && json_line(json_get(root, "a")) == 1 && json_line(b) == 2);
    CHECK(json_line(json_first(b)) == 2 && json_line(json_at(b, 1)) == 4);
    CHECK(json_line(json_get(root, "c")) == 5 && json_line(NULL) == 0);
    json_free(document);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(json_parse(wrong[i].text, strlen(wrong[i].text), &error) == NULL);
        CHECK_NAMED(text_starts_with(error.message, wrong[i].message), error.message);
    }
}

/* What Python writes of a float that is not finite, and reads. */
static void infinity(void)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {{"{\"time_step_limit\": [0.0, Infinity]}", true},
                {"[-Infinity,Infinity]", true},
                {"[\"Infinity \\\" Infinity\"]", true},
                {"[Infinit]", false},
                {"[xInfinity]", false},
                {"[NaN]", false},
                {"Infinity", true},
                {"\"\\", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        double value;
        struct json_document *document = json_parse_python(rows[i].text, strlen(rows[i].text), &error);
        CHECK_NAMED((document != NULL) == rows[i].valid, rows[i].text);
        if (i == 0)
            CHECK(!json_double(json_at(json_get(json_root(document), "time_step_limit"), 1), &value) || isinf(value));
        if (i == 2)
            CHECK_TEXT(json_string(json_at(json_root(document), 0), NULL), "Infinity \" Infinity");
        json_free(document);
    }
}

static void depth(void)
{
    for (int extra = 0; extra < 2; extra++) {
        char text[2 * (JSON_MAX_DEPTH + 1)];
        int n = JSON_MAX_DEPTH + extra;
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        struct error error;
        struct json_document *document = json_parse(text, 2 * (size_t)n, &error);
        CHECK_NAMED((document != NULL) == (extra == 0), extra ? "deeper than the limit" : "as deep as the limit");
        json_free(document);
    }
}

/* A million brackets neither overflow the stack nor take long. */
static void brackets(void)
{
    enum { N_BRACKETS = 1000000 };
    char *text = malloc(2 * N_BRACKETS);
    memset(text, '[', N_BRACKETS);
    memset(text + N_BRACKETS, ']', N_BRACKETS);
    struct error error;
    CHECK(json_parse(text, 2 * N_BRACKETS, &error) == NULL);
    CHECK_TEXT(error.message, "line 1: nested more than 127 deep");
    free(text);
}

static void number_of_values(void)
{
    for (int extra = 0; extra < 2; extra++) {
        size_t n_elements = JSON_MAX_VALUES - 1 + (size_t)extra;
        char *text = malloc(2 * n_elements + 1);
        text[0] = '[';
        for (size_t i = 0; i < n_elements; i++) {
            text[1 + 2 * i] = '0';
            text[2 + 2 * i] = i + 1 < n_elements ? ',' : ']';
        }
        struct error error;
        struct json_document *document = json_parse(text, 2 * n_elements + 1, &error);
        CHECK_NAMED((document != NULL) == (extra == 0),
                    extra ? "more values than the limit" : "as many values as the limit");
        json_free(document);
        free(text);
    }
}

static void values(void)
{
    static const char text[] =
        "{\"u\":18446744073709551615,\"n\":-1,\"z\":-0,\"r\":1.5,\"e\":1e0,\"s\":\"x\\u0000y\",\"t\":true,"
        "\"o\":{\"k\":[1,[2,3],4]},\"v\":null,\"big\":18446744073709551616}";
    struct error error;
    struct json_document *document = json_parse(text, sizeof text - 1, &error);
    const struct json *root = json_root(document);
    uint64_t u = 0;
    int64_t i = 0;
    double d = 0;
    size_t length;
    CHECK(json_count_members(root) == 10);
    CHECK(json_u64(json_get(root, "u"), &u) && u == UINT64_MAX);
    CHECK(!json_u64(json_get(root, "big"), &u));
    CHECK_TEXT(json_number_text(json_get(root, "big")), "18446744073709551616");
    CHECK(json_is_integer(json_get(root, "big")) && json_double(json_get(root, "big"), &d) &&
          d == 18446744073709551616.0);
    CHECK(!json_u64(json_get(root, "n"), &u) && json_i64(json_get(root, "n"), &i) && i == -1);
    CHECK(!json_u64(json_get(root, "z"), &u));
    CHECK(!json_u64(json_get(root, "e"), &u));
    CHECK(json_double(json_get(root, "r"), &d) && d == 1.5);
    CHECK(memcmp(json_string(json_get(root, "s"), &length), "x\0y", 3) == 0 && length == 3);
    CHECK(!json_string_is(json_get(root, "s"), "x"));
    CHECK(json_bool(json_get(root, "t"), false));
    CHECK(json_is(json_get(root, "v"), JSON_NULL) && json_get(root, "absent") == NULL);
    const struct json *array = json_get(json_get(root, "o"), "k");
    CHECK(json_next(NULL) == NULL && json_first(NULL) == NULL && json_count(NULL) == 0);
    CHECK(json_string(NULL, NULL) == NULL);
    CHECK(json_bool(NULL, true) && !json_bool(NULL, false) && !json_u64(NULL, &u));
    CHECK(json_count(array) == 3 && json_u64(json_at(array, 2), &u) && u == 4 && json_at(array, 3) == NULL);
    CHECK(json_u64(json_at(json_at(array, 1), 1), &u) && u == 3);
    json_free(document);
}

static void pairs(void)
{
    static const char text[] =
        "[[\"a b\",\"\"],[\"c\",\"d\",\"e\"],[\"f\"],[],[1,\"g\"],[\"h\",[\"i\"]],{\"j\":\"k\"},\"l\"]";
    static const char *const expected[][2] = {{"a b", ""}, {"c", "d"},  {"f", NULL},  {NULL, NULL},
                                              {NULL, "g"}, {"h", NULL}, {NULL, NULL}, {NULL, NULL}};
    struct json_document *document = json_parse(text, strlen(text), NULL);
    const struct json *array = json_root(document);
    for (size_t i = 0; i < json_count(array); i++) {
        struct json_text pair[2];
        json_string_pair(json_at(array, i), pair);
        for (size_t j = 0; j < 2; j++) {
            const char *wanted = expected[i][j];
            CHECK((pair[j].bytes == NULL) == (wanted == NULL));
            CHECK(pair[j].length == (wanted != NULL ? strlen(wanted) : 0));
            if (wanted != NULL)
                CHECK_TEXT(pair[j].bytes, wanted);
        }
    }
    json_free(document);
}

/* What is of one type is not walked as if it were of the other, and no walk leaves its container. */
static void containers(void)
{
    static const char text[] = "{\"o\": {\"a\": 1, \"\": [2]}, \"l\": [{\"b\": 3}, 4], \"e\": {}, \"n\": 5}";
    struct error error;
    struct json_document *document = json_parse(text, strlen(text), &error);
    const struct json *root = json_root(document), *object = json_get(root, "o"), *list = json_get(root, "l");
    struct json_member member = {0}, none = {0};
    CHECK(json_count(object) == 0 && json_first(object) == NULL && json_at(object, 0) == NULL);
    CHECK(json_next(json_get(object, "a")) == NULL && json_next(root) == NULL);
    CHECK(json_count_members(list) == 0 && !json_next_member(list, &none) && none.key == NULL);
    CHECK(!json_next_member(NULL, &none) && !json_next_member(json_get(root, "n"), &none));
    CHECK(!json_next_member(json_get(root, "e"), &none) && json_count_members(json_get(root, "e")) == 0);
    CHECK(json_count_members(object) == 2 && json_count_members(NULL) == 0);
    CHECK(json_next_member(object, &member) && strcmp(member.key, "a") == 0 && member.key_length == 1);
    CHECK(json_is(member.value, JSON_NUMBER));
    CHECK(json_next_member(object, &member) && member.key != NULL && member.key_length == 0);
    CHECK(json_count(member.value) == 1 && !json_next_member(object, &member));
    CHECK(json_count(list) == 2 && json_next(json_first(list)) == json_at(list, 1));
    json_free(document);
}

static bool take(void *context, const struct json_member *member, struct error *error)
{
    struct taken *taken = context;
    uint64_t number = 0;
    if (taken->n == taken->n_wanted)
        return error_set(error, "enough");
    json_u64(json_at(json_get(member->value, "n"), 1), &number);
    taken->sum += number + member->key_length;
    taken->n++;
    return true;
}

static bool read_members(struct text *text, struct error *error)
{
    return json_read_members(read_part, text, text->n_spaces + strlen(text->bytes), take, error);
}

/* Objects that are not slices of up to 2048 bytes, each of several members, are members all the same. */
#define LONG_KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONGER_KEY                                                                                                     \
    LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY        \
        LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY LONG_KEY

static const struct member_text {
    const char *text;
    size_t n_taken;
    uint64_t sum; /* of the keys' lengths and the second numbers in "n" */
} member_texts[] = {
    {"{\"a\": {\"n\": [1, 2]}, \"bb\": 7, \"a\": {\"n\": [[], 30]}, \"\": null}", 4, 36},
    {"{}", 0, 0},
    {" { } ", 0, 0},
    {"{\"a\":{\"n\":[1,2]}}", 1, 3},
    {"{\"a\":{\"n\":[1,2]}\n,\r\n\"b\":{\"n\":[1,3]}\t}  \n", 2, 7},
    {"{\"a\":1,\"b\":{\"n\":[1,2]},\"c\":[],\"d\":\"\"}", 4, 6},
    {"{\"a\":{\"n\":[1,2],\"s\":\"},\"},\"b\":{\"n\":[1,3]}}", 2, 7},
    {"{\"a}, b\":{\"n\":[1,2]}}", 1, 7},
    {"{\"a\":{\"b\":{\"c\":1}},\"d\":{\"n\":[1,2]}}", 2, 4},
    {"{\"a\":{\"b\":{\"c\":1},\"n\":[1,2]},\"d\":{}}", 2, 4},
    {"{\"a\":[{\"b\":1},{\"c\":2}],\"d\":{\"n\":[1,2]}}", 2, 4},
    {"{\"\\\"\":{\"n\":[1,2]},\"\\u007d\":{\"n\":[1,3]}}", 2, 7},
    {"{\"a\":{\"n\":[1,2]},\"" LONGER_KEY "\":{\"n\":[1,3]},\"c\":{}}", 3, 1 + 2 + sizeof LONGER_KEY - 1 + 3 + 1},
    {"{\"a\":{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,\"n\":[1,2]}}", 1, 3},
};

static const struct invalid_members {
    const char *text, *message;
    size_t offset; /* in the message, of text that nothing precedes; 0: none */
} invalid_members[] = {
    {"[{}]", "not a JSON object", 0},
    {"null", "not a JSON object", 0},
    {"\"a\"", "not a JSON object", 0},
    {"1", "not a JSON object", 0},
    {"!", "cannot be read", 0},
    {"{\"a\": 1", "line 1: invalid JSON at offset %zu: unexpected end of data", 7},
    {"{\"a\":{}", "line 1: invalid JSON at offset %zu: unexpected end of data", 7},
    {"{\"a\":{},}", "line 1: invalid JSON at offset %zu: trailing comma is not allowed", 7},
    {"{\"a\":{}}}", "line 1: invalid JSON at offset %zu: unexpected content after document", 8},
    {"{\"a\":{}} ,", "line 1: invalid JSON at offset %zu: unexpected content after document", 9},
    {"{\"a\":{\"b\":1,\n\"b\":1}}", "line 2: key 'b' appears twice in one object", 0},
};

/* json_read_members() gives the same members and errors for a short text and for one that white space makes long, which
 * it parses in slices. */
static void check_members(void)
{
    struct error error = {""};
    for (unsigned is_long = 0; is_long < 2; is_long++) {
        size_t n_spaces = is_long ? JSON_LINED + 1 : 0;
        for (size_t i = 0; i < sizeof member_texts / sizeof *member_texts; i++) {
            const struct member_text *row = &member_texts[i];
            struct text given = {.taken.n_wanted = 9, .bytes = row->text, .n_spaces = n_spaces};
            char name[40];
            snprintf(name, sizeof name, "%s", row->text);
            CHECK_NAMED(read_members(&given, &error), name);
            CHECK_NAMED(given.taken.n == row->n_taken && given.taken.sum == row->sum, name);
        }
        for (size_t i = 0; i < sizeof invalid_members / sizeof *invalid_members; i++) {
            const struct invalid_members *row = &invalid_members[i];
            struct text given = {.taken.n_wanted = 9, .bytes = row->text, .n_spaces = n_spaces};
            char wanted[200];
            CHECK(!read_members(&given, &error));
            snprintf(wanted, sizeof wanted, row->message, row->offset + n_spaces);
            CHECK_TEXT(error.message, wanted);
        }
    }
}

/* When take() refuses a member, its error is the result, unless the text is invalid after that member. No member that
 * take() accepted is given to it again. */
static void check_refused_members(void)
{
    static const char valid[] = "{\"a\":{\"n\":[1,2]},\"b\":{\"n\":[1,3]},\"c\":{}}",
                      invalid[] = "{\"a\":{},\"b\":{},\"c\":x}";
    struct error error = {""};
    for (unsigned is_long = 0; is_long < 2; is_long++) {
        size_t n_spaces = is_long ? JSON_LINED + 1 : 0;
        struct text given = {.taken.n_wanted = 2, .bytes = valid, .n_spaces = n_spaces};
        CHECK(!read_members(&given, &error) && given.taken.n == 2 && given.taken.sum == 7);
        CHECK_TEXT(error.message, "enough");
        given = (struct text){.taken.n_wanted = 1, .bytes = invalid, .n_spaces = n_spaces};
        CHECK(!read_members(&given, &error) && text_starts_with(error.message, "line 1: invalid JSON at offset "));
    }
}

/* A text of many members is read in parts, each once. A last member too long for a slice costs one reading more, of the
 * whole text. */
static void check_many_members(void)
{
    enum { N_MEMBERS = 400000, LONGEST = 64 };
    struct error error = {""};
    char *text = malloc((size_t)N_MEMBERS * LONGEST + sizeof LONGER_KEY), *at = text;
    for (size_t i = 0; i < N_MEMBERS; i++)
        at += sprintf(at, "%c\"%zu\":{\"t\":\"U8\",\"s\":[1],\"n\":[1,1]}", i == 0 ? '{' : ',', i);
    strcpy(at, "}");
    struct text given = {.taken.n_wanted = N_MEMBERS, .bytes = text};
    CHECK(read_members(&given, &error) && given.taken.n == N_MEMBERS);
    unsigned n_parts = given.n_reads;
    strcpy(at, ",\"last\":{\"" LONGER_KEY "\":{},\"n\":[1,{}]}}");
    given = (struct text){.taken.n_wanted = N_MEMBERS + 1, .bytes = text};
    CHECK(read_members(&given, &error) && given.taken.n == N_MEMBERS + 1 && given.n_reads == n_parts + 1);
    free(text);
}

static char *write_zeros(char *at, size_t n)
{
    *at++ = '[';
    for (size_t i = 0; i < n; i++, *at++ = i < n ? ',' : ']')
        *at++ = '0';
    return at;
}

/* The limit is one of all values together. */
static void check_values_of_members(void)
{
    enum { N_ZEROS = 100, VALUES_OF_MEMBER = N_ZEROS + 2, LONGEST = 2 * VALUES_OF_MEMBER + 16 };
    size_t n_members = (JSON_MAX_VALUES - 1) / VALUES_OF_MEMBER, n_left = (JSON_MAX_VALUES - 1) % VALUES_OF_MEMBER;
    char *text = malloc((n_members + 1) * LONGEST), *at = text, *last;
    struct error error = {""};
    for (size_t i = 0; i < n_members; i++) {
        at = write_zeros(at + sprintf(at, "%c\"a\":{\"z\":", i == 0 ? '{' : ','), N_ZEROS);
        *at++ = '}';
    }
    last = at + sprintf(at, ",\"last\":");
    for (size_t extra = 0; extra < 2; extra++) {
        strcpy(write_zeros(last, n_left - 1 + extra), "}");
        struct text given = {.taken.n_wanted = n_members + 1, .bytes = text};
        CHECK(read_members(&given, &error) == (extra == 0));
        CHECK(extra != 0 || given.taken.n == n_members + 1);
    }
    CHECK_TEXT(error.message, "more than 16777216 values");
    free(text);
}

/* A long text is parsed in place, and read again for its error; escapes and line breaks do not move the line. */
static void check_long_texts(void)
{
    enum { N_ELEMENTS = 100000, LONGEST = 32 };
    static const struct {
        const char *last, *message;
    } rows[] = {
        {"7]", NULL},
        {"x]", "line 200004: invalid JSON at offset 1050004: unexpected character, expected a valid JSON value"},
        {"NaN]", "line 200004: invalid JSON: 'NaN' is not a number"},
        {"{\"a\": 1,\n\"a\": 2}]", "line 200005: key 'a' appears twice in one object"}};
    char *text = malloc((size_t)N_ELEMENTS * LONGEST);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *at = text + sprintf(text, "[\n\n\n");
        for (size_t k = 0; k < N_ELEMENTS; k++)
            at += sprintf(at, "%s", k % 2 == 0 ? "\"\\n\\u000a]\\\\\"\n,\n" : "12\n,\n");
        at += sprintf(at, "%s", rows[i].last);
        struct error error;
        struct text given = {.bytes = text};
        struct json_document *document = json_read_python(read_bytes, &given, (size_t)(at - text), &error);
        CHECK((document != NULL) == (rows[i].message == NULL) && given.n_reads == (document != NULL ? 1 : 2));
        CHECK(document == NULL || json_count(json_root(document)) == N_ELEMENTS + 1);
        if (rows[i].message != NULL)
            CHECK_TEXT(error.message, rows[i].message);
        json_free(document);
    }
    free(text);
}

/* Whole numbers that Python wrote as floats, which only json_parse_python() takes. */
static void check_whole(void)
{
    static const char text[] = "[2048.0, -3.0, 2e3, 0.5, 1e300, 7, 9007199254740994.0, Infinity]";
    static const struct {
        bool is_u64, is_i64;
        int64_t value;
    } wanted[] = {{true, true, 2048}, {false, true, -3}, {true, true, 2000}, {0}, {0}, {true, true, 7}, {0}, {0}};
    struct error error;
    struct json_document *python = json_parse_python(text, strlen(text), &error),
                         *plain = json_parse("[2.0]", 5, &error);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        uint64_t count = 0;
        int64_t number = 0;
        const struct json *value = json_at(json_root(python), i);
        CHECK(json_u64(value, &count) == wanted[i].is_u64 && json_i64(value, &number) == wanted[i].is_i64);
        CHECK(number == wanted[i].value && (!wanted[i].is_u64 || count == (uint64_t)wanted[i].value));
        CHECK(json_is_integer(value) == (i == 5));
    }
    uint64_t unused;
    CHECK(!json_u64(json_at(json_root(plain), 0), &unused));
    json_free(python);
    json_free(plain);
}

int main(void)
{
    check_whole();
    check_members();
    check_refused_members();
    check_many_members();
    check_values_of_members();
    check_long_texts();
    validity();
    validity_in_place();
    brackets();
    lines();
    infinity();
    depth();
    number_of_values();
    values();
    pairs();
    containers();
    return check_done();
}
