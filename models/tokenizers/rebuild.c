#include "models/tokenizers/rebuild.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char block[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */

static const char *const special_keys[SPECIALS] = {
    [SPECIAL_BOS] = "tokenizer.ggml.bos_token_id",         [SPECIAL_EOS] = "tokenizer.ggml.eos_token_id",
    [SPECIAL_UNKNOWN] = "tokenizer.ggml.unknown_token_id", [SPECIAL_SEPARATOR] = "tokenizer.ggml.seperator_token_id",
    [SPECIAL_PADDING] = "tokenizer.ggml.padding_token_id", [SPECIAL_MASK] = "tokenizer.ggml.mask_token_id",
};

bool token_is_added(const struct token *token)
{
    return token->type == TOKEN_CONTROL || token->type == TOKEN_USER_DEFINED || token->type == TOKEN_UNKNOWN;
}

bool rebuild_flag(const struct stored_vocab *vocab, const char *key, bool otherwise)
{
    bool value;
    return gguf_get_bool(vocab->kvs, key, &value) ? value : otherwise;
}

static int64_t token_id(const struct stored_vocab *vocab, const char *key)
{
    uint64_t id;
    return gguf_get_u64(vocab->kvs, key, &id) && id < vocab->n_tokens ? (int64_t)id : NO_TOKEN;
}

/* Reports whether a token is padding: an unused row of the embedding, named by its number. */
static bool is_padding(const struct token *token, uint64_t id)
{
    char text[32];
    size_t length = (size_t)snprintf(text, sizeof text, "[PAD%" PRIu64 "]", id);
    /* as WordPiece's words have it */
    size_t mark = token->length > length && memcmp(token->text, block, 3) == 0 ? 3 : 0;
    return token->type == TOKEN_UNUSED && token->length == mark + length &&
           memcmp(token->text + mark, text, length) == 0;
}

/* Reports whether a Unigram vocabulary is not T5's: XLM-RoBERTa and similar models have ids in another order than their
 * SentencePiece model. */
static bool is_like_xlmr(const struct gguf_kvs *kvs)
{
    struct arena *arena = arena_new();
    const char *model = gguf_get_text(kvs, "tokenizer.ggml.model", arena),
               *architecture = gguf_get_text(kvs, "general.architecture", arena);
    bool is_t5 = architecture != NULL && text_starts_with(architecture, "t5");
    bool is_unigram = model != NULL && strcmp(model, "t5") == 0;
    arena_free(arena);
    return is_unigram && !is_t5;
}

static bool load_tokens(struct stored_vocab *vocab, struct error *error)
{
    struct gguf_array texts, types, scores;
    bool has_types = gguf_kvs_find(vocab->kvs, "tokenizer.ggml.token_type") != NULL;
    bool has_scores = gguf_kvs_find(vocab->kvs, "tokenizer.ggml.scores") != NULL;
    if (!gguf_get_array(vocab->kvs, "tokenizer.ggml.tokens", vocab->arena, &texts, error) ||
        (has_types && !gguf_get_array(vocab->kvs, "tokenizer.ggml.token_type", vocab->arena, &types, error)) ||
        (has_scores && !gguf_get_array(vocab->kvs, "tokenizer.ggml.scores", vocab->arena, &scores, error)))
        return false;
    if ((has_types && types.count != texts.count) || (has_scores && scores.count != texts.count))
        return error_set(error, "%" PRIu64 " tokens have %" PRIu64 " types and %" PRIu64 " scores", texts.count,
                         has_types ? types.count : texts.count, has_scores ? scores.count : texts.count);
    vocab->tokens = arena_array(vocab->arena, texts.count, sizeof *vocab->tokens);
    vocab->n_tokens = texts.count;
    for (uint64_t i = 0; i < texts.count; i++) {
        struct token *token = &vocab->tokens[i];
        int64_t type;
        double score;
        token->text = gguf_array_string(&texts, i, &token->length);
        if (token->text == NULL)
            return error_set(error, "tokenizer.ggml.tokens is not an array of strings");
        token->type = has_types && gguf_array_i64(&types, i, &type) ? (enum token_type)type : TOKEN_NORMAL;
        token->score = has_scores && gguf_array_f64(&scores, i, &score) ? (float)score : 0;
    }
    return true;
}

static bool token_text_is(const struct token *token, const char *text)
{
    return token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}

