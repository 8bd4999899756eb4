/* The tokenizer of a merge: the donor's files, or, for a vocabulary of its own, files with the tokens of the result. */
#include "models/derive/recipe_merging.h"

#include "formats/documents.h"
#include "models/facts.h"
#include "models/tokenizers/rebuild.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

/* The files that mergekit copies, unchanged, if the recipe says nothing of tokenizers. */
static const char *const copied[] = {
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "added_tokens.json",
    "merges.txt",
    "vocab.json",
    "chat_template.jinja",
    "generation_config.json",
    "chat_template.json",
    "video_preprocessor_config.json",
};

static const char json_name[] = "tokenizer.json", config_name[] = "tokenizer_config.json";
static const char template_name[] = "chat_template.jinja";

static bool share_file(const struct recipe_merge *merge, const struct checkpoint *from, const char *name)
{
    const struct side_file *file = checkpoint_side_file(from, name);
    if (file != NULL)
        checkpoint_share_side_file(merge->merged, file);
    return file != NULL;
}

void recipe_add_text(const struct recipe_merge *merge, const char *name, const struct buffer *text)
{
    checkpoint_add_side_file(merge->merged, name,
                             source_of_text(merge->from->sources[0], name, (const char *)text->bytes, text->length));
}

/* Adds the tokenizer that a GGUF has in its keys. */
static bool add_rebuilt(const struct recipe_merge *merge, const struct recipe_input *donor)
{
    const struct gguf_kvs *kvs = &donor->checkpoint->metadata;
    bool good = true;
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL && good; file++) {
        struct buffer text = {0};
        bool is_made = rebuilt_file_applies(file, kvs) && rebuilt_file_refusal(file, kvs, merge->merged->arena) == NULL;
        good = !is_made || rebuilt_file_write(file, kvs, &text, merge->error);
        if (is_made && good)
            recipe_add_text(merge, file->name, &text);
        buffer_free(&text);
    }
    return good || error_prefix(merge->error, "the tokenizer of '%.200s'", donor->named->text);
}

/* Files with the tokens of the result. */

static int recipe_tokenizer_compare_ids(const void *a, const void *b)
{
    const struct recipe_token_entry *x = *(const struct recipe_token_entry *const *)a;
    const struct recipe_token_entry *y = *(const struct recipe_token_entry *const *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Returns the added tokens of the result, sorted by id, for free(). */
static const struct recipe_token_entry **added_tokens(const struct recipe_merge *merge, size_t *ret_count)
{
    const struct recipe_tokens *tokens = recipe_result_tokens(merge);
    const struct recipe_token_entry **added = memory_alloc((tokens->count + 1) * sizeof *added);
    *ret_count = 0;
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->items[i].is_added)
            added[(*ret_count)++] = &tokens->items[i];
    qsort(added, *ret_count, sizeof *added, recipe_tokenizer_compare_ids);
    return added;
}

/* Puts a token as tokenizer.json lists added ones, with the flags of its model. */
static void put_token(struct json_writer *writer, const struct recipe_token_entry *token)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
    json_begin_object(writer, NULL);
    json_put_number(writer, "id", token->id);
    json_put_text_n(writer, "content", token->text, token->length);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        json_put_bool(writer, flags[i], json_bool(json_get(token->flags, flags[i]), false));
    json_end(writer);
}

static bool put_added(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    size_t count;
    if (depth != 1 || strcmp(member->key, "added_tokens") != 0)
        return false;
    const struct recipe_token_entry **added = added_tokens(*(const struct recipe_merge **)context, &count);
    json_begin_array(writer, "added_tokens");
    for (size_t i = 0; i < count; i++)
        put_token(writer, added[i]);
    json_end(writer);
    free(added);
    return true;
}

/* Leaves out the members of tokenizer_config.json that other files of the result have. */
static bool leave_out(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    const struct recipe_merge *merge = *(const struct recipe_merge **)context;
    if (depth != 1)
        return false;
    return (strcmp(member->key, "added_tokens_decoder") == 0 && merge->vocabulary != NULL) ||
           (strcmp(member->key, "chat_template") == 0 && merge->recipe->chat_template != NULL);
}

