#include "models/meta/meta.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { N_SPECIAL_TOKENS = 256, LLAMA3_VOCABULARY = 128000 };

static bool get_count(const struct json *params, const char *key, uint64_t *ret_value, struct error *error)
{
    uint64_t value;
    if (!json_u64(json_get(params, key), &value) || value == 0 || value > UINT32_MAX)
        return error_set(error, "'%s' is %s", key, json_get(params, key) == NULL ? "missing" : "not a positive number");
    *ret_value = value;
    return true;
}

static bool present(const struct json *value)
{
    return value != NULL && !json_is(value, JSON_NULL);
}

bool meta_params_parse(const struct json *root, struct meta_params *ret_params, struct error *error)
{
    const struct json *params = json_is(json_get(root, "model"), JSON_OBJECT) ? json_get(root, "model") : root;
    struct meta_params parsed = {.norm_eps = "1e-05", .rope_theta = "10000.0", .rope_theta_value = 10000.0};
    if (!get_count(params, "dim", &parsed.dim, error) || !get_count(params, "n_layers", &parsed.n_layers, error) ||
        !get_count(params, "n_heads", &parsed.n_heads, error))
        return false;
    parsed.n_kv_heads = parsed.n_heads;
    if (present(json_get(params, "n_kv_heads")) && !get_count(params, "n_kv_heads", &parsed.n_kv_heads, error))
        return false;
    if (parsed.dim % parsed.n_heads != 0 || parsed.dim / parsed.n_heads % 2 != 0 ||
        parsed.n_heads % parsed.n_kv_heads != 0)
        return error_set(error, "dim %" PRIu64 ", n_heads %" PRIu64 ", n_kv_heads %" PRIu64 " do not fit each other",
                         parsed.dim, parsed.n_heads, parsed.n_kv_heads);
    const struct json *norm_eps = json_get(params, "norm_eps"), *rope_theta = json_get(params, "rope_theta");
    if (json_is(norm_eps, JSON_NUMBER))
        parsed.norm_eps = json_number_text(norm_eps);
    if (json_double(rope_theta, &parsed.rope_theta_value))
        parsed.rope_theta = json_number_text(rope_theta);
    parsed.use_scaled_rope = json_bool(json_get(params, "use_scaled_rope"), false);
    parsed.rope_scaling_factor = json_number_text(json_get(params, "rope_scaling_factor"));
    *ret_params = parsed;
    return true;
}

bool meta_is_llama3(const struct meta_params *params)
{
    return params->n_ranks > 0 || params->use_scaled_rope ||
           (!params->sentencepiece && params->vocab_size >= LLAMA3_VOCABULARY);
}

bool meta_is_small_llama32(const struct meta_params *params)
{
    return params->use_scaled_rope &&
           ((params->dim == 2048 && params->n_layers == 16) || (params->dim == 3072 && params->n_layers == 28));
}

/* Releases differ in the longest context only by what else they are known by. */
static unsigned context_length(const struct meta_params *params)
{
    if (meta_is_llama3(params))
        return params->use_scaled_rope ? 131072 : 8192;
    if (params->rope_theta_value > 10000.0)
        return 16384; /* Code Llama */
    return strcmp(params->norm_eps, "1e-06") == 0 || strcmp(params->norm_eps, "1e-6") == 0 ? 2048 : 4096;
}

/* The first special token, which the second follows: of Llama 3, or of Llama 1 and 2. */
static uint64_t first_special(const struct meta_params *params)
{
    if (!meta_is_llama3(params))
        return 1;
    return params->n_ranks > 0 ? params->n_ranks : LLAMA3_VOCABULARY;
}

static void write_special_ids(const struct meta_params *params, struct buffer *out)
{
    uint64_t first = first_special(params);
    if (first + 1 < params->vocab_size)
        buffer_printf(out, "  \"bos_token_id\": %" PRIu64 ",\n  \"eos_token_id\": %" PRIu64 ",\n", first, first + 1);
}

static void write_rope_scaling(const struct meta_params *params, struct buffer *out)
{
    const char *factor = meta_is_small_llama32(params) ? "32.0" : "8.0";
    if (params->rope_scaling_factor != NULL)
        factor = params->rope_scaling_factor;
    if (!params->use_scaled_rope) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_printf(out,
                  "{\n    \"factor\": %s,\n    \"high_freq_factor\": 4.0,\n    \"low_freq_factor\": 1.0,\n"
                  "    \"original_max_position_embeddings\": 8192,\n    \"rope_type\": \"llama3\"\n  }",
                  factor);
}