static void drop_padding(struct stored_vocab *vocab)
{
    uint64_t n = vocab->n_tokens;
    while (n > 0 && is_padding(&vocab->tokens[n - 1], n - 1))
        n--;
    vocab->n_tokens = n;
}

/* Drops padding, whose names have the number before, since all ids moved by one. XLM-RoBERTa's pieces are followed by a
 * mask, which looks like padding in a GGUF that does not name it. */
static void drop_moved_padding(struct stored_vocab *vocab)
{
    static const char mask[] = "<mask>";
    uint64_t n = vocab->n_tokens;
    while (n > 1 && is_padding(&vocab->tokens[n - 1], n - 2))
        n--;
    if (n > 0 && n < vocab->n_tokens && !token_text_is(&vocab->tokens[n - 1], mask))
        vocab->tokens[n++] = (struct token){mask, sizeof mask - 1, 0, TOKEN_CONTROL};
    vocab->n_tokens = n;
}

/* Reports whether the four tokens that the converter puts before the pieces are there. */
static bool has_xlmr_order(const struct stored_vocab *vocab)
{
    static const char *const front[] = {"<s>", "<pad>", "</s>", "<unk>"};
    for (size_t i = 0; i < sizeof front / sizeof *front; i++)
        if (i >= vocab->n_tokens || !token_text_is(&vocab->tokens[i], front[i]))
            return false;
    return true;
}

/* Sets the ids that no key holds, which are the same in all such models. */
static void set_xlmr_ids(struct stored_vocab *vocab)
{
    uint64_t last = vocab->n_tokens - 1; /* there are at least four tokens */
    static const enum special in_front[] = {SPECIAL_BOS, SPECIAL_PADDING, SPECIAL_EOS, SPECIAL_UNKNOWN};
    for (size_t i = 0; i < sizeof in_front / sizeof *in_front; i++)
        if (vocab->ids[in_front[i]] == NO_TOKEN)
            vocab->ids[in_front[i]] = (int64_t)i;
    vocab->ids[SPECIAL_MASK] = token_text_is(&vocab->tokens[last], "<mask>") ? (int64_t)last : NO_TOKEN;
}

static bool load(struct stored_vocab *vocab, struct error *error)
{
    size_t length;
    vocab->model = gguf_get_string(vocab->kvs, "tokenizer.ggml.model", vocab->arena, &length, error);
    if (vocab->model == NULL || !load_tokens(vocab, error))
        return false;
    vocab->pre = gguf_get_text(vocab->kvs, "tokenizer.ggml.pre", vocab->arena);
    if (vocab->pre == NULL)
        vocab->pre = "";
    vocab->is_xlmr = is_like_xlmr(vocab->kvs) && has_xlmr_order(vocab);
    if (vocab->is_xlmr)
        drop_moved_padding(vocab);
    drop_padding(vocab);
    for (size_t i = 0; i < SPECIALS; i++)
        vocab->ids[i] = token_id(vocab, special_keys[i]);
    if (vocab->is_xlmr)
        set_xlmr_ids(vocab);
    for (uint64_t i = 0; i < vocab->n_tokens && strcmp(vocab->model, "llama") == 0; i++)
        vocab->has_scores |= vocab->tokens[i].type == TOKEN_NORMAL && vocab->tokens[i].score != TOKEN_NO_PIECE;
    return true;
}

/* Reports whether a token takes the space before it, as the masks of RoBERTa, ModernBERT and XLM-RoBERTa do. */
static bool strips_left(const struct stored_vocab *vocab, uint64_t id)
{
    const struct token *token = &vocab->tokens[id];
    return (int64_t)id == vocab->ids[SPECIAL_MASK] && (vocab->is_xlmr || strcmp(vocab->model, "gpt2") == 0) &&
           (token_text_is(token, "<mask>") || token_text_is(token, "[MASK]"));
}

static void write_added_tokens(const struct stored_vocab *vocab, struct json_writer *writer)
{
    json_begin_array(writer, "added_tokens");
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        if (!token_is_added(token) || token->length == 0)
            continue;
        json_put_template(writer,
                          "{'id': %u, 'content': %t, 'single_word': false, 'lstrip': %b, 'rstrip': false,"
                          " 'normalized': false, 'special': %b}",
                          i, token->text, token->length, strips_left(vocab, i), token->type != TOKEN_USER_DEFINED);
    }
    json_end(writer);
}

void rebuild_begin(const struct stored_vocab *vocab, struct json_writer *writer)
{
    json_put_template(writer, "{'version': '1.0', 'truncation': null, 'padding': null");
    write_added_tokens(vocab, writer);
}

