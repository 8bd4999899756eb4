/* config.json without what it says of quantization. */
#include "models/derive/plain_config.h"

#include "tests/unit/check.h"

/* Expected: json.dumps(indent=2) of Python, and a new line, as save_pretrained() writes. */
static const struct {
    const char *text, *expected;
} rows[] = {
    {"{}", "{}\n"},
    {"{\"a\": 1.50}", "{\n  \"a\": 1.50\n}\n"},
    {"{\"quantization\": 1}", "{}\n"},
    {"{\"a\": 1, \"quantization\": {\"x\": [1, 2, {\"y\": \"}\\\"]\"}]}}", "{\n  \"a\": 1\n}\n"},
    {"{\n  \"quantization\": [1, 2],\n  \"b\": [null, true, -1e5, \"\\u00e9\\n\"]\n}\n",
     "{\n  \"b\": [\n    null,\n    true,\n    -1e5,\n    \"\\u00e9\\n\"\n  ]\n}\n"},
    {"{\"a\": \"quantization\", \"quantization\": \"a,}\", \"b\": [\"quantization\", {\"quantization\": 1}]}",
     "{\n  \"a\": \"quantization\",\n  \"b\": [\n    \"quantization\",\n    {\n      \"quantization\": 1\n    }\n  "
     "]\n}\n"},
    {"{\"t\": {\"quantization\": null, \"c\": 3}, \"u\": {\"v\": {\"quantization\": 1}}}",
     "{\n  \"t\": {\n    \"c\": 3\n  },\n  \"u\": {\n    \"v\": {\n      \"quantization\": 1\n    }\n  }\n}\n"},
    {"{\"t\": {\"c\": 3 , \"\\u0071uantization\" : 5}, \"quantization_config\":{}}",
     "{\n  \"t\": {\n    \"c\": 3\n  }\n}\n"},
    {"{\"\\\"quantization\": 1, \"qq\": 2}", "{\n  \"\\\"quantization\": 1,\n  \"qq\": 2\n}\n"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer out = {0};
        struct error error;
        struct json_document *document = json_parse(rows[i].text, strlen(rows[i].text), &error);
        plain_config(json_root(document), &out);
        buffer_append(&out, "", 1);
        CHECK_TEXT((const char *)out.bytes, rows[i].expected);
        buffer_free(&out);
        json_free(document);
    }
    return check_done();
}