void meta_write_config(const struct meta_params *params, struct buffer *out)
{
    buffer_printf(out, "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n  \"attention_bias\": false,\n");
    buffer_append_text(out, "  \"attention_dropout\": 0.0,\n");
    write_special_ids(params, out);
    buffer_printf(out, "  \"head_dim\": %" PRIu64 ",\n  \"hidden_act\": \"silu\",\n  \"hidden_size\": %" PRIu64 ",\n",
                  params->dim / params->n_heads, params->dim);
    buffer_printf(out, "  \"initializer_range\": 0.02,\n  \"intermediate_size\": %" PRIu64 ",\n",
                  params->intermediate_size);
    buffer_printf(out, "  \"max_position_embeddings\": %u,\n  \"mlp_bias\": false,\n  \"model_type\": \"llama\",\n",
                  context_length(params));
    buffer_printf(out, "  \"num_attention_heads\": %" PRIu64 ",\n  \"num_hidden_layers\": %" PRIu64 ",\n",
                  params->n_heads, params->n_layers);
    buffer_printf(out, "  \"num_key_value_heads\": %" PRIu64 ",\n  \"pretraining_tp\": 1,\n  \"rms_norm_eps\": %s,\n",
                  params->n_kv_heads, params->norm_eps);
    buffer_append_text(out, "  \"rope_scaling\": ");
    write_rope_scaling(params, out);
    buffer_printf(out, ",\n  \"rope_theta\": %s,\n  \"tie_word_embeddings\": %s,\n", params->rope_theta,
                  params->tied ? "true" : "false");
    buffer_printf(out, "  \"torch_dtype\": \"%s\",\n  \"use_cache\": true,\n  \"vocab_size\": %" PRIu64 "\n}\n",
                  params->dtype, params->vocab_size);
}

const char *meta_special_token(bool llama31, unsigned index, char *out)
{
    static const char *const old_names[] = {"begin_of_text",   "end_of_text",   NULL, NULL,    NULL, NULL,
                                            "start_header_id", "end_header_id", NULL, "eot_id"};
    static const char *const new_names[] = {
        "begin_of_text", "end_of_text", NULL,     NULL,        "finetune_right_pad_id", NULL, "start_header_id",
        "end_header_id", "eom_id",      "eot_id", "python_tag"};
    const char *const *names = llama31 ? new_names : old_names;
    unsigned n_names = llama31 ? 11 : 10, reserved = 0;
    if (index < n_names && names[index] != NULL) {
        snprintf(out, 64, "<|%s|>", names[index]);
        return out;
    }
    for (unsigned i = 0; i < index; i++)
        reserved += i >= n_names || names[i] == NULL;
    snprintf(out, 64, "<|reserved_special_token_%u|>", reserved);
    return out;
}

static void write_added_token(struct buffer *out, bool first, uint64_t id, const char *content)
{
    buffer_printf(out,
                  "%s\n    \"%" PRIu64
                  "\": {\"content\": \"%s\", \"lstrip\": false, \"normalized\": false, \"rstrip\": false, "
                  "\"single_word\": false, \"special\": true}",
                  first ? "" : ",", id, content);
}

/* As LlamaTokenizer saves itself. */
static void write_sentencepiece_config(struct buffer *out)
{
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    buffer_append_text(out,
                       "{\n  \"add_bos_token\": true,\n  \"add_eos_token\": false,\n  \"add_prefix_space\": true,\n"
                       "  \"added_tokens_decoder\": {");
    for (unsigned i = 0; i < 3; i++)
        write_added_token(out, i == 0, i, special[i]);
    buffer_append_text(out, "\n  },\n  \"bos_token\": \"<s>\",\n  \"clean_up_tokenization_spaces\": false,\n"
                            "  \"eos_token\": \"</s>\",\n  \"legacy\": true,\n  \"pad_token\": null,\n"
                            "  \"tokenizer_class\": \"LlamaTokenizer\",\n  \"unk_token\": \"<unk>\"\n}\n");
}

void meta_write_tokenizer_config(const struct meta_params *params, struct buffer *out)
{
    char name[64];
    if (params->n_ranks == 0) {
        write_sentencepiece_config(out);
        return;
    }
    buffer_append_text(out, "{\n  \"added_tokens_decoder\": {");
    for (unsigned i = 0; i < N_SPECIAL_TOKENS; i++)
        write_added_token(out, i == 0, params->n_ranks + i, meta_special_token(params->use_scaled_rope, i, name));
    buffer_printf(
        out,
        "\n  },\n  \"bos_token\": \"<|begin_of_text|>\",\n  \"clean_up_tokenization_spaces\": true,\n"
        "  \"eos_token\": \"<|end_of_text|>\",\n  \"model_input_names\": [\"input_ids\", \"attention_mask\"],\n"
        "  \"model_max_length\": %u,\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n",
        context_length(params));
}