void rebuild_put_token(const struct stored_vocab *vocab, uint64_t id, struct json_writer *writer)
{
    json_put_key(writer, vocab->tokens[id].text, vocab->tokens[id].length);
    json_put_number(writer, NULL, id);
}

/* Post-processing. */

static void put_special(const struct stored_vocab *vocab, int64_t id, uint64_t type, struct json_writer *writer)
{
    if (id != NO_TOKEN)
        json_put_template(writer, "{'SpecialToken': {'id': %t, 'type_id': %u}}", vocab->tokens[id].text,
                          vocab->tokens[id].length, type);
}

static void put_token(const struct stored_vocab *vocab, int64_t id, struct json_writer *writer)
{
    const struct token *token = &vocab->tokens[id];
    json_put_key(writer, token->text, token->length);
    json_put_template(writer, "{'id': %t, 'ids': [%u], 'tokens': [%t]}", token->text, token->length, (uint64_t)id,
                      token->text, token->length);
}

void rebuild_template(const struct stored_vocab *vocab, const struct template *template, const char *key,
                      struct json_writer *writer)
{
    static const char first[] = "{'Sequence': {'id': 'A', 'type_id': 0}}";
    json_begin_object(writer, key);
    json_put_template(writer, "'type': 'TemplateProcessing', 'single': [");
    put_special(vocab, template->before, 0, writer);
    json_put_template(writer, first);
    put_special(vocab, template->after, 0, writer);
    json_put_template(writer, "], 'pair': [");
    put_special(vocab, template->before, 0, writer);
    json_put_template(writer, first);
    for (unsigned i = 0; i < template->n_between; i++)
        put_special(vocab, template->after, 0, writer);
    put_special(vocab, template->second, template->second_type, writer);
    json_put_template(writer, "{'Sequence': {'id': 'B', 'type_id': %u}}", template->second_type);
    put_special(vocab, template->after, template->second_type, writer);
    json_put_template(writer, "], 'special_tokens': {");
    if (template->before != NO_TOKEN)
        put_token(vocab, template->before, writer);
    if (template->after != NO_TOKEN && template->after != template->before)
        put_token(vocab, template->after, writer);
    json_put_template(writer, "}}");
}

bool rebuild_usual_template(const struct stored_vocab *vocab, bool adds_bos, struct template *ret_template)
{
    bool bos = rebuild_flag(vocab, "tokenizer.ggml.add_bos_token", adds_bos) && vocab->ids[SPECIAL_BOS] != NO_TOKEN;
    bool eos = rebuild_flag(vocab, "tokenizer.ggml.add_eos_token", false) && vocab->ids[SPECIAL_EOS] != NO_TOKEN;
    bool sep = rebuild_flag(vocab, "tokenizer.ggml.add_sep_token", false) && vocab->ids[SPECIAL_EOS] != NO_TOKEN;
    *ret_template = (struct template){NO_TOKEN, NO_TOKEN, NO_TOKEN, eos, 1};
    if (bos)
        ret_template->before = vocab->ids[SPECIAL_BOS];
    if (bos &&
        gguf_kvs_find(vocab->kvs, "tokenizer.ggml.add_sep_token") != NULL) /* present only if tokens come between */
        ret_template->second = vocab->ids[SPECIAL_BOS];
    if (eos || sep)
        ret_template->after = vocab->ids[SPECIAL_EOS];
    if (sep) { /* as RoBERTa: <s> A </s></s> B </s> */
        ret_template->second = NO_TOKEN;
        ret_template->n_between = 2;
        ret_template->second_type = 0;
    }
    return bos || eos || sep;
}

/* tokenizer_config.json, special_tokens_map.json and the templates. */

/* Reports whether the tokenizer's configuration names a token. Keys for these tokens come in the order of enum special,
 * before keys that only config.json has. */
static bool is_named_in_config(const struct stored_vocab *vocab, enum special special)
{
    size_t latest = 0;
    for (size_t i = 0; i < vocab->kvs->n_kvs; i++)
        for (size_t j = 0; j < SPECIALS; j++) {
            if (strcmp(vocab->kvs->kvs[i].key, special_keys[j]) != 0)
                continue;
            if (j < latest || j == special)
                return j >= latest;
            latest = j;
        }
    return false;
}