/* Adds an edited JSON file of the donor, if it has one. */
static bool add_edited(const struct recipe_merge *merge, const struct recipe_input *donor, const char *name,
                       json_edit *edit, bool *ret_added)
{
    struct document *document;
    struct buffer out = {0};
    if (!document_open(donor->checkpoint, name, &document, merge->error))
        return error_prefix(merge->error, "model '%.200s'", donor->named->text);
    *ret_added = document != NULL;
    if (document != NULL) {
        struct json_writer writer = {.out = &out, .letters = JSON_UTF8};
        json_put_edited(&writer, document_root(document), edit, &merge);
        recipe_add_text(merge, name, &out);
    }
    buffer_free(&out);
    document_close(document);
    return true;
}

/* Adds added_tokens.json, for a tokenizer of pieces alone. */
static void add_added_tokens(const struct recipe_merge *merge)
{
    size_t count;
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_UTF8};
    const struct recipe_token_entry **added = added_tokens(merge, &count);
    json_begin_object(&writer, NULL);
    for (size_t i = 0; i < count; i++) {
        json_put_key(&writer, added[i]->text, added[i]->length);
        json_put_number(&writer, NULL, added[i]->id);
    }
    json_end(&writer);
    recipe_add_text(merge, "added_tokens.json", &out);
    buffer_free(&out);
    free(added);
}

/* Adds the tokenizer of a vocabulary that the recipe asks for. */
static bool add_own(const struct recipe_merge *merge, const struct recipe_input *donor)
{
    bool has_json, has_config;
    if (facts_of(donor->checkpoint).keys != NULL)
        return error_set(merge->error, "a tokenizer made from that of a GGUF ('%.200s') is not supported",
                         donor->named->text);
    if (!add_edited(merge, donor, json_name, put_added, &has_json) ||
        !add_edited(merge, donor, config_name, leave_out, &has_config))
        return false;
    if (!has_json && share_file(merge, donor->checkpoint, "tokenizer.model"))
        add_added_tokens(merge);
    share_file(merge, donor->checkpoint, "special_tokens_map.json");
    return true;
}

/* Chat templates. */

/* Returns a model's chat template, for free(); NULL: it has none. */
static char *template_of(const struct recipe_input *input)
{
    struct error unused;
    struct document *document = NULL;
    size_t length;
    bool is_absent;
    char *text = document_text(input->checkpoint, template_name, &length, &is_absent, &unused);
    if (text == NULL && document_open(input->checkpoint, config_name, &document, &unused)) {
        const char *own = json_string(json_get(document_root(document), "chat_template"), &length);
        text = own != NULL ? memory_strndup(own, length) : NULL;
    }
    document_close(document);
    return text;
}

/* Returns the text without blanks at its ends, in place. */
static const char *stripped(char *text)
{
    static const char blanks[] = " \t\r\n\v\f";
    text += strspn(text, blanks);
    for (size_t length = strlen(text); length > 0 && strchr(blanks, text[length - 1]) != NULL; length--)
        text[length - 1] = '\0';
    return text;
}

/* Returns the most frequent template of the models, the first of equals, in the arena; NULL: there is none. */
static const char *most_frequent_template(const struct recipe_merge *merge)
{
    struct arena *arena = merge->merged->arena;
    size_t n_models = merge->recipe->n_models, most = 0;
    const char **texts = arena_array(arena, n_models, sizeof *texts), *found = NULL;
    for (size_t i = 0; i < n_models; i++) {
        char *text = template_of(&merge->inputs[i]);
        texts[i] = text != NULL ? arena_strdup(arena, stripped(text)) : NULL;
        free(text);
    }
    for (size_t i = 0; i < n_models; i++) {
        size_t count = 0;
        for (size_t j = 0; j < n_models && texts[i] != NULL; j++)
            count += texts[j] != NULL && strcmp(texts[i], texts[j]) == 0;
        if (count > most) {
            most = count;
            found = texts[i];
        }
    }
    return found;
}

static void add_template(const struct recipe_merge *merge)
{
    const char *text = merge->recipe->chat_template;
    struct buffer out = {0};
    if (text != NULL && strcmp(text, "auto") == 0)
        text = most_frequent_template(merge);
    if (text == NULL)
        return;
    buffer_append_text(&out, text);
    recipe_add_text(merge, template_name, &out);
    buffer_free(&out);
}

