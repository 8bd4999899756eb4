#include "models/tokenizers/hf_vocabulary.h"

#include "base/text.h"
#include "models/tokenizers/byte_alphabet.h"
#include "models/tokenizers/hf_kind.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const special_attributes[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                 "pad_token", "cls_token", "mask_token"};
enum { ATTRIBUTES = sizeof special_attributes / sizeof *special_attributes };

/* Lists of further special tokens, or of named tokens that only some models have: {"image_token": "<image>"}.
 * Transformers 5 has a list where earlier versions have names. */
static const char *const special_lists[] = {"additional_special_tokens", "extra_special_tokens"};
enum { SPECIAL_LISTS = sizeof special_lists / sizeof *special_lists };

/* A tokenizer class's default special tokens, in the order of special_attributes.
 */
static const struct class_defaults {
    const char *class_name;
    const char *tokens[ATTRIBUTES];
} class_defaults[] = {
    {"GPT2Tokenizer", {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}},
    {"Qwen2Tokenizer", {NULL, "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>"}},
    {"GPTNeoXTokenizer", {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}},
    {"CodeGenTokenizer", {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}},
    {"LlamaTokenizer", {"<s>", "</s>", "<unk>"}},
    {"CodeLlamaTokenizer", {"<s>", "</s>", "<unk>"}},
    {"GemmaTokenizer", {"<bos>", "<eos>", "<unk>", NULL, "<pad>"}},
    {"BloomTokenizer", {"<s>", "</s>", "<unk>", NULL, "<pad>"}},
    {"CohereTokenizer", {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>"}},
    {"BertTokenizer", {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {"DistilBertTokenizer", {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {"RobertaTokenizer", {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}},
    {"XLMRobertaTokenizer", {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}},
    {"T5Tokenizer", {NULL, "</s>", "<unk>", NULL, "<pad>"}},
};

/* The class that AutoTokenizer takes for a model type if tokenizer_config.json names none. */
static const struct {
    const char *model_type, *class_name;
} model_classes[] = {
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_bigcode", "GPT2Tokenizer"},
    {"starcoder2", "GPT2Tokenizer"},
    {"granite", "GPT2Tokenizer"},
    {"granitemoe", "GPT2Tokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"mpt", "GPTNeoXTokenizer"},
    {"stablelm", "GPTNeoXTokenizer"},
    {"olmo", "GPTNeoXTokenizer"},
    {"olmo2", "GPTNeoXTokenizer"},
    {"olmoe", "GPTNeoXTokenizer"},
    {"mamba", "GPTNeoXTokenizer"},
    {"phi", "CodeGenTokenizer"},
    {"phi3", "LlamaTokenizer"},
    {"llama", "LlamaTokenizer"},
    {"mistral", "LlamaTokenizer"},
    {"mixtral", "LlamaTokenizer"},
    {"deepseek_v2", "LlamaTokenizer"},
    {"deepseek_v3", "LlamaTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"bloom", "BloomTokenizer"},
    {"cohere", "CohereTokenizer"},
    {"bert", "BertTokenizer"},
    {"distilbert", "DistilBertTokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
    {"t5", "T5Tokenizer"},
};

static const char *class_of(const struct vocab_input *input, const struct json *config, struct arena *arena)
{
    size_t length;
    const char *name = json_string(json_get(config, "tokenizer_class"), &length);
    if (name != NULL) {
        if (length > 4 && memcmp(name + length - 4, "Fast", 4) == 0)
            length -= 4;
        return arena_strndup(arena, name, length);
    }
    for (size_t i = 0; i < sizeof model_classes / sizeof *model_classes; i++)
        if (json_string_is(hparams_get(input->owner, "model_type"), model_classes[i].model_type))
            return model_classes[i].class_name;
    return "PreTrainedTokenizer";
}

/* Parses vocab.txt, a token a line, into the object that tokenizer.json would have. */
static struct json_document *parse_lines(const char *text, size_t length, struct error *error)
{
    struct buffer object = {0};
    struct json_writer writer = {.out = &object, .letters = JSON_UTF8, .compact = true};
    uint64_t id = 0;
    json_begin_object(&writer, NULL);
    for (size_t at = 0; at < length; id++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end != NULL ? (size_t)(end - text) - at : length - at;
        size_t kept = line > 0 && text[at + line - 1] == '\r' ? line - 1 : line;
        json_put_key(&writer, text + at, kept);
        json_put_number(&writer, NULL, id);
        at += line + 1;
    }
    json_end(&writer);
    struct json_document *document = json_parse((const char *)object.bytes, object.length, error);
    buffer_free(&object);
    return document;
}

/* Loads the model's tokens without tokenizer.json: vocab.json, else vocab.txt. */
static enum vocab_result load_plain_vocab(const struct checkpoint *checkpoint, struct hf_vocabulary *vocabulary,
                                          struct error *error)
{
    if (!document_open(checkpoint, "vocab.json", &vocabulary->vocab_json, error))
        return VOCAB_FAILED;
    vocabulary->vocab = document_root(vocabulary->vocab_json);
    if (vocabulary->vocab_json != NULL)
        return VOCAB_ADDED;
    size_t length;
    bool absent;
    char *text = document_text(checkpoint, "vocab.txt", &length, &absent, error);
    if (text == NULL)
        return absent ? VOCAB_ABSENT : VOCAB_FAILED;
    vocabulary->vocab_txt = parse_lines(text, length, error);
    free(text);
    if (vocabulary->vocab_txt == NULL) {
        error_prefix(error, "vocab.txt");
        return VOCAB_FAILED;
    }
    vocabulary->vocab = json_root(vocabulary->vocab_txt);
    return VOCAB_ADDED;
}

/* Indexes a vocabulary [[token, score], ...]; the first of equal tokens counts. */
static void index_array(struct hf_vocabulary *vocabulary)
{
    size_t id = 0, length;
    for (const struct json *entry = json_first(vocabulary->vocab); entry != NULL; entry = json_next(entry), id++) {
        const char *text = json_string(json_first(entry), &length);
        if (text != NULL)
            text_index_add(&vocabulary->array_index, text, length, id);
    }
}

static bool index_model_tokens(struct hf_vocabulary *vocabulary, struct error *error)
{
    vocabulary->n_ids = json_count(vocabulary->vocab);
    vocabulary->n_model_tokens = vocabulary->next_id = vocabulary->n_ids + json_count_members(vocabulary->vocab);
    index_array(vocabulary);
    for (struct json_member token = {0}; json_next_member(vocabulary->vocab, &token);) {
        uint64_t id;
        if (!json_u64(token.value, &id) || id >= TOKEN_LIST_MAX)
            return error_set(error, "tokenizer: the id of token '%s' is not a whole number below %d", token.key,
                             TOKEN_LIST_MAX);
        vocabulary->n_ids = id >= vocabulary->n_ids ? id + 1 : vocabulary->n_ids;
    }
    return true;
}

bool hf_model_id(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t *ret_id)
{
    size_t place;
    if (json_is(vocabulary->vocab, JSON_OBJECT))
        return json_u64(json_get_n(vocabulary->vocab, text, length), ret_id);
    if (!text_index_find(&vocabulary->array_index, text, length, &place))
        return false;
    *ret_id = place;
    return true;
}

static struct added_token *find_added(const struct hf_vocabulary *vocabulary, const char *text, size_t length)
{
    size_t place;
    return text_index_find(&vocabulary->added_index, text, length, &place) ? &vocabulary->added[place] : NULL;
}

const struct added_token *hf_added_token(const struct hf_vocabulary *vocabulary, const char *text, size_t length)
{
    return find_added(vocabulary, text, length);
}

bool hf_token_id(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t *ret_id)
{
    const struct added_token *added = find_added(vocabulary, text, length);
    if (added == NULL)
        return hf_model_id(vocabulary, text, length, ret_id);
    *ret_id = added->id;
    return true;
}

/* Adds a token, or replaces the flags of an existing one. */
static void add_token(struct hf_vocabulary *vocabulary, const struct added_token *token)
{
    struct added_token *there = find_added(vocabulary, token->text, token->length);
    if (token->length == 0)
        return;
    if (there != NULL) {
        uint64_t id = there->id;
        *there = *token;
        there->id = id;
        return;
    }
    vocabulary->added = memory_grow(vocabulary->added, vocabulary->n_added, sizeof *vocabulary->added);
    struct added_token *added = &vocabulary->added[vocabulary->n_added];
    *added = *token;
    if (!hf_model_id(vocabulary, token->text, token->length, &added->id))
        added->id = vocabulary->next_id;
    text_index_add(&vocabulary->added_index, added->text, added->length, vocabulary->n_added++);
    vocabulary->next_id = added->id >= vocabulary->next_id ? added->id + 1 : vocabulary->next_id;
    vocabulary->n_ids = added->id >= vocabulary->n_ids ? added->id + 1 : vocabulary->n_ids;
}

/* Reads the text and flags of a token given as an object; `normalized` defaults to not `special`. */
static struct added_token read_token(const struct json *token, bool always_special)
{
    struct added_token added = {0};
    added.text = token_content(token, &added.length);
    added.special = always_special || json_bool(json_get(token, "special"), false);
    added.normalized = json_bool(json_get(token, "normalized"), !added.special);
    added.left_strip = json_bool(json_get(token, "lstrip"), false);
    added.right_strip = json_bool(json_get(token, "rstrip"), false);
    added.single_word = json_bool(json_get(token, "single_word"), false);
    return added;
}

static void add_all(struct hf_vocabulary *vocabulary, const struct json *tokens)
{
    for (const struct json *token = json_first(tokens); token != NULL; token = json_next(token)) {
        struct added_token added = read_token(token, false);
        if (added.text != NULL)
            add_token(vocabulary, &added);
    }
}

/* Returns the special token of an attribute as the files give it, an object or a string; NULL: none. */
static const struct json *named_token(const struct tokenizer_files *files, const char *attribute)
{
    const struct json *token = json_get(files->config, attribute);
    bool legacy = json_get(files->config, "added_tokens_decoder") == NULL;
    if (legacy && json_get(files->special_map, attribute) != NULL)
        token = json_get(files->special_map, attribute);
    return token;
}

static const char *default_token(const struct hf_vocabulary *vocabulary, size_t attribute)
{
    for (size_t i = 0; i < sizeof class_defaults / sizeof *class_defaults; i++)
        if (strcmp(class_defaults[i].class_name, vocabulary->class_name) == 0)
            return class_defaults[i].tokens[attribute];
    return NULL;
}

const char *hf_special_token(const struct hf_vocabulary *vocabulary, const char *attribute, size_t *ret_length)
{
    const struct json *token = named_token(vocabulary->files, attribute);
    if (token != NULL)
        return token_content(token, ret_length);
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (strcmp(special_attributes[i], attribute) == 0) {
            const char *text = default_token(vocabulary, i);
            *ret_length = text != NULL ? strlen(text) : 0;
            return text;
        }
    return NULL;
}

/* Returns the special tokens of a list: ["<image>"], or named ones, {"image_token": "<image>"}. A list of transformers
 * 5 replaces additional_special_tokens. */
static const struct json **listed_tokens(const struct hf_vocabulary *vocabulary, const char *name, size_t *ret_count)
{
    const struct json *list = named_token(vocabulary->files, name);
    if (strcmp(name, special_lists[0]) == 0 && json_count(named_token(vocabulary->files, special_lists[1])) > 0)
        list = NULL;
    size_t most = json_count(list) + json_count_members(list);
    const struct json **tokens = arena_array(vocabulary->arena, most + 1, sizeof *tokens);
    *ret_count = 0;
    for (const struct json *token = json_first(list); token != NULL; token = json_next(token))
        tokens[(*ret_count)++] = token;
    for (struct json_member token = {0}; json_next_member(list, &token);)
        tokens[(*ret_count)++] = token.value;
    return tokens;
}

void hf_index_named_specials(const struct hf_vocabulary *vocabulary, struct text_index *specials)
{
    size_t length;
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        const char *text = hf_special_token(vocabulary, special_attributes[i], &length);
        if (text != NULL)
            text_index_add(specials, text, length, i);
    }
    for (size_t i = 0; i < SPECIAL_LISTS; i++) {
        size_t n_tokens;
        const struct json **tokens = listed_tokens(vocabulary, special_lists[i], &n_tokens);
        for (size_t j = 0; j < n_tokens; j++) {
            const char *text = token_content(tokens[j], &length);
            if (text != NULL)
                text_index_add(specials, text, length, ATTRIBUTES);
        }
    }
}

static int compare_ids(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Added tokens of the files; `tokens` has room for all. Tokens in `specials` are special. */
struct collection {
    struct text_index specials;
    struct added_token *tokens;
    size_t n_tokens;
};

static bool is_special(const struct collection *collection, const char *text, size_t length)
{
    size_t number;
    return text_index_find(&collection->specials, text, length, &number);
}

static void collect(struct collection *collection, struct added_token added)
{
    added.special |= is_special(collection, added.text, added.length);
    added.rank = collection->n_tokens;
    collection->tokens[collection->n_tokens++] = added;
}

/* Collects the tokens of added_tokens_decoder: {"3": {"content": "<pad>"}}. */
static void collect_decoder(struct collection *collection, const struct json *decoder)
{
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        struct added_token added = read_token(token.value, false);
        added.id = strtoull(token.key, NULL, 10);
        if (added.text != NULL)
            collect(collection, added);
    }
}

/* Collects the tokens of added_tokens.json: {"<pad>": 3}. */
static void collect_legacy(struct collection *collection, const struct json *added_tokens)
{
    for (struct json_member token = {0}; json_next_member(added_tokens, &token);) {
        struct added_token added = {.text = token.key, .length = token.key_length};
        added.normalized = !is_special(collection, added.text, added.length);
        if (json_u64(token.value, &added.id))
            collect(collection, added);
    }
}

/* Collects the tokens of tokenizer.json's added_tokens: {"id": 3, "content": "<pad>"}. */
static void collect_serialized(struct collection *collection, const struct json *tokens)
{
    for (const struct json *token = json_first(tokens); token != NULL; token = json_next(token)) {
        struct added_token added = read_token(token, false);
        if (added.text != NULL && json_u64(json_get(token, "id"), &added.id))
            collect(collection, added);
    }
}

/* Adds tokenizer_config.json's added_tokens_decoder, by id. Older files lack it: then added_tokens.json, and
 * tokenizer.json's own tokens once more, which win if both have an id. */
static void add_decoder_tokens(struct hf_vocabulary *vocabulary)
{
    const struct tokenizer_files *files = vocabulary->files;
    const struct json *decoder = json_get(files->config, "added_tokens_decoder");
    const struct json *serialized = json_get(files->tokenizer, "added_tokens");
    size_t most = json_count_members(decoder) + json_count_members(files->added_tokens) + json_count(serialized);
    struct collection collection = {.tokens = arena_array(vocabulary->arena, most + 1, sizeof *collection.tokens)};
    hf_index_named_specials(vocabulary, &collection.specials);
    if (decoder != NULL) {
        collect_decoder(&collection, decoder);
    } else {
        collect_legacy(&collection, files->added_tokens);
        collect_serialized(&collection, serialized);
    }
    text_index_free(&collection.specials);
    const struct added_token *sorted = collection.tokens;
    qsort(collection.tokens, collection.n_tokens, sizeof *sorted, compare_ids);
    for (size_t i = 0; i < collection.n_tokens; i++)
        if (i + 1 == collection.n_tokens || sorted[i + 1].id != sorted[i].id)
            add_token(vocabulary, &sorted[i]);
}

/* Reports whether added_tokens_decoder has a token of that text, whose flags then count; true without
 * added_tokens_decoder. */
static bool has_decoder_token(const struct hf_vocabulary *vocabulary, const char *text, size_t length)
{
    const struct json *decoder = json_get(vocabulary->files->config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        size_t token_length;
        const char *content = token_content(token.value, &token_length);
        if (content != NULL && token_length == length && memcmp(content, text, length) == 0)
            return true;
    }
    return decoder == NULL;
}

/* Adds a special token: one given as a string only if it is new, one given as an object with its own flags. */
static void add_special(struct hf_vocabulary *vocabulary, const struct json *token, const char *text, size_t length)
{
    bool is_object = json_is(token, JSON_OBJECT);
    if (text == NULL || (!is_object && find_added(vocabulary, text, length) != NULL))
        return;
    struct added_token added = {.text = text, .length = length, .special = true};
    if (is_object)
        added = read_token(token, true);
    add_token(vocabulary, &added);
}

static void add_named_specials(struct hf_vocabulary *vocabulary)
{
    size_t length, number;
    struct text_index seen = {0}; /* the first token of a text counts */
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        const char *text = hf_special_token(vocabulary, special_attributes[i], &length);
        if (text == NULL || !text_index_add(&seen, text, length, i))
            continue;
        bool is_known = find_added(vocabulary, text, length) != NULL && has_decoder_token(vocabulary, text, length);
        if (!is_known)
            add_special(vocabulary, named_token(vocabulary->files, special_attributes[i]), text, length);
    }
    for (size_t i = 0; i < SPECIAL_LISTS; i++) {
        size_t n_tokens;
        const struct json **tokens = listed_tokens(vocabulary, special_lists[i], &n_tokens);
        for (size_t j = 0; j < n_tokens; j++) {
            const char *text = token_content(tokens[j], &length);
            if (text != NULL && !text_index_find(&seen, text, length, &number))
                add_special(vocabulary, tokens[j], text, length);
        }
    }
    text_index_free(&seen);
}

static void put_end(struct json_writer *writer, const struct hf_vocabulary *vocabulary, const char *name,
                    const char *attribute)
{
    size_t length;
    uint64_t id;
    const char *text = hf_special_token(vocabulary, attribute, &length);
    if (text == NULL || !hf_token_id(vocabulary, text, length, &id))
        return;
    json_put_key(writer, name, strlen(name));
    json_put_template(writer, "[%t, %u]", text, length, id);
}

/* Makes the steps that BertConverter of transformers makes for vocab.txt. */
static bool make_steps(struct hf_vocabulary *vocabulary, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    const struct json *config = vocabulary->files->config, *strips = json_get(config, "strip_accents");
    size_t length;
    const char *unknown = hf_special_token(vocabulary, "unk_token", &length);
    json_put_template(&writer,
                      "{'normalizer': {'type': 'BertNormalizer', 'clean_text': true, 'handle_chinese_chars': %b,"
                      " 'lowercase': %b",
                      json_bool(json_get(config, "tokenize_chinese_chars"), true),
                      json_bool(json_get(config, "do_lower_case"), true));
    if (json_is(strips, JSON_TRUE) || json_is(strips, JSON_FALSE))
        json_put_bool(&writer, "strip_accents", json_is(strips, JSON_TRUE));
    json_put_template(&writer, "}, 'pre_tokenizer': {'type': 'BertPreTokenizer'}, 'model': {'type': 'WordPiece'");
    if (unknown != NULL)
        json_put_text_n(&writer, "unk_token", unknown, length);
    json_put_template(&writer, "}, 'post_processor': {'type': 'BertProcessing'");
    put_end(&writer, vocabulary, "cls", "cls_token");
    put_end(&writer, vocabulary, "sep", "sep_token");
    json_put_template(&writer, "}}");
    vocabulary->txt_steps = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    vocabulary->steps = json_root(vocabulary->txt_steps);
    vocabulary->model = json_get(vocabulary->steps, "model");
    return vocabulary->txt_steps != NULL;
}

enum vocab_result hf_vocabulary_load(const struct vocab_input *input, const struct tokenizer_files *files,
                                     struct hf_vocabulary *ret_vocabulary, struct error *error)
{
    struct hf_vocabulary vocabulary = {.arena = arena_new(), .files = files};
    enum vocab_result result = VOCAB_ADDED;
    vocabulary.class_name = class_of(input, files->config, vocabulary.arena);
    vocabulary.steps = files->tokenizer;
    vocabulary.model = json_get(files->tokenizer, "model");
    vocabulary.vocab = json_get(vocabulary.model, "vocab");
    if (files->tokenizer == NULL)
        result = load_plain_vocab(input->checkpoint, &vocabulary, error);
    else if (!json_is(vocabulary.vocab, JSON_OBJECT) && !json_is(vocabulary.vocab, JSON_ARRAY)) {
        error_set(error, "tokenizer.json: model.vocab is missing");
        result = VOCAB_FAILED;
    }
    if (result == VOCAB_ADDED && !index_model_tokens(&vocabulary, error))
        result = VOCAB_FAILED;
    if (result != VOCAB_ADDED) {
        hf_vocabulary_free(&vocabulary);
        return result;
    }
    add_all(&vocabulary, json_get(files->tokenizer, "added_tokens"));
    add_decoder_tokens(&vocabulary);
    add_named_specials(&vocabulary);
    if (vocabulary.vocab_txt != NULL && !make_steps(&vocabulary, error)) {
        hf_vocabulary_free(&vocabulary);
        return VOCAB_FAILED;
    }
    *ret_vocabulary = vocabulary;
    return VOCAB_ADDED;
}

void hf_vocabulary_free(struct hf_vocabulary *vocabulary)
{
    document_close(vocabulary->vocab_json);
    json_free(vocabulary->vocab_txt);
    json_free(vocabulary->txt_steps);
    free(vocabulary->added);
    text_index_free(&vocabulary->added_index);
    text_index_free(&vocabulary->array_index);
    arena_free(vocabulary->arena);
}

/* Reports whether one of the tokenizer's decoders turns U+2581 into a space. */
static bool decodes_blocks(const struct json *decoder, int depth)
{
    const struct json *type = json_get(decoder, "type");
    if (json_string_is(type, "Metaspace"))
        return true;
    if (json_string_is(type, "Replace"))
        return json_string_is(json_get(json_get(decoder, "pattern"), "String"), "\xe2\x96\x81");
    for (const struct json *each = json_first(json_get(decoder, "decoders")); each != NULL && depth < 8;
         each = json_next(each))
        if (decodes_blocks(each, depth + 1))
            return true;
    return false;
}

/* Reports whether the tokenizer decodes the alphabet of bytes. */
static bool decodes_bytes(const struct hf_vocabulary *vocabulary)
{
    const struct json *decoder = json_get(vocabulary->files->tokenizer, "decoder");
    if (vocabulary->files->tokenizer == NULL)
        return vocabulary->vocab_txt == NULL;
    for (const struct json *each = json_first(json_get(decoder, "decoders")); each != NULL; each = json_next(each))
        if (json_string_is(json_get(each, "type"), "ByteLevel"))
            return true;
    return json_string_is(json_get(decoder, "type"), "ByteLevel");
}

/* Returns a byte decoder's form of an added token whose characters are all in its alphabet. */
static const char *decoded_bytes(struct token_list *list, const char *text, size_t *length)
{
    unsigned char *bytes = arena_alloc(list->arena, *length + 1);
    size_t n_bytes;
    struct buffer out = {0};
    if (!byte_characters_decode(text, *length, bytes, &n_bytes))
        return text;
    text_append_valid((const char *)bytes, n_bytes, &out);
    *length = out.length;
    const char *decoded = arena_strndup(list->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return decoded;
}

/* Returns a SentencePiece decoder's form of an added token: it adds spaces and drops the first one. */
static const char *decoded(struct token_list *list, const char *text, size_t *length)
{
    const char *plain = token_plain_spaces(list, text, length);
    if (*length > 0 && *plain == ' ') {
        plain++;
        --*length;
    }
    return plain;
}

bool hf_count_fits(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, uint64_t n_tokens,
                   struct error *error)
{
    return token_count_fits(input, n_tokens, vocabulary->n_model_tokens + vocabulary->n_added, error);
}

/* Sets the tokens of a vocabulary {token: id}, or [[token, score], ...]. */
static void set_model_tokens(const struct json *vocab, struct token_list *list)
{
    uint64_t id = 0;
    size_t length;
    for (struct json_member token = {0}; json_next_member(vocab, &token);)
        if (json_u64(token.value, &id))
            token_list_set(list, id, token.key, token.key_length, 0, TOKEN_NORMAL);
    id = 0;
    for (const struct json *token = json_first(vocab); token != NULL; token = json_next(token), id++) {
        const char *text = json_string(json_first(token), &length);
        if (text != NULL)
            token_list_set(list, id, text, length, 0, TOKEN_NORMAL);
    }
}

bool hf_token_list(const struct hf_vocabulary *vocabulary, uint64_t n_tokens, struct token_list *ret_list,
                   struct error *error)
{
    if (vocabulary->n_ids > n_tokens)
        return error_set(error, "the tokenizer has ids up to %" PRIu64 ", but vocab_size is %" PRIu64,
                         vocabulary->n_ids - 1, n_tokens);
    if (!token_list_init(ret_list, n_tokens, 0, error))
        return false;
    set_model_tokens(vocabulary->vocab, ret_list);
    bool keeps = vocabulary->keeps_added,
         blocks = !keeps && decodes_blocks(json_get(vocabulary->files->tokenizer, "decoder"), 0),
         bytes = !keeps && decodes_bytes(vocabulary);
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        size_t length = added->length;
        const char *text = added->text;
        if (blocks && !added->normalized)
            text = decoded(ret_list, text, &length);
        else if (bytes && !added->normalized)
            text = decoded_bytes(ret_list, text, &length);
        bool control = added->special || (!keeps && token_looks_special(text, length));
        if (!control && !keeps)
            text = token_plain_spaces(ret_list, text, &length);
        token_list_set(ret_list, added->id, text, length, 0, control ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    return true;
}

enum vocab_result hf_vocabulary_add(struct gguf_kvs *kvs, const struct vocab_input *input,
                                    bool (*fits)(const struct json *tokenizer),
                                    bool (*write_keys)(struct gguf_kvs *kvs, const struct vocab_input *input,
                                                       const struct hf_vocabulary *vocabulary, struct error *error),
                                    struct error *error)
{
    struct tokenizer_files files;
    struct hf_vocabulary vocabulary;
    enum vocab_result result = VOCAB_ABSENT;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return VOCAB_FAILED;
    if (fits == NULL || fits(files.tokenizer))
        result = hf_vocabulary_load(input, &files, &vocabulary, error);
    if (result == VOCAB_ADDED) {
        bool is_ours = files.tokenizer != NULL && hf_is_too_new(&files);
        if ((is_ours && !hf_is_usable(&vocabulary, error)) || !write_keys(kvs, input, &vocabulary, error))
            result = VOCAB_FAILED;
        if (result == VOCAB_ADDED && is_ours)
            hf_deny_ends(kvs, &vocabulary);
        if (result == VOCAB_ADDED && files.tokenizer != NULL)
            hf_unlike_note(input, &vocabulary, kvs);
        hf_vocabulary_free(&vocabulary);
    }
    tokenizer_files_free(&files);
    return result;
}