/* Kinds of vocabularies with different names for their special tokens. */
enum { OF_BERT = 1, OF_XLMR = 2, OF_OTHERS = 4, OF_ALL = OF_BERT | OF_XLMR | OF_OTHERS };

/* Names of special tokens in configurations, in alphabetical order. */
static const struct special_name {
    const char *name;
    enum special special, otherwise; /* `otherwise` if the vocabulary lacks `special` */
    unsigned kinds;
} special_names[] = {
    {"bos_token", SPECIAL_BOS, SPECIAL_BOS, OF_XLMR | OF_OTHERS},
    {"cls_token", SPECIAL_BOS, SPECIAL_BOS, OF_BERT | OF_XLMR},
    {"eos_token", SPECIAL_EOS, SPECIAL_EOS, OF_XLMR | OF_OTHERS},
    {"mask_token", SPECIAL_MASK, SPECIAL_MASK, OF_ALL},
    {"pad_token", SPECIAL_PADDING, SPECIAL_PADDING, OF_ALL},
    {"sep_token", SPECIAL_SEPARATOR, SPECIAL_EOS, OF_BERT | OF_XLMR},
    {"unk_token", SPECIAL_UNKNOWN, SPECIAL_UNKNOWN, OF_ALL},
};
enum { N_NAMES = sizeof special_names / sizeof *special_names };

/* Writes the texts of the special tokens from one name to another. XLM-RoBERTa's have fixed ids. */
static void put_names(const struct stored_vocab *vocab, const char *from, const char *to, struct json_writer *writer)
{
    unsigned kind = vocab->is_xlmr ? OF_XLMR : OF_OTHERS;
    if (strcmp(vocab->model, "bert") == 0)
        kind = OF_BERT;
    for (const struct special_name *name = special_names; name < special_names + N_NAMES; name++) {
        enum special special = vocab->ids[name->special] != NO_TOKEN ? name->special : name->otherwise;
        int64_t id = vocab->ids[special];
        if (strcmp(name->name, from) >= 0 && strcmp(name->name, to) <= 0 && (name->kinds & kind) != 0 &&
            id != NO_TOKEN && (vocab->is_xlmr || is_named_in_config(vocab, special)))
            json_put_text_n(writer, name->name, vocab->tokens[id].text, vocab->tokens[id].length);
    }
}

/* Writes the added tokens, except those that are also pieces of a SentencePiece model. */
static void write_decoder(const struct stored_vocab *vocab, struct json_writer *writer)
{
    char id[24];
    json_begin_object(writer, "added_tokens_decoder");
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        if (!token_is_added(token) || token->length == 0 || (vocab->has_scores && token->score != TOKEN_NO_PIECE))
            continue;
        snprintf(id, sizeof id, "%" PRIu64, i);
        json_put_key(writer, id, strlen(id));
        json_put_template(writer,
                          "{'content': %t, 'lstrip': %b, 'normalized': false, 'rstrip': false, 'single_word': false,"
                          " 'special': %b}",
                          token->text, token->length, strips_left(vocab, i), token->type != TOKEN_USER_DEFINED);
    }
    json_end(writer);
}

static void put_flag(const struct stored_vocab *vocab, const char *name, const char *key, struct json_writer *writer)
{
    bool value;
    if (gguf_get_bool(vocab->kvs, key, &value))
        json_put_bool(writer, name, value);
}

/* Writes the model's inputs: without them transformers' tokenizers add token_type_ids, which generate() of no decoder
 * accepts. */
static void put_input_names(const struct stored_vocab *vocab, struct json_writer *writer)
{
    uint64_t n_types;
    if (!gguf_get_u64(vocab->kvs, "tokenizer.ggml.token_type_count", &n_types) || n_types <= 1)
        json_put_template(writer, "'model_input_names': ['input_ids', 'attention_mask']");
}

static void put_model_max_length(const struct stored_vocab *vocab, struct json_writer *writer)
{
    uint64_t context;
    const char *architecture = gguf_get_text(vocab->kvs, "general.architecture", vocab->arena);
    if (architecture != NULL &&
        gguf_get_u64(vocab->kvs, arena_printf(vocab->arena, "%s.context_length", architecture), &context))
        json_put_number(writer, "model_max_length", context);
}

/* Reports whether a beginning token comes from transformers' class alone: the hash of this pre-tokenizer has one, and
 * newer converters go by the steps of tokenizer.json, which have none. */
