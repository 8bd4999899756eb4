/* Expected: json.dumps(value, indent=2) of Python 3.11, with ensure_ascii and without; numbers as Python shows the
 * shortest decimal that numpy.float32() makes the same value of. */
#include "text/json_write.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static void write_document(struct buffer *out, enum json_letters letters)
{
    struct json_writer writer = {.out = out, .letters = letters};
    json_begin_object(&writer, NULL);
    json_begin_array(&writer, "a");
    json_end(&writer);
    json_begin_object(&writer, "b");
    json_end(&writer);
    json_begin_array(&writer, "\xc3\xa9\"");
    json_put_number(&writer, NULL, 1);
    json_begin_object(&writer, NULL);
    json_put_bool(&writer, "c", true);
    json_put_null(&writer, "d");
    json_end(&writer);
    json_end(&writer);
    json_begin_array(&writer, "f");
    json_put_f32(&writer, NULL, 0.1f);
    json_end(&writer);
    json_end(&writer);
    buffer_append(out, "", 1);
}

static void documents(void)
{
    struct buffer ascii = {0}, utf8 = {0};
    write_document(&ascii, JSON_ASCII);
    write_document(&utf8, JSON_UTF8);
    CHECK_TEXT((const char *)utf8.bytes,
               "{\n  \"a\": [],\n  \"b\": {},\n  \"\xc3\xa9\\\"\": [\n    1,\n    {\n      \"c\": true,\n"
               "      \"d\": null\n    }\n  ],\n  \"f\": [\n    0.1\n  ]\n}");
    CHECK_TEXT((const char *)ascii.bytes,
               "{\n  \"a\": [],\n  \"b\": {},\n  \"\\u00e9\\\"\": [\n    1,\n    {\n      \"c\": true,\n"
               "      \"d\": null\n    }\n  ],\n  \"f\": [\n    0.1\n  ]\n}");
    buffer_free(&ascii);
    buffer_free(&utf8);
}

/* json.dumps(separators=(",", ":")), but for the new lines. */
static void compact(void)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_begin_array(&writer, "a");
    json_put_i64(&writer, NULL, -1);
    json_break_line(&writer);
    json_put_f64(&writer, NULL, 1.0 / 3, 6);
    json_put_f64(&writer, NULL, 1.0 / 0.0, 6);
    json_end(&writer);
    json_break_line(&writer);
    json_begin_object(&writer, "b");
    json_put_text(&writer, "c", NULL);
    json_put_text(&writer, "d", "\n");
    json_end(&writer);
    json_begin_array(&writer, "e");
    json_end(&writer);
    json_end(&writer);
    buffer_append(&out, "", 1);
    CHECK_TEXT((const char *)out.bytes, "{\"a\":[-1,\n0.333333,null],\n\"b\":{\"c\":null,\"d\":\"\\n\"},\"e\":[]}");
    buffer_free(&out);
}

/* json.dumps() with an indent and without, of templates; one leaves brackets open, another one closes them. */
static void templates(void)
{
    const char *const expected[] = {
        "{\n  \"a\": [\n    \"x\\\"y\",\n    \"z\",\n    7,\n    true,\n    1e-05,\n    null\n  ],\n"
        "  \"b\": {},\n  \"c\": {\n    \"d: [\": -2,\n    \"e\": false\n  }\n}",
        "{\"a\":[\"x\\\"y\",\"z\",7,true,1e-05,null],\"b\":{},\"c\":{\"d: [\":-2,\"e\":false}}"};
    for (int i = 0; i < 2; i++) {
        struct buffer out = {0};
        struct json_writer writer = {.out = &out, .letters = JSON_UTF8, .compact = i == 1};
        json_put_template(&writer, "{'a': [%s, %t, %u, %b, %r, %s], 'b': {}, 'c': {", "x\"y", "zero", (size_t)1,
                          UINT64_C(7), true, "1e-05", NULL);
        json_put_template(&writer, "'d: [': -2, 'e': false}}");
        buffer_append(&out, "", 1);
        CHECK_TEXT((const char *)out.bytes, expected[i]);
        buffer_free(&out);
    }
}

