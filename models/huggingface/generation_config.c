#include "models/huggingface/hf_of_gguf.h"

#include "text/json_write.h"

#include <string.h>

/* The members in the order of the file, with their keys; one of sampling also sets do_sample. */
static const struct member {
    const char *name, *key;
    bool is_sampling;
} members[] = {
    {"bos_token_id", "tokenizer.ggml.bos_token_id", false},
    {"do_sample", NULL, false},
    {"eos_token_id", "tokenizer.ggml.eos_token_id", false},
    {"min_p", "general.sampling.min_p", true},
    {"mirostat", "general.sampling.mirostat", true},
    {"mirostat_eta", "general.sampling.mirostat_eta", true},
    {"mirostat_tau", "general.sampling.mirostat_tau", true},
    {"pad_token_id", "tokenizer.ggml.padding_token_id", false},
    {"penalty_last_n", "general.sampling.penalty_last_n", true},
    {"penalty_repeat", "general.sampling.penalty_repeat", true},
    {"temperature", "general.sampling.temp", true},
    {"top_k", "general.sampling.top_k", true},
    {"top_p", "general.sampling.top_p", true},
    {"xtc_probability", "general.sampling.xtc_probability", true},
    {"xtc_threshold", "general.sampling.xtc_threshold", true},
};

enum { N_MEMBERS = sizeof members / sizeof *members };

static bool samples(const struct gguf_kvs *kvs)
{
    for (size_t i = 0; i < N_MEMBERS; i++)
        if (members[i].is_sampling && gguf_kvs_find(kvs, members[i].key) != NULL)
            return true;
    return false;
}

/* Writes the tokens that end a text, a turn or a message, as far as they have keys. */
static void put_ends(const struct gguf_kvs *kvs, struct json_writer *writer)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    uint64_t ends[3], id;
    size_t n_ends = 0;
    for (size_t i = 0; i < 3; i++) {
        bool is_known = !gguf_get_u64(kvs, keys[i], &id);
        for (size_t j = 0; j < n_ends; j++)
            is_known |= ends[j] == id;
        if (!is_known)
            ends[n_ends++] = id;
    }
    if (n_ends == 1)
        json_put_number(writer, "eos_token_id", ends[0]);
    if (n_ends < 2)
        return;
    json_begin_array(writer, "eos_token_id");
    for (size_t i = 0; i < n_ends; i++)
        json_put_number(writer, NULL, ends[i]);
    json_end(writer);
}

static void put_member(const struct gguf_kvs *kvs, const struct member *member, struct json_writer *writer)
{
    const char *name = member->name, *key = member->key;
    uint64_t whole;
    double number;
    if (key == NULL) {
        if (samples(kvs))
            json_put_bool(writer, name, true);
    } else if (strcmp(name, "eos_token_id") == 0) {
        put_ends(kvs, writer);
    } else if (gguf_get_u64(kvs, key, &whole)) {
        json_put_number(writer, name, whole);
    } else if (gguf_get_f64(kvs, key, &number)) {
        json_put_f32(writer, name, (float)number);
    }
}

void generation_config_of_keys(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_begin_object(&writer, NULL);
    json_put_bool(&writer, "_from_model_config", true);
    for (size_t i = 0; i < N_MEMBERS; i++)
        put_member(kvs, &members[i], &writer);
    json_end(&writer);
    buffer_append_text(out, "\n");
}
