/* Patterns of modules: which one counts is what get_pattern_key() of peft said, by Python's re. */
#include "models/derive/adapter.h"

#include "base/buffer.h"
#include "tests/unit/check.h"

#include <stdlib.h>

/* Patterns of {"p": {...}} whose values count from 0, and which of them a module has; -1: none. */
static const struct {
    const char *patterns, *module;
    int which;
} rows[] = {
    {"\"q_proj\"", "layers.0.q_proj", 0},
    {"\"q_proj\"", "q_proj", 0},
    {"\"q_proj\"", "layers.0.xq_proj", -1},
    {"\"proj\"", "layers.q_proj", -1},
    {"\"layers.0.q\"", "layers.0.q", 0},
    {"\"layers.0.q\"", "layersx0.q", 0},
    {"\"layers.0.q\"", "m.layers.0.q", 0},
    {"\"layers.0.q\"", "layers.10.q", -1},
    {"\"layers.\\\\d+.q\" \"q\"", "layers.12.q", 0},
    {"\"layers\\\\.[01]\\\\..*\" \"q\"", "layers.1.k", 0},
    {"\"layers\\\\.[01]\\\\..*\" \"q\"", "layers.2.q", 1},
    {"\"layers\\\\.[01]\\\\..*\" \"q\"", "layers.2.k", -1},
    {"\"^a\"", "a", 0},
    {"\"^a\"", "b.a", -1},
    {"\"a$\"", "a", 0},
    {"\"a|b\"", "x.b", 0},
    {"\"a|b\"", "xb", -1},
    {"\"\"", "a", -1},
    {"\".*\"", "a.b", 0},
    {"\"a.b\" \"b\"", "a.b", 0},
    {"\"b\" \"a.b\"", "a.b", 0},
    {"\".q\"", "a.q", -1},
    {"\".q\"", "aq", 0},
    {"\"a-b\"", "a-b", 0},
    {"\"a_b\"", "a.b", -1},
    {"\".\"", "a.b", 0},
    {"\".\"", "ab", -1},
    {"\"x{2}\"", "xx", 0},
    {"\"\xc3\xa9\"", "a.\xc3\xa9", 0},
    {"", "a", -1},
};

/* {"p": {"first": 0, "second": 1 ...}} of names with a blank between them. */
static struct json_document *object_of(const char *names)
{
    struct buffer text = {0};
    struct error error;
    unsigned n = 0;
    buffer_append_text(&text, "{\"p\": {");
    for (size_t length; *names != '\0'; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        buffer_printf(&text, "%s%.*s: %u", n > 0 ? ", " : "", (int)length, names, n);
        n++;
    }
    buffer_append_text(&text, "}, \"number\": 7}");
    struct json_document *document = json_parse((const char *)text.bytes, text.length, &error);
    if (!CHECK(document != NULL))
        exit(1);
    buffer_free(&text);
    return document;
}

static void found(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json_document *document = object_of(rows[i].patterns);
        const struct json *value = NULL;
        struct error error;
        uint64_t which = 0;
        struct module_patterns *patterns = module_patterns_read(json_root(document), "p", 1, &error);
        char longer[100];
        snprintf(longer, sizeof longer, "%sx", rows[i].module); /* a name need not end there */
        CHECK(patterns != NULL && module_patterns_find(patterns, longer, strlen(rows[i].module), &value, &error));
        bool is_right = value == NULL ? rows[i].which < 0 : json_u64(value, &which) && (int)which == rows[i].which;
        CHECK_NAMED(is_right, rows[i].patterns);
        module_patterns_free(patterns);
        json_free(document);
    }
    module_patterns_free(NULL);
}

/* The error of reading patterns, or else of asking for a module; "" where there is none. */
static const char *error_of(const char *names, const char *key, size_t n_modules, const char *module)
{
    static struct error error;
    const struct json *value;
    struct json_document *document = object_of(names);
    error.message[0] = '\0';
    struct module_patterns *patterns = module_patterns_read(json_root(document), key, n_modules, &error);
    if (patterns != NULL && module_patterns_find(patterns, module, strlen(module), &value, &error))
        CHECK(error.message[0] == '\0' && (strcmp(key, "p") == 0 || value == NULL));
    module_patterns_free(patterns);
    json_free(document);
    return error.message;
}

static void errors(void)
{
    char text[1100], expected[300];
    CHECK_TEXT(error_of("\"a\"", "nothing", 1, "a"), "");
    CHECK_TEXT(error_of("\"a\"", "number", 1, "a"), "");
    CHECK_TEXT(error_of("\"a\" \"b(\"", "p", 1, "a"), "adapter_config.json: p: 'b(' is not a pattern");
    CHECK_TEXT(error_of("\"((.+)*)*[0-9]\"", "p", 1, "model.layers"),
               "adapter_config.json: p: '((.+)*)*[0-9]' takes too many steps to compare with 'model.layers'");
    /* the longest expression */
    memset(text, '+', sizeof text);
    memcpy(text, "\"a", 2);
    for (size_t i = 2; i < 1025; i += 2)
        text[i] = 'a';
    memcpy(text + 1025, "\"", 2);
    CHECK_TEXT(error_of(text, "p", 1, "b"), "");
    memcpy(text + 1025, "a\"", 3);
    snprintf(expected, sizeof expected, "adapter_config.json: p: '%.200s' is not a pattern", text + 1);
    CHECK_TEXT(error_of(text, "p", 1, "b"), expected);
}

/* Of expressions there are as many as may be compared with all modules; of plain names any number. */
static void too_many(void)
{
    CHECK_TEXT(error_of("\"a+\" \"b\" \"c+\"", "p", 131071, "a"), "");
    CHECK_TEXT(error_of("\"a+\" \"b\" \"c+\" \"d\"", "p", 131072, "a"),
               "adapter_config.json: p has more than 1 patterns, too many for 131072 weights");
    CHECK_TEXT(error_of("\"a\" \"b\" \"c\"", "p", 1U << 20, "a"), "");
}

int main(void)
{
    found();
    errors();
    too_many();
    return check_done();
}
