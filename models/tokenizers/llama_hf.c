/* BPE with byte fallback, from tokenizer.json. */
#include "models/tokenizers/hf_kind.h"

#include <string.h>

/* "llama" from a tokenizer.json: BPE with byte fallback and a decoder in steps, for models without tokenizer.model. */

bool llama_hf_fits(const struct json *tokenizer)
{
    const struct json *model = json_get(tokenizer, "model");
    return json_string_is(json_get(model, "type"), "BPE") && json_bool(json_get(model, "byte_fallback"), false) &&
           json_string_is(json_get(json_get(tokenizer, "decoder"), "type"), "Sequence");
}

bool llama_hf_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, struct token_list *ret_list,
                   struct error *error)
{
    /* control tokens are the special tokens with a name, whatever flags tokenizer.json has for others */
    struct text_index specials = {0};
    size_t length, number;
    if (!hf_count_fits(input, vocabulary, vocabulary->n_ids, error) ||
        !token_list_init(ret_list, vocabulary->n_ids, -1000.f, error))
        return false;
    hf_index_named_specials(vocabulary, &specials);
    for (struct json_member token = {0}; json_next_member(vocabulary->vocab, &token);) {
        uint64_t id = 0;
        const char *text = token.key;
        length = token.key_length;
        enum token_type type = text_index_find(&specials, text, length, &number) ? TOKEN_CONTROL : TOKEN_NORMAL;
        json_u64(token.value, &id);
        token_list_set(ret_list, id, text, length, -1000.f, hf_is_byte(text, length) ? TOKEN_BYTE : type);
    }
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        bool is_special = text_index_find(&specials, added->text, added->length, &number);
        if (added->id >= vocabulary->n_model_tokens)
            token_list_set(ret_list, added->id, added->text, added->length, -1000.f,
                           is_special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    text_index_free(&specials);
    return true;
}

static bool is_exact(const struct vocab_input *input, const struct hf_vocabulary *vocabulary)
{
    return hf_is_too_new(vocabulary->files) || (input->references != NULL && input->references->exact_tokenizer);
}

static bool llama_hf_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                                const struct hf_vocabulary *vocabulary, struct error *error)
{
    struct token_list list;
    if (is_exact(input, vocabulary))
        return hf_spm_write(kvs, input, vocabulary, (struct hf_spm_form){0}, error);
    if (!llama_hf_list(input, vocabulary, &list, error))
        return false;
    checkpoint_note(
        input->checkpoint, SUBJECT_GGUF,
        "there is no tokenizer.model, so the converter gives all tokens one score, and llama.cpp splits words "
        "otherwise than transformers; -o tokenizer=exact writes the scores that the merges give back");
    token_list_write(&list, "llama", "default", true, kvs);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

/* The converter denies Jamba the space before a text, whatever tokenizer.json says. */
static bool write_jamba(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    if (!llama_hf_write_keys(kvs, input, vocabulary, error))
        return false;
    if (!is_exact(input, vocabulary))
        gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", false);
    return true;
}

const struct vocab llama_hf_vocab = {
    .name = "BPE with byte fallback", .file = "tokenizer.json", .fits = llama_hf_fits, .write = llama_hf_write_keys};

const struct vocab jamba_hf_vocab = {
    .name = "BPE with byte fallback", .file = "tokenizer.json", .fits = llama_hf_fits, .write = write_jamba};

bool hf_is_too_new(const struct tokenizer_files *files)
{
    return json_string_is(json_get(files->config, "tokenizer_class"), "TokenizersBackend") ||
           json_is(json_get(files->config, "extra_special_tokens"), JSON_ARRAY);
}

bool hf_spm_fits(const struct json *tokenizer)
{
    return hf_kind_of(tokenizer) == HF_BYTE_FALLBACK;
}

/* Makes the list without scores. Tokens that are not in tokenizer.json are padding, as those that tokenizer.model
 * lacks. */
static bool hf_spm_make_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                             struct token_list *ret_list, struct error *error)
{
    uint64_t n_tokens = 0;
    size_t unknown_length = 0;
    json_u64(hparams_find(input->hparams, "vocab_size_per_layer_input|vocab_size"), &n_tokens);
    n_tokens = n_tokens != 0 ? n_tokens : vocabulary->n_ids;
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(ret_list, n_tokens, -10000.f, error))
        return false;
    const char *unknown = json_string(json_get(vocabulary->model, "unk_token"), &unknown_length);
    for (struct json_member token = {0}; json_next_member(vocabulary->vocab, &token);) {
        uint64_t id = 0;
        bool is_unknown =
            unknown != NULL && token.key_length == unknown_length && memcmp(token.key, unknown, unknown_length) == 0;
        bool is_byte = hf_is_byte(token.key, token.key_length);
        json_u64(token.value, &id);
        token_list_set(ret_list, id, token.key, token.key_length, 0.f,
                       is_byte      ? TOKEN_BYTE
                       : is_unknown ? TOKEN_UNKNOWN
                                    : TOKEN_NORMAL);
    }
    return true;
}