/* json.dumps(value | more, sort_keys=True), as Python prints it. */
static void sorted_like_python(void)
{
    static const char text[] = "{\"b\": {\"y\": 1E-5, \"x\": [1.50, -0, 100000000000000000000, 1e16]}, \"é\": null,"
                               " \"a\": 1, \"ab\": -0.0, \"\": true}";
    static const char added[] = "{\"a\": {\"d\": 2, \"c\": false}, \"z\": \"\"}";
    struct error error;
    struct json_document *value = json_parse(text, strlen(text), &error),
                         *more = json_parse(added, strlen(added), &error);
    struct buffer out = {0};
    CHECK(value != NULL && more != NULL);
    json_put_sorted(&(struct json_writer){.out = &out, .letters = JSON_ASCII, .compact = true}, json_root(value),
                    json_root(more));
    buffer_append(&out, "", 1);
    CHECK_TEXT((const char *)out.bytes,
               "{\"\":true,\"a\":{\"c\":false,\"d\":2},\"ab\":-0.0,"
               "\"b\":{\"x\":[1.5,0,100000000000000000000,1e+16],\"y\":1e-05},\"z\":\"\",\"\\u00e9\":null}");
    buffer_free(&out);
    json_free(value);
    json_free(more);
}

/* json.dumps(value, indent=4), but for the element, which is as json.dumps(element) has it. */
static void lines(void)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII, .width = 4};
    json_begin_object(&writer, NULL);
    json_begin_array(&writer, "a");
    json_begin_object(&writer, NULL);
    json_keep_line(&writer);
    json_put_text(&writer, "b", "c");
    json_begin_array(&writer, "d");
    json_put_number(&writer, NULL, 1);
    json_put_number(&writer, NULL, 2);
    json_end(&writer);
    json_end(&writer);
    json_end(&writer);
    json_put_key(&writer, "e\0f", 3);
    json_begin_array(&writer, NULL);
    json_put_null(&writer, NULL);
    json_end(&writer);
    json_end(&writer);
    buffer_append(&out, "", 1);
    CHECK_TEXT((const char *)out.bytes, "{\n    \"a\": [\n        {\"b\": \"c\", \"d\": [1, 2]}\n    ],\n"
                                        "    \"e\\u0000f\": [\n        null\n    ]\n}");
    buffer_free(&out);
}

/* What is taken back leaves no trace: no comma, no key, no bracket. */
static void taken_back(void)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    struct json_mark mark = json_mark(&writer);
    json_put_key(&writer, "a", 1);
    json_begin_array(&writer, NULL);
    json_put_number(&writer, NULL, 1);
    json_take_back(&writer, mark);
    json_put_key(&writer, "b", 1);
    mark = json_mark(&writer);
    json_begin_object(&writer, NULL);
    json_begin_array(&writer, "c");
    json_take_back(&writer, mark);
    json_put_bool(&writer, NULL, true);
    mark = json_mark(&writer);
    json_put_null(&writer, "d");
    json_take_back(&writer, mark);
    json_put_null(&writer, "e");
    json_end(&writer);
    buffer_append(&out, "", 1);
    CHECK_TEXT((const char *)out.bytes, "{\"b\":true,\"e\":null}");
    buffer_free(&out);
}

static void numbers(void)
{
    static const char *const rows[] = {
        "1e-05",   "0.22",      "10000.0", "500000.0",  "1e+16",         "123456790.0",        "0.0001",
        "1.5e-07", "0.0",       "-0.5",    "999999.44", "3.4028235e+38", "1000000000000000.0", "1e-45",
        "0.1",     "16777216.0"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[JSON_FLOAT_TEXT];
        CHECK_TEXT(json_f32_text(strtof(rows[i], NULL), text), rows[i]);
    }
    static const char *const doubles[] = {"0.1",
                                          "-0.0",
                                          "5e-324",
                                          "1.7976931348623157e+308",
                                          "0.30000000000000004",
                                          "123456789012345.6",
                                          "1e+22",
                                          "1e+16",
                                          "1e-05",
                                          "0.0001",
                                          "9999999999999998.0",
                                          "2.5",
                                          "-1234567.0"};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        char text[JSON_FLOAT_TEXT];
        CHECK_TEXT(json_f64_text(strtod(doubles[i], NULL), text), doubles[i]);
    }
    char text[JSON_FLOAT_TEXT];
    CHECK_TEXT(json_f64_text(-INFINITY, text), "-Infinity");
    CHECK_TEXT(json_f32_text(NAN, text), "NaN");
}

int main(void)
{
    documents();
    compact();
    templates();
    sorted_like_python();
    lines();
    taken_back();
    numbers();
    return check_done();
}