static bool begins_by_class(const struct stored_vocab *vocab)
{
    const char *pre = gguf_get_text(vocab->kvs, "tokenizer.ggml.pre", vocab->arena);
    return pre != NULL && strcmp(pre, "deepseek-v3") == 0 && !rebuild_flag(vocab, "tokenizer.ggml.add_bos_token", true);
}

static bool write_config(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    bool by_class = begins_by_class(vocab);
    json_begin_object(&writer, NULL);
    if (by_class)
        json_put_template(&writer, "'add_bos_token': true");
    else
        put_flag(vocab, "add_bos_token", "tokenizer.ggml.add_bos_token", &writer);
    put_flag(vocab, "add_eos_token", "tokenizer.ggml.add_eos_token", &writer);
    put_flag(vocab, "add_prefix_space", "tokenizer.ggml.add_space_prefix", &writer);
    write_decoder(vocab, &writer);
    put_names(vocab, "bos_token", "bos_token", &writer);
    json_put_template(&writer, "'clean_up_tokenization_spaces': false");
    put_names(vocab, "cls_token", "mask_token", &writer);
    json_put_template(&writer, "'extra_special_tokens': {}");
    put_input_names(vocab, &writer);
    put_model_max_length(vocab, &writer);
    put_names(vocab, "pad_token", "sep_token", &writer);
    json_put_text(&writer, "tokenizer_class", by_class ? "LlamaTokenizerFast" : "PreTrainedTokenizerFast");
    if (by_class && vocab->ids[SPECIAL_UNKNOWN] == NO_TOKEN)
        json_put_text(&writer, "unk_token", NULL); /* else the class adds one */
    put_names(vocab, "unk_token", "unk_token", &writer);
    json_end(&writer);
    buffer_append_text(out, "\n");
    return true;
}

static bool write_special_map(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    json_begin_object(&writer, NULL);
    put_names(vocab, "bos_token", "unk_token", &writer);
    json_end(&writer);
    buffer_append_text(out, "\n");
    return true;
}

static bool has_template(const struct gguf_kvs *kvs)
{
    return gguf_kvs_find(kvs, "tokenizer.chat_template") != NULL;
}

static bool write_chat_template(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    size_t length;
    const char *text = gguf_get_string(vocab->kvs, "tokenizer.chat_template", vocab->arena, &length, error);
    if (text == NULL)
        return false;
    buffer_append(out, text, length);
    return true;
}

/* Reports whether tokens have scores. A vocabulary from a tokenizer.json alone has one score for all, which would make
 * a different SentencePiece model. */
static bool has_scores(const struct gguf_kvs *kvs)
{
    return gguf_kvs_find(kvs, "tokenizer.ggml.scores") != NULL;
}

static bool is_t5(const struct gguf_kvs *kvs)
{
    return has_scores(kvs) && !is_like_xlmr(kvs);
}

/* Reports whether the GGUF came from XLM-RoBERTa's SentencePiece model: a vocabulary from a tokenizer.json alone has no
 * prefix. */
static bool is_xlmr(const struct gguf_kvs *kvs)
{
    bool adds_prefix = true;
    gguf_get_bool(kvs, "tokenizer.ggml.add_space_prefix", &adds_prefix);
    return has_scores(kvs) && is_like_xlmr(kvs) && adds_prefix;
}

const struct rebuilt_file rebuilt_files[] = {
    {"tokenizer.json", "gpt2", rebuild_bpe_json, NULL},
    {"vocab.json", "gpt2", rebuild_bpe_vocab, NULL},
    {"merges.txt", "gpt2", rebuild_bpe_merges, NULL},
    {"tokenizer.json", "llama", rebuild_spm_json, NULL},
    {"tokenizer.model", "llama", rebuild_spm_model, has_scores},
    {"tokenizer.json", "t5", rebuild_unigram_json, has_scores},
    {"spiece.model", "t5", rebuild_spm_model, is_t5},
    {"sentencepiece.bpe.model", "t5", rebuild_xlmr_model, is_xlmr},
    {"tokenizer.json", "gemma4", rebuild_spm_json, NULL},
    {"tokenizer.json", "bert", rebuild_wordpiece_json, NULL},
    {"vocab.txt", "bert", rebuild_wordpiece_text, NULL},
    {"tokenizer_config.json", NULL, write_config, NULL},
    {"special_tokens_map.json", NULL, write_special_map, NULL},
    {"chat_template.jinja", NULL, write_chat_template, has_template},
    {0},
};

