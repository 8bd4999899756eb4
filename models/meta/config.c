/* config.json and the tokenizer of Meta's Llamas. */
#include "models/meta/meta.h"

#include "base/arena.h"
#include "models/tokenizers/rebuild.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LLAMA3_VOCABULARY = 128000 };

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

/* Reports whether the release is Llama 3 or a later 3.x. */
static bool is_llama3(const struct meta_params *params)
{
    return params->n_ranks > 0 || params->use_scaled_rope ||
           (!params->sentencepiece && params->vocab_size >= LLAMA3_VOCABULARY);
}

bool meta_is_small_llama32(const struct meta_params *params)
{
    return params->use_scaled_rope &&
           ((params->dim == 2048 && params->n_layers == 16) || (params->dim == 3072 && params->n_layers == 28));
}

/* Returns the longest context of the release, which params.json lacks. */
static uint64_t context_length(const struct meta_params *params)
{
    if (is_llama3(params))
        return params->use_scaled_rope ? 131072 : 8192;
    if (params->rope_theta_value > 10000.0)
        return 16384; /* Code Llama */
    return strcmp(params->norm_eps, "1e-06") == 0 || strcmp(params->norm_eps, "1e-6") == 0 ? 2048 : 4096;
}

/* Returns the id of the first special token (bos); the second (eos) follows it. */
static uint64_t first_special(const struct meta_params *params)
{
    if (!is_llama3(params))
        return 1;
    return params->n_ranks > 0 ? params->n_ranks : LLAMA3_VOCABULARY;
}

static void put_special_ids(const struct meta_params *params, struct json_writer *writer)
{
    uint64_t first = first_special(params);
    if (first + 1 >= params->vocab_size)
        return;
    json_put_number(writer, "bos_token_id", first);
    json_put_number(writer, "eos_token_id", first + 1);
}

static void put_rope_scaling(const struct meta_params *params, struct json_writer *writer)
{
    const char *factor = meta_is_small_llama32(params) ? "32.0" : "8.0";
    if (params->rope_scaling_factor != NULL)
        factor = params->rope_scaling_factor;
    if (!params->use_scaled_rope) {
        json_put_null(writer, "rope_scaling");
        return;
    }
    json_put_template(writer,
                      "'rope_scaling': {'factor': %r, 'high_freq_factor': 4.0, 'low_freq_factor': 1.0,"
                      " 'original_max_position_embeddings': 8192, 'rope_type': 'llama3'}",
                      factor);
}