bool recipe_add_tokenizer(const struct recipe_merge *merge)
{
    const struct recipe *recipe = merge->recipe;
    const struct recipe_input *donor = merge->donor;
    bool has_template = recipe->chat_template != NULL, unused;
    if (recipe->vocabulary == VOCABULARY_OF_MODEL)
        donor = &merge->inputs[recipe->vocabulary_model];
    if (merge->vocabulary != NULL) {
        if (!add_own(merge, donor))
            return false;
    } else if (facts_of(donor->checkpoint).keys != NULL) {
        if (!add_rebuilt(merge, donor))
            return false;
    } else {
        for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
            bool is_replaced = has_template && (copied[i] == template_name || strcmp(copied[i], template_name) == 0 ||
                                                strcmp(copied[i], config_name) == 0);
            if (!is_replaced)
                share_file(merge, donor->checkpoint, copied[i]);
        }
        if (has_template && !add_edited(merge, donor, config_name, leave_out, &unused))
            return false;
    }
    if (has_template)
        add_template(merge);
    else if (merge->vocabulary != NULL)
        share_file(merge, donor->checkpoint, template_name);
    return true;
}

/* Adds a token. One that the model has, too, keeps its id and becomes an added token. */
static bool add(struct recipe_tokens *tokens, const struct recipe_token_entry *entry, struct error *error)
{
    size_t place;
    if (text_index_find(&tokens->index, entry->text, entry->length, &place)) {
        struct recipe_token_entry *known = &tokens->items[place];
        known->is_added |= entry->is_added;
        known->flags = entry->flags != NULL ? entry->flags : known->flags;
        return true;
    }
    if (entry->id >= TOKEN_LIST_MAX || tokens->count == TOKEN_LIST_MAX)
        return error_set(error, "a token has the id %llu, the limit is %d", (unsigned long long)entry->id,
                         TOKEN_LIST_MAX);
    text_index_add(&tokens->index, entry->text, entry->length, tokens->count);
    tokens->items = arena_grow(tokens->arena, tokens->items, tokens->count, sizeof *entry);
    tokens->items[tokens->count++] = *entry;
    return true;
}

static bool bad_file(const char *name, struct error *error)
{
    return error_set(error, "%s: a token without a text or an id", name);
}

/* Adds the vocabulary of tokenizer.json: {token: id}, or [[token, score], ...]. */
static bool add_vocabulary(struct recipe_tokens *tokens, const struct json *vocab, struct error *error)
{
    struct recipe_token_entry entry = {0};
    for (struct json_member member = {0}; json_next_member(vocab, &member);) {
        entry.text = member.key;
        entry.length = member.key_length;
        if (!json_u64(member.value, &entry.id))
            return bad_file("tokenizer.json", error);
        if (!add(tokens, &entry, error))
            return false;
    }
    for (const struct json *piece = json_first(vocab); piece != NULL; piece = json_next(piece), entry.id++) {
        entry.text = json_string(json_first(piece), &entry.length);
        if (entry.text == NULL)
            return bad_file("tokenizer.json", error);
        if (!add(tokens, &entry, error))
            return false;
    }
    return true;
}

/* Adds the added tokens of tokenizer.json, tokenizer_config.json and added_tokens.json. */
static bool add_added(struct recipe_tokens *tokens, struct error *error)
{
    struct recipe_token_entry entry = {.is_added = true};
    const struct json *list = json_get(tokens->files.tokenizer, "added_tokens");
    const struct json *decoder = json_get(tokens->files.config, "added_tokens_decoder");
    for (const struct json *token = json_first(list); token != NULL; token = json_next(token)) {
        entry.text = token_content(token, &entry.length);
        entry.flags = token;
        if (entry.text == NULL || !json_u64(json_get(token, "id"), &entry.id))
            return bad_file("tokenizer.json", error);
        if (!add(tokens, &entry, error))
            return false;
    }
    for (struct json_member member = {0}; json_next_member(decoder, &member);) {
        char *end;
        entry.text = token_content(member.value, &entry.length);
        entry.flags = member.value;
        entry.id = strtoull(member.key, &end, 10);
        if (entry.text == NULL || *end != '\0')
            return bad_file("tokenizer_config.json", error);
        if (!add(tokens, &entry, error))
            return false;
    }
    entry.flags = NULL;
    for (struct json_member member = {0}; json_next_member(tokens->files.added_tokens, &member);) {
        entry.text = member.key;
        entry.length = member.key_length;
        if (!json_u64(member.value, &entry.id))
            return bad_file("added_tokens.json", error);
        if (!add(tokens, &entry, error))
            return false;
    }
    return true;
}

