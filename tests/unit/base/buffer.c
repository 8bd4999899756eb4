#include "base/buffer.h"

#include "tests/unit/check.h"

/* Expected: json.dumps(text) and json.dumps(text, ensure_ascii=False) of Python 3.11. */
static void json_texts(void)
{
    static const struct {
        const char *text;
        size_t length;
        const char *ascii, *utf8;
    } rows[] = {
        {"a\0b\n\t\x7f\"\\/\b\f\r\x1f", 13, "\"a\\u0000b\\n\\t\\u007f\\\"\\\\/\\b\\f\\r\\u001f\"",
         "\"a\\u0000b\\n\\t\x7f\\\"\\\\/\\b\\f\\r\\u001f\""},
        {"\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80\xe2\x80\xa8", 12, "\"\\u00e9\\u2581\\ud83d\\ude00\\u2028\"",
         "\"\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80\xe2\x80\xa8\""},
        {"\xff!\xc3", 3, "\"\\ufffd!\\ufffd\"", "\"\xef\xbf\xbd!\xef\xbf\xbd\""},
        {"", 0, "\"\"", "\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer buffer = {0};
        buffer_append_json_text(&buffer, rows[i].text, rows[i].length, JSON_ASCII);
        buffer_append(&buffer, "", 1);
        CHECK_TEXT((const char *)buffer.bytes, rows[i].ascii);
        buffer.length = 0;
        buffer_append_json_text(&buffer, rows[i].text, rows[i].length, JSON_UTF8);
        buffer_append(&buffer, "", 1);
        CHECK_TEXT((const char *)buffer.bytes, rows[i].utf8);
        buffer_free(&buffer);
    }
}

static void printed(void)
{
    struct buffer buffer = {0};
    char expected[2000];
    size_t length = 0;
    for (int width = 1; width < 300; width += 37) {
        buffer_printf(&buffer, "%*d|", width, 7);
        length += (size_t)snprintf(expected + length, sizeof expected - length, "%*d|", width, 7);
    }
    CHECK(buffer.length == length && memcmp(buffer.bytes, expected, length) == 0);
    buffer_free(&buffer);
}

static void decimals(void)
{
    struct buffer buffer = {0};
    const uint64_t numbers[] = {0, 9, 10, 1234567890, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        buffer_append_decimal(&buffer, numbers[i]);
        buffer_append_text(&buffer, " ");
    }
    buffer_append(&buffer, "", 1);
    CHECK_TEXT((const char *)buffer.bytes, "0 9 10 1234567890 18446744073709551615 ");
    buffer_free(&buffer);
}

/* Room that was made is used: nothing moves. */
static void reserved(void)
{
    struct buffer buffer = {0};
    buffer_append_text(&buffer, "abc");
    buffer_reserve(&buffer, 100000);
    const unsigned char *bytes = buffer.bytes;
    for (int i = 0; i < 100000; i++)
        buffer_append(&buffer, "d", 1);
    CHECK(buffer.bytes == bytes && buffer.length == 100003 && memcmp(bytes, "abcd", 4) == 0);
    buffer_reserve(&buffer, 0);
    CHECK(buffer.bytes == bytes && buffer.capacity == 100003);
    buffer_free(&buffer);
}

int main(void)
{
    reserved();
    json_texts();
    printed();
    decimals();
    struct buffer buffer = {0};
    buffer_append_le(&buffer, 0x0102030405060708, 8);
    buffer_append_le(&buffer, 0xfffe, 2);
    CHECK(buffer.length == 10 && memcmp(buffer.bytes, "\x08\x07\x06\x05\x04\x03\x02\x01\xfe\xff", 10) == 0);
    buffer_free(&buffer);
    return check_done();
}
