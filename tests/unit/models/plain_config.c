/* config.json without what it says of quantization. */
#include "models/plain_config.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static const struct {
    const char *text, *expected;
} rows[] = {
    {"{}", "{}"},
    {"{\"a\": 1}", "{\"a\": 1}"},
    {"{\"quantization\": 1}", "{}"},
    {"{\"a\": 1, \"quantization\": {\"x\": [1, 2, {\"y\": \"}\\\"]\"}]}}", "{\"a\": 1}"},
    {"{\n  \"quantization\": [1, 2],\n  \"b\": 2\n}\n", "{\n  \"b\": 2\n}\n"},
    {"{\n  \"a\": \"quantization\",\n  \"quantization\": \"a,}\",\n  \"b\": [\"quantization\", {\"quantization\": "
     "1}]\n}",
     "{\n  \"a\": \"quantization\",\n  \"b\": [\"quantization\", {\"quantization\": 1}]\n}"},
    {"{\"t\": {\"quantization\": null, \"c\": 3}, \"u\": {\"v\": {\"quantization\": 1}}}",
     "{\"t\": {\"c\": 3}, \"u\": {\"v\": {\"quantization\": 1}}}"},
    {"{\"t\": {\"c\": 3 , \"quantization\" : 5}, \"quantization_config\":{}}", "{\"t\": {\"c\": 3 }}"},
    {"{\"\\\"quantization\": 1, \"qq\": 2}", "{\"\\\"quantization\": 1, \"qq\": 2}"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer out = {0};
        plain_config(rows[i].text, strlen(rows[i].text), &out);
        buffer_append(&out, "", 1);
        CHECK_TEXT((const char *)out.bytes, rows[i].expected);
        buffer_free(&out);
    }
    return check_done();
}