static bool add_pieces(struct recipe_tokens *tokens, const struct checkpoint *checkpoint, struct error *error)
{
    enum vocab_result found = sentencepiece_load(checkpoint, "tokenizer.model", &tokens->pieces, error);
    if (found == VOCAB_ABSENT)
        return error_set(error, "no tokenizer.json or tokenizer.model, which the recipe's tokenizer needs");
    for (size_t i = 0; found == VOCAB_ADDED && i < tokens->pieces->n_pieces; i++) {
        const ProtobufCBinaryData *text = &tokens->pieces->pieces[i]->piece;
        const char *bytes = text->len > 0 ? (const char *)text->data : "";
        const struct recipe_token_entry entry = {.text = bytes, .length = text->len, .id = i};
        if (!add(tokens, &entry, error))
            return false;
    }
    return found == VOCAB_ADDED;
}

/* Adds the tokens in a GGUF's keys. */
static bool add_keys(struct recipe_tokens *tokens, const struct checkpoint *checkpoint, struct error *error)
{
    struct gguf_array texts;
    if (!gguf_get_array(&checkpoint->metadata, "tokenizer.ggml.tokens", tokens->arena, &texts, error))
        return false;
    for (uint64_t i = 0; i < texts.count; i++) {
        struct recipe_token_entry entry = {.id = i};
        entry.text = gguf_array_string(&texts, i, &entry.length);
        if (entry.text == NULL)
            return bad_file("tokenizer.ggml.tokens", error);
        entry.text = arena_strndup(tokens->arena, entry.text, entry.length);
        if (!add(tokens, &entry, error))
            return false;
    }
    return true;
}

static int recipe_tokens_compare_ids(const void *a, const void *b)
{
    const struct recipe_token_entry *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts the tokens by id, and finds them again. */
static void sort(struct recipe_tokens *tokens)
{
    if (tokens->count > 0)
        qsort(tokens->items, tokens->count, sizeof *tokens->items, recipe_tokens_compare_ids);
    for (size_t i = 0; i < tokens->count; i++)
        text_index_set(&tokens->index, tokens->items[i].text, tokens->items[i].length, i);
}

bool recipe_tokens_read(const struct checkpoint *checkpoint, struct recipe_tokens *ret_tokens, struct error *error)
{
    struct recipe_tokens *tokens = ret_tokens;
    *tokens = (struct recipe_tokens){.arena = arena_new()};
    bool is_gguf = facts_of(checkpoint).keys != NULL, is_read;
    if (!is_gguf && !tokenizer_files_load(checkpoint, &tokens->files, error))
        return false;
    const struct json *vocab = json_get(json_get(tokens->files.tokenizer, "model"), "vocab");
    if (is_gguf)
        is_read = add_keys(tokens, checkpoint, error);
    else if (vocab != NULL)
        is_read = add_vocabulary(tokens, vocab, error);
    else
        is_read = add_pieces(tokens, checkpoint, error);
    is_read = is_read && add_added(tokens, error);
    sort(tokens);
    return is_read;
}

void recipe_tokens_free(struct recipe_tokens *tokens)
{
    text_index_free(&tokens->index);
    tokenizer_files_free(&tokens->files);
    sentencepiece_free(tokens->pieces);
    arena_free(tokens->arena);
}

const struct recipe_token_entry *recipe_tokens_find(const struct recipe_tokens *tokens, const char *text, size_t length)
{
    size_t place;
    return text_index_find(&tokens->index, text, length, &place) ? &tokens->items[place] : NULL;
}