bool rebuilt_file_applies(const struct rebuilt_file *file, const struct gguf_kvs *kvs)
{
    enum gguf_type type;
    uint64_t count;
    const struct gguf_kv *tokens = gguf_kvs_find(kvs, "tokenizer.ggml.tokens");
    if (tokens == NULL || !gguf_array_outline(tokens, &type, &count) || type != GGUF_STRING)
        return false;
    struct arena *arena = arena_new();
    const char *model = gguf_get_text(kvs, "tokenizer.ggml.model", arena);
    bool applies = model != NULL && (file->model == NULL || strcmp(file->model, model) == 0) &&
                   (file->applies == NULL || file->applies(kvs));
    arena_free(arena);
    return applies;
}

/* Returns the reason why there are no files at all, or NULL. */
static const char *no_files(const struct gguf_kvs *kvs, const char *model, struct arena *arena)
{
    if (model == NULL || gguf_kvs_find(kvs, "tokenizer.ggml.tokens") == NULL)
        return "the GGUF has no tokenizer";
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++)
        if (file->model != NULL && strcmp(file->model, model) == 0)
            return NULL;
    return arena_printf(arena, "wfs makes no tokenizer files from a vocabulary of type '%.64s'", model);
}

const char *rebuilt_file_refusal(const struct rebuilt_file *file, const struct gguf_kvs *kvs, struct arena *arena)
{
    const char *model = gguf_get_text(kvs, "tokenizer.ggml.model", arena), *reason = no_files(kvs, model, arena);
    if (reason != NULL)
        return reason;
    bool needs_scores = file->applies == has_scores && strcmp(file->model, model) == 0;
    return needs_scores && !has_scores(kvs) ? "the GGUF has no scores of its tokens" : NULL;
}

const char *rebuilt_note(const struct gguf_kvs *kvs, struct arena *arena)
{
    const char *model = gguf_get_text(kvs, "tokenizer.ggml.model", arena),
               *pre = gguf_get_text(kvs, "tokenizer.ggml.pre", arena);
    const char *reason = no_files(kvs, model, arena);
    bool known;
    for (const struct rebuilt_file *file = rebuilt_files; reason == NULL && file->name != NULL; file++)
        if ((reason = rebuilt_file_refusal(file, kvs, arena)) != NULL)
            return arena_printf(arena, "%s is left out: %s", file->name, reason);
    if (reason != NULL || strcmp(model, "gpt2") != 0)
        return reason;
    if (pre == NULL)
        return "tokenizer.json splits text as GPT-2 does, because the GGUF names no pre-tokenizer";
    pre_row_find(pre, &known);
    return known
               ? NULL
               : arena_printf(arena,
                              "tokenizer.json splits text as GPT-2 does, because the pre-tokenizer '%.64s' is unknown",
                              pre);
}

const char *rebuilt_template_name(const char *key)
{
    static const char prefix[] = "tokenizer.chat_template.";
    const char *name = key + sizeof prefix - 1;
    if (!text_starts_with(key, prefix) || *name == '\0' || strlen(name) > 64 ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] != '\0')
        return NULL;
    return name;
}

/* Restores U+2581 in llama's user-defined tokens, whose texts have spaces in the GGUF. */
static void restore_blocks(struct stored_vocab *vocab)
{
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        struct token *token = &vocab->tokens[i];
        size_t n_spaces = 0;
        for (size_t at = 0; at < token->length; at++)
            n_spaces += token->text[at] == ' ';
        if (token->type != TOKEN_USER_DEFINED || n_spaces == 0)
            continue;
        char *text = arena_alloc(vocab->arena, token->length + 2 * n_spaces + 1), *to = text;
        for (size_t at = 0; at < token->length; at++)
            if (token->text[at] == ' ')
                to = (char *)memcpy(to, block, 3) + 3;
            else
                *to++ = token->text[at];
        token->text = text;
        token->length = (size_t)(to - text);
    }
}

bool rebuilt_file_write(const struct rebuilt_file *file, const struct gguf_kvs *kvs, struct buffer *out,
                        struct error *error)
{
    struct stored_vocab vocab = {.arena = arena_new(), .kvs = kvs};
    bool written = load(&vocab, error);
    if (written && strcmp(vocab.model, "llama") == 0)
        restore_blocks(&vocab);
    if (written && strcmp(vocab.model, "gemma4") == 0)
        written = rebuild_find_added(&vocab, error);
    written = written && file->write(&vocab, out, error);
    arena_free(vocab.arena);
    return written;
}
