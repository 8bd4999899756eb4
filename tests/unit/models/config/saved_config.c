/* generation_config.json. Expected values: GenerationConfig.from_pretrained() or from_model_config(), and
 * save_pretrained(), of transformers 4.57.6 and 5.17.0. */
#include "models/config/saved_config.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *source, *config;        /* a NULL source: made from the configuration */
    const char *expected[2], *after[2]; /* without blanks, up to the version, and after it */
} cases[] = {
    {"{\"do_sample\":true,\"temperature\":1.0,\"top_k\":50,\"bos_token_id\":null,\"eos_token_id\":[1,2]}",
     "{}",
     {"\"do_sample\":true,\"eos_token_id\":[1,2],",
      "\"do_sample\":true,\"eos_token_id\":[1,2],\"temperature\":1.0,\"top_k\":50,"}},
    {NULL,
     "{\"model_type\":\"unheard_of\",\"use_cache\":true,\"eos_token_id\":2,\"pad_token_id\":null,\"hidden_size\":8}",
     {"\"_from_model_config\":true,\"eos_token_id\":2,", "\"_from_model_config\":true,\"eos_token_id\":2,"},
     {"", ",\"use_cache\":true"}},
    {"{\"_from_model_config\":true,\"unheard_of\":1,\"transformers_version\":\"4.1\"}",
     "{}",
     {"\"_from_model_config\":true,", "\"_from_model_config\":true,"}},
    {"{\"unheard_of\":null}", "{}", {"", ""}, {",\"unheard_of\":null", ",\"unheard_of\":null"}},
};

static struct json_document *parse(const char *text)
{
    struct error error;
    return text != NULL ? json_parse(text, strlen(text), &error) : NULL;
}

static void check_case(const char *source_text, const char *config_text, enum transformers version,
                       const char *expected, const char *after)
{
    struct json_document *source = parse(source_text), *config = parse(config_text);
    struct buffer out = {0};
    char wanted[256], found[256];
    size_t length = 0;
    saved_generation_config(source != NULL ? json_root(source) : NULL, json_root(config), version, &out);
    for (size_t i = 0; i < out.length && length + 1 < sizeof found; i++)
        if (strchr(" \n", out.bytes[i]) == NULL)
            found[length++] = (char)out.bytes[i];
    found[length] = '\0';
    snprintf(wanted, sizeof wanted, "{%s\"transformers_version\":\"%s\"%s}", expected,
             version == TRANSFORMERS_5 ? "5.17.0" : "4.57.6", after != NULL ? after : "");
    CHECK(strcmp(found, wanted) == 0);
    buffer_free(&out);
    json_free(source);
    json_free(config);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned version = TRANSFORMERS_4; version <= TRANSFORMERS_5; version++)
            check_case(cases[i].source, cases[i].config, (enum transformers)version, cases[i].expected[version],
                       cases[i].after[version]);
    return check_done();
}
