/* config.json without what it says of quantization. */
#include "models/plain_config.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static const char *const names[] = {"q", "quantization_config", NULL};

static const struct {
    const char *text, *expected;
} rows[] = {
    {"{}", "{}"},
    {"{\"a\": 1}", "{\"a\": 1}"},
    {"{\"q\": 1}", "{}"},
    {"{\"a\": 1, \"q\": {\"x\": [1, 2, {\"y\": \"}\\\"]\"}]}}", "{\"a\": 1}"},
    {"{\n  \"q\": [1, 2],\n  \"b\": 2\n}\n", "{\n  \"b\": 2\n}\n"},
    {"{\n  \"a\": \"q\",\n  \"q\": \"a,}\",\n  \"b\": [\"q\", {\"q\": 1}]\n}",
     "{\n  \"a\": \"q\",\n  \"b\": [\"q\", {\"q\": 1}]\n}"},
    {"{\"t\": {\"q\": null, \"c\": 3}, \"u\": {\"v\": {\"q\": 1}}}", "{\"t\": {\"c\": 3}, \"u\": {\"v\": {\"q\": 1}}}"},
    {"{\"t\": {\"c\": 3 , \"q\" : 5}, \"quantization_config\":{}}", "{\"t\": {\"c\": 3 }}"},
    {"{\"\\\"q\": 1, \"qq\": 2}", "{\"\\\"q\": 1, \"qq\": 2}"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer out = {0};
        plain_config(rows[i].text, strlen(rows[i].text), names, &out);
        buffer_append(&out, "", 1);
        CHECK_TEXT((const char *)out.bytes, rows[i].expected);
        buffer_free(&out);
    }
    return check_done();
}