/* Sets the added tokens as sentencepiece_add_decoder() does; U+2581 stands for a space in pieces of the model. */
static void set_added(struct token_list *list, const struct hf_vocabulary *vocabulary, bool by_looks)
{
    const struct json *added = json_get(vocabulary->files->tokenizer, "added_tokens");
    for (const struct json *token = json_first(added); token != NULL; token = json_next(token)) {
        size_t length;
        uint64_t id, model_id;
        const char *text = json_string(json_get(token, "content"), &length);
        bool is_control = json_bool(json_get(token, "special"), false);
        if (text == NULL || !hf_token_id(vocabulary, text, length, &id)) /* the id that the file gives does not count */
            continue;
        is_control |= by_looks && token_looks_special(text, length);
        if (!is_control && by_looks && hf_model_id(vocabulary, text, length, &model_id))
            text = token_plain_spaces(list, text, &length);
        token_list_set(list, id, text, length, -1000.f, is_control ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
}

/* Sets the tokens that transformers adds to those of tokenizer.json: of tokenizer_config.json and added_tokens.json. */
static void set_named(struct token_list *list, const struct hf_vocabulary *vocabulary)
{
    const struct json *serialized = json_get(vocabulary->files->tokenizer, "added_tokens");
    struct text_index listed = {0};
    size_t length, number;
    for (const struct json *token = json_first(serialized); token != NULL; token = json_next(token)) {
        const char *text = json_string(json_get(token, "content"), &length);
        if (text != NULL)
            text_index_add(&listed, text, length, 0);
    }
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        if (!text_index_find(&listed, added->text, added->length, &number))
            token_list_set(list, added->id, added->text, added->length, -1000.f,
                           added->special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    text_index_free(&listed);
}

/* What llama.cpp would take otherwise: a space before the text. transformers 5 saves a step that adds it even where
 * tokenizer_config.json, which is right, says that there is none. */
static void write_space_prefix(struct gguf_kvs *kvs, const struct vocab_input *input,
                               const struct tokenizer_files *files)
{
    bool has_step = hf_adds_prefix(files->tokenizer);
    if (has_step && json_bool(json_get(files->config, "add_prefix_space"), true))
        return;
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", false);
    if (has_step)
        checkpoint_note(input->checkpoint, SUBJECT_GGUF,
                        "add_prefix_space is false in tokenizer_config.json, but tokenizer.json puts a space before "
                        "texts, as transformers 5 does; wfs writes false, which the model was trained with");
}

bool hf_spm_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                  struct hf_spm_form form, struct error *error)
{
    static const char add_bos[] = "tokenizer.ggml.add_bos_token";
    struct token_list list;
    if (!hf_spm_make_list(input, vocabulary, &list, error))
        return false;
    set_added(&list, vocabulary, !form.by_flags);
    set_named(&list, vocabulary);
    const char *unlike =
        merge_scores_set(&list, vocabulary, form.counts_all, strcmp(vocabulary->class_name, "LlamaTokenizer") == 0);
    if (unlike != NULL)
        checkpoint_note(input->checkpoint, SUBJECT_GGUF,
                        "tokenizer.json has %s: llama.cpp joins pieces by scores alone, so it splits some texts "
                        "otherwise than transformers",
                        unlike);
    token_list_write(&list, "llama", "default", true, kvs);
    write_space_prefix(kvs, input, vocabulary->files);
    checkpoint_hint(input->checkpoint, SUBJECT_GGUF,
                    "the converter does not make this tokenizer out of tokenizer.json alone; the scores of its pieces "
                    "follow from the merges");
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    if (!special_vocab_write(kvs, input, vocabulary->files, &options, error))
        return false;
    if (gguf_kvs_find(kvs, add_bos) == NULL) /* which llama.cpp would take for true */
        gguf_set_bool(kvs, add_bos, false);
    return true;
}

static bool write_usual(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    return hf_spm_write(kvs, input, vocabulary, (struct hf_spm_form){0}, error);
}

static bool write_gemma(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    return hf_spm_write(kvs, input, vocabulary, (struct hf_spm_form){.counts_all = true}, error);
}

static bool write_phi3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    return hf_spm_write(kvs, input, vocabulary, (struct hf_spm_form){.by_flags = true}, error);
}

const struct vocab hf_spm_vocab = {
    .name = "SentencePiece of tokenizer.json", .file = "tokenizer.json", .fits = hf_spm_fits, .write = write_usual};
const struct vocab hf_gemma_vocab = {.name = "SentencePiece of Gemma's tokenizer.json",
                                     .file = "tokenizer.json",
                                     .fits = hf_spm_fits,
                                     .write = write_gemma};
const struct vocab hf_phi3_vocab = {.name = "SentencePiece of Phi-3's tokenizer.json",
                                    .file = "tokenizer.json",
                                    .fits = hf_spm_fits,
                                    .write = write_phi3};

/* "gemma4": BPE with byte fallback and its merges. conversion/gemma.py. */

/* Reports whether a token is shown whatever the files say: readers of a model's answers look for these tokens. */
static bool is_shown(const struct token *token)
{
    static const char *const shown[] = {"<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
                                        "<|tool_response>", "<tool_response|>", "<|\"|>"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (token->text != NULL && token->length == strlen(shown[i]) &&
            memcmp(token->text, shown[i], token->length) == 0)
            return true;
    return false;
}

static bool gemma4_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                              const struct hf_vocabulary *vocabulary, struct error *error)
{
    struct token_list list;
    if (!llama_hf_list(input, vocabulary, &list, error))
        return false;
    for (uint64_t i = 0; i < list.n_tokens; i++)
        if (is_shown(&list.tokens[i]))
            list.tokens[i].type = TOKEN_USER_DEFINED;
    token_list_write(&list, "gemma4", NULL, true, kvs);
    token_list_free(&list);
    if (!special_vocab_write(kvs, input, vocabulary->files, &(struct special_vocab_options){.load_merges = true},
                             error))
        return false;
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", false);
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", true);
    return true;
}

const struct vocab gemma4_vocab = {.name = "Gemma 4's BPE with byte fallback",
                                   .file = "tokenizer.json",
                                   .fits = llama_hf_fits,
                                   .write = gemma4_write_keys};

/* "llama" without scores, from XVERSE's tokenizer.json. conversion/xverse.py. */

/* The text for a token of one NUL byte, as Python shows that byte. */
static const char nul_text[] = "<b'\\x00'>";

static bool xverse_make_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                             struct token_list *list, struct error *error)
{
    uint64_t n_tokens = vocabulary->n_ids;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (vocabulary->n_ids > n_tokens)
        return error_set(error, "config.json: vocab_size is %llu, and the tokenizer has %llu tokens",
                         (unsigned long long)n_tokens, (unsigned long long)vocabulary->n_ids);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(list, n_tokens, 0, error))
        return false;
    for (struct json_member token = {0}; json_next_member(vocabulary->vocab, &token);) {
        const char *text = token.key;
        size_t length = token.key_length;
        uint64_t id = 0;
        json_u64(token.value, &id);
        if (length == 1 && *text == '\0')
            token_list_set(list, id, nul_text, sizeof nul_text - 1, 0, TOKEN_BYTE);
        else
            token_list_set(list, id, text, length, 0, hf_is_byte(text, length) ? TOKEN_BYTE : TOKEN_NORMAL);
    }
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        if (!hf_is_byte(added->text, added->length))
            token_list_set(list, added->id, added->text, added->length, 0,
                           added->special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    return true;
}

static bool xverse_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                              const struct hf_vocabulary *vocabulary, struct error *error)
{
    struct token_list list;
    if (!xverse_make_list(input, vocabulary, &list, error))
        return false;
    token_list_write(&list, "llama", "default", false, kvs);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

const struct vocab xverse_vocab = {
    .name = "BPE of XVERSE", .file = "tokenizer.json", .fits = llama_hf_fits, .write = xverse_write_keys};
