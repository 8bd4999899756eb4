/* params.json into config.json. Expected values are those of the config.json files that the conversion of each release
 * has. */
#include "models/meta/meta.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static const struct {
    const char *params, *error;
} refused[] = {
    {"{}", "'dim' is missing"},
    {"{\"dim\":0,\"n_layers\":1,\"n_heads\":1}", "'dim' is not a positive number"},
    {"{\"dim\":64,\"n_layers\":-1,\"n_heads\":1}", "'n_layers' is not a positive number"},
    {"{\"dim\":64,\"n_layers\":1,\"n_heads\":3}", "dim 64, n_heads 3, n_kv_heads 3 do not fit each other"},
    {"{\"dim\":64,\"n_layers\":1,\"n_heads\":64}", "dim 64, n_heads 64, n_kv_heads 64 do not fit each other"},
    {"{\"dim\":64,\"n_layers\":1,\"n_heads\":8,\"n_kv_heads\":3}",
     "dim 64, n_heads 8, n_kv_heads 3 do not fit each other"},
};

static bool parse(const char *text, struct meta_params *params, struct json_document **ret_document,
                  struct error *error)
{
    *ret_document = json_parse(text, strlen(text), error);
    return *ret_document != NULL && meta_params_parse(json_root(*ret_document), params, error);
}

static void check_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct meta_params params;
        struct json_document *document;
        struct error error = {""};
        CHECK(!parse(refused[i].params, &params, &document, &error));
        CHECK_TEXT(error.message, refused[i].error);
        json_free(document);
    }
}

static const struct {
    const char *name, *params;
    uint64_t vocab_size, n_ranks;
    bool sentencepiece;
    const char *has[6];
} releases[] = {
    {"Llama 1 7B",
     "{\"dim\":4096,\"multiple_of\":256,\"n_heads\":32,\"n_layers\":32,\"norm_eps\":1e-06,\"vocab_size\":-1}",
     32000,
     0,
     true,
     {"\"max_position_embeddings\": 2048,", "\"rms_norm_eps\": 1e-06,", "\"bos_token_id\": 1,",
      "\"num_key_value_heads\": 32,"}},
    {"Llama 2 70B",
     "{\"dim\":8192,\"multiple_of\":4096,\"ffn_dim_multiplier\":1.3,\"n_heads\":64,\"n_kv_heads\":8,\"n_layers\":80,"
     "\"norm_eps\":1e-05,\"vocab_size\":-1}",
     32000,
     0,
     true,
     {"\"max_position_embeddings\": 4096,", "\"num_key_value_heads\": 8,", "\"rope_theta\": 10000.0,",
      "\"rope_scaling\": null,"}},
    {"Code Llama",
     "{\"dim\":4096,\"n_heads\":32,\"n_layers\":32,\"norm_eps\":1e-05,\"rope_theta\":1000000}",
     32016,
     0,
     true,
     {"\"max_position_embeddings\": 16384,", "\"rope_theta\": 1000000,"}},
    {"Llama 3 8B",
     "{\"dim\":4096,\"n_layers\":32,\"n_heads\":32,\"n_kv_heads\":8,\"vocab_size\":128256,\"norm_eps\":1e-05,"
     "\"rope_theta\":500000.0}",
     128256,
     128000,
     false,
     {"\"max_position_embeddings\": 8192,", "\"bos_token_id\": 128000,", "\"eos_token_id\": 128001,",
      "\"rope_scaling\": null,"}},
    {"Llama 3.1 8B, wrapped",
     "{\"model\":{\"dim\":4096,\"n_layers\":32,\"n_heads\":32,\"n_kv_heads\":8,\"vocab_size\":128256,\"norm_eps\":1e-"
     "05,"
     "\"rope_theta\":500000.0,\"use_scaled_rope\":true}}",
     128256,
     128000,
     false,
     {"\"max_position_embeddings\": 131072,", "\"factor\": 8.0,", "\"rope_type\": \"llama3\""}},
    {"Llama 3.2 1B",
     "{\"dim\":2048,\"n_layers\":16,\"n_heads\":32,\"n_kv_heads\":8,\"vocab_size\":128256,\"norm_eps\":1e-05,"
     "\"rope_theta\":500000.0,\"use_scaled_rope\":true}",
     128256,
     128000,
     false,
     {"\"factor\": 32.0,", "\"head_dim\": 64,", "\"max_position_embeddings\": 131072,"}},
};

static void check_releases(void)
{
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        struct meta_params params;
        struct json_document *document, *written;
        struct error error;
        struct buffer out = {0};
        CHECK_NAMED(parse(releases[i].params, &params, &document, &error), releases[i].name);
        params.vocab_size = releases[i].vocab_size;
        params.n_ranks = releases[i].n_ranks;
        params.sentencepiece = releases[i].sentencepiece;
        params.dtype = "bfloat16";
        meta_write_config(&params, &out);
        written = json_parse((const char *)out.bytes, out.length, &error);
        CHECK(written != NULL && json_string_is(json_get(json_root(written), "model_type"), "llama"));
        buffer_append(&out, "", 1);
        for (size_t j = 0; j < 6 && releases[i].has[j] != NULL; j++)
            CHECK_NAMED(strstr((const char *)out.bytes, releases[i].has[j]) != NULL, releases[i].has[j]);
        json_free(written);
        json_free(document);
        buffer_free(&out);
    }
}

int main(void)
{
    check_refused();
    check_releases();
    return check_done();
}
