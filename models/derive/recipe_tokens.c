#include "models/derive/recipe_merging.h"
#include "models/facts.h"

#include <stdlib.h>
#include <string.h>

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

static int compare_ids(const void *a, const void *b)
{
    const struct recipe_token_entry *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts the tokens by id, and finds them again. */
static void sort(struct recipe_tokens *tokens)
{
    if (tokens->count > 0)
        qsort(tokens->items, tokens->count, sizeof *tokens->items, compare_ids);
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