void meta_write_config(const struct meta_params *params, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_put_template(&writer, "{'architectures': ['LlamaForCausalLM'], 'attention_bias': false,"
                               " 'attention_dropout': 0.0");
    put_special_ids(params, &writer);
    json_put_template(&writer,
                      "'head_dim': %u, 'hidden_act': 'silu', 'hidden_size': %u, 'initializer_range': 0.02,"
                      " 'intermediate_size': %u, 'max_position_embeddings': %u, 'mlp_bias': false,"
                      " 'model_type': 'llama', 'num_attention_heads': %u, 'num_hidden_layers': %u,"
                      " 'num_key_value_heads': %u, 'pretraining_tp': 1, 'rms_norm_eps': %r",
                      params->dim / params->n_heads, params->dim, params->intermediate_size, context_length(params),
                      params->n_heads, params->n_layers, params->n_kv_heads, params->norm_eps);
    put_rope_scaling(params, &writer);
    json_put_template(&writer,
                      "'rope_theta': %r, 'tie_word_embeddings': %b, 'torch_dtype': %s, 'use_cache': true,"
                      " 'vocab_size': %u",
                      params->rope_theta, params->tied, params->dtype, params->vocab_size);
    json_end(&writer);
    buffer_append_text(out, "\n");
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

static void put_added_token(struct json_writer *writer, uint64_t id, const char *content)
{
    char key[24];
    snprintf(key, sizeof key, "%" PRIu64, id);
    json_put_key(writer, key, strlen(key));
    json_put_template(writer,
                      "{'content': %s, 'lstrip': false, 'normalized': false, 'rstrip': false, 'single_word': false,"
                      " 'special': true}",
                      content);
}

/* Writes the members that LlamaTokenizer saves. */
static void put_sentencepiece(struct json_writer *writer)
{
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    json_put_template(writer, "'add_bos_token': true, 'add_eos_token': false, 'add_prefix_space': true,"
                              " 'added_tokens_decoder': {");
    for (unsigned i = 0; i < 3; i++)
        put_added_token(writer, i, special[i]);
    json_put_template(writer, "}, 'bos_token': '<s>', 'clean_up_tokenization_spaces': false, 'eos_token': '</s>',"
                              " 'legacy': true, 'pad_token': null, 'tokenizer_class': 'LlamaTokenizer',"
                              " 'unk_token': '<unk>'");
}

static void put_tiktoken(const struct meta_params *params, struct json_writer *writer)
{
    char name[64];
    json_begin_object(writer, "added_tokens_decoder");
    for (unsigned i = 0; i < META_SPECIAL_TOKENS; i++)
        put_added_token(writer, params->n_ranks + i, meta_special_token(params->use_scaled_rope, i, name));
    json_put_template(writer,
                      "}, 'bos_token': '<|begin_of_text|>', 'clean_up_tokenization_spaces': true,"
                      " 'eos_token': '<|end_of_text|>', 'model_input_names': ['input_ids', 'attention_mask'],"
                      " 'model_max_length': %u, 'tokenizer_class': 'PreTrainedTokenizerFast'",
                      context_length(params));
}

void meta_write_tokenizer_config(const struct meta_params *params, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_begin_object(&writer, NULL);
    if (params->n_ranks == 0)
        put_sentencepiece(&writer);
    else
        put_tiktoken(params, &writer);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

static struct token spelled(struct arena *arena, const struct buffer *text, enum token_type type)
{
    const char *kept = arena_strndup(arena, (const char *)text->bytes, text->length);
    return (struct token){.text = kept, .length = text->length, .type = type};
}

/* Returns the vocabulary that a GGUF of the model has. */
static struct stored_vocab make_vocab(const struct tiktoken *tiktoken, bool llama31, struct arena *arena,
                                      const struct gguf_kvs *kvs)
{
    uint32_t n_ranks = (uint32_t)tiktoken_count(tiktoken);
    struct stored_vocab vocab = {.arena = arena, .kvs = kvs, .n_tokens = (uint64_t)n_ranks + META_SPECIAL_TOKENS};
    struct buffer text = {0};
    vocab.tokens = arena_array(arena, vocab.n_tokens, sizeof *vocab.tokens);
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        text.length = 0;
        tiktoken_append(tiktoken, rank, &text);
        vocab.tokens[rank] = spelled(arena, &text, TOKEN_NORMAL);
    }
    for (unsigned i = 0; i < META_SPECIAL_TOKENS; i++) {
        char name[64];
        text.length = 0;
        buffer_append_text(&text, meta_special_token(llama31, i, name));
        vocab.tokens[n_ranks + i] = spelled(arena, &text, TOKEN_CONTROL);
    }
    buffer_free(&text);
    for (size_t i = 0; i < SPECIALS; i++)
        vocab.ids[i] = NO_TOKEN;
    vocab.ids[SPECIAL_BOS] = n_ranks;
    return vocab;
}

static void put_merges(const struct tiktoken *tiktoken, const struct stored_vocab *vocab, struct json_writer *writer)
{
    struct tiktoken_merge merges[TIKTOKEN_MAX_BYTES];
    struct buffer text = {0};
    json_begin_array(writer, "merges");
    for (uint32_t rank = 0; rank < tiktoken_count(tiktoken); rank++) {
        size_t n_merges = tiktoken_merges(tiktoken, rank, merges);
        for (size_t i = 0; i < n_merges; i++) {
            const struct token *left = &vocab->tokens[merges[i].left], *right = &vocab->tokens[merges[i].right];
            text.length = 0;
            buffer_append(&text, left->text, left->length);
            buffer_append_text(&text, " ");
            buffer_append(&text, right->text, right->length);
            json_put_text_n(writer, NULL, (const char *)text.bytes, text.length);
        }
    }
    json_end(writer);
    buffer_free(&text);
}

void meta_write_tokenizer(const struct tiktoken *tiktoken, bool llama31, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = {0};
    bool known;
    gguf_set_bool(&kvs, "tokenizer.ggml.add_sep_token", false);
    const struct stored_vocab vocab = make_vocab(tiktoken, llama31, arena, &kvs);
    const struct pre_row *row = pre_row_find("llama-bpe", &known);
    rebuild_begin(&vocab, &writer);
    rebuild_bpe_steps(&vocab, row, &writer);
    rebuild_bpe_begin_model(row, &writer);
    json_put_template(&writer, "'vocab': {");
    for (uint64_t i = 0; i < tiktoken_count(tiktoken); i++)
        rebuild_put_token(&vocab, i, &writer);
    json_end(&writer);
    put_merges(tiktoken, &vocab, &writer);
    json_put_template(&writer, "}}");
    gguf_kvs_free(&kvs);
    arena_free(arena);
}
