/* The vocabulary that a recipe asks for: tokenizer_source, tokenizer, chat_template. */
#include "models/recipes/parsing.h"

#include "base/text_index.h"

#include <string.h>

enum { MAX_TOKENS = 65536, MAX_PADDING = 1 << 20 };

/* mergekit's built-in template of that name, whose markup is public; it has others, whose texts are its own. */
static const char chatml[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static bool read_source(struct parsing *parsing, const struct yaml_value *value)
{
    struct recipe *recipe = parsing->recipe;
    bool is_text = value->type == YAML_STRING;
    recipe->vocabulary = VOCABULARY_OF_MODEL;
    if (is_text && strcmp(value->text, "union") == 0)
        recipe->vocabulary = VOCABULARY_UNION;
    else if (is_text && strcmp(value->text, "base") == 0)
        recipe->vocabulary = VOCABULARY_OF_BASE;
    else
        return parsing_model(parsing, value, &recipe->vocabulary_model);
    return recipe->vocabulary == VOCABULARY_UNION || recipe->base != NO_MODEL ||
           parsing_fail(parsing, value, "the tokenizer of the base needs a base_model");
}

/* Reads {kind, model, token, token_id}. */
static bool read_token_kind(struct parsing *parsing, const struct yaml_value *value, struct recipe_token *token)
{
    static const char *const keys[] = {"kind", "model", "token", "token_id", NULL};
    const struct yaml_value *kind = parsing_get(value, "kind"), *model = parsing_get(value, "model");
    const struct yaml_value *other = parsing_get(value, "token"), *id = parsing_get(value, "token_id");
    uint64_t number = 0;
    if (!parsing_keys(parsing, value, "source", keys))
        return false;
    if (kind != NULL && kind->text != NULL && strcmp(kind->text, "zero") == 0) {
        token->kind = TOKEN_ZERO;
        return true;
    }
    if (kind == NULL || kind->text == NULL || strcmp(kind->text, "model_token") != 0)
        return parsing_fail(parsing, value, "source: 'kind' is neither model_token nor zero");
    if (model == NULL || (other == NULL) == (id == NULL))
        return parsing_fail(parsing, value, "source: expected 'model' and one of 'token' and 'token_id'");
    if (id != NULL && !parsing_count(parsing, id, "token_id", INT32_MAX, &number))
        return false;
    token->kind = TOKEN_OF_MODEL;
    token->other_id = id != NULL ? (int64_t)number : -1;
    token->other = other != NULL ? parsing_text(parsing, other, "token") : NULL;
    return (other == NULL || token->other != NULL) && parsing_model(parsing, model, &token->model);
}

static bool read_token(struct parsing *parsing, const struct yaml_pair *pair, struct recipe_token *token)
{
    static const char *const keys[] = {"source", "force", NULL};
    const struct yaml_value *value = pair->value;
    double force = 0;
    token->text = parsing_text(parsing, pair->key, "tokens");
    token->other_id = -1;
    if (token->text == NULL || !parsing_keys(parsing, value, "tokens", keys))
        return false;
    const struct yaml_value *source = parsing_get(value, "source"), *forced = parsing_get(value, "force");
    if (forced != NULL && !parsing_truth(parsing, forced, "force", &force))
        return false;
    token->force = force != 0;
    if (source == NULL)
        return true;
    if (source->type == YAML_MAPPING && parsing_get(source, "kind") != NULL)
        return read_token_kind(parsing, source, token);
    token->kind = TOKEN_OF_MODEL;
    return parsing_model(parsing, source, &token->model);
}

static bool read_tokens(struct parsing *parsing, const struct yaml_value *value)
{
    struct text_index seen = {0};
    bool is_read = value->type == YAML_MAPPING || parsing_fail(parsing, value, "tokens: expected a mapping");
    if (is_read && value->n_pairs > MAX_TOKENS)
        is_read = parsing_fail(parsing, value, "tokens: more than %d", MAX_TOKENS);
    struct recipe_token *tokens = arena_array(parsing->arena, is_read ? value->n_pairs : 0, sizeof *tokens);
    for (size_t i = 0; is_read && i < value->n_pairs; i++) {
        is_read = read_token(parsing, &value->pairs[i], &tokens[i]);
        if (is_read && !text_index_add(&seen, tokens[i].text, strlen(tokens[i].text), i))
            is_read = parsing_fail(parsing, value->pairs[i].key, "tokens: '%.100s' is there twice", tokens[i].text);
    }
    text_index_free(&seen);
    parsing->recipe->tokens = tokens;
    parsing->recipe->n_tokens = is_read ? value->n_pairs : 0;
    return is_read;
}

static bool read_tokenizer(struct parsing *parsing, const struct yaml_value *value)
{
    static const char *const keys[] = {"source", "tokens", "pad_to_multiple_of", NULL};
    struct recipe *recipe = parsing->recipe;
    if (!parsing_keys(parsing, value, "tokenizer", keys))
        return false;
    const struct yaml_value *source = parsing_get(value, "source"), *tokens = parsing_get(value, "tokens");
    const struct yaml_value *padding = parsing_get(value, "pad_to_multiple_of");
    recipe->vocabulary = VOCABULARY_UNION;
    return (source == NULL || read_source(parsing, source)) && (tokens == NULL || read_tokens(parsing, tokens)) &&
           (padding == NULL ||
            parsing_count(parsing, padding, "pad_to_multiple_of", MAX_PADDING, &recipe->pad_to_multiple_of));
}

static bool read_template(struct parsing *parsing, const struct yaml_value *value)
{
    enum { SHORTEST_TEMPLATE = 20 };
    const char *text = parsing_text(parsing, value, "chat_template");
    if (text == NULL)
        return false;
    bool is_template = strlen(text) >= SHORTEST_TEMPLATE && strchr(text, '{') != NULL;
    parsing->recipe->chat_template = strcmp(text, "chatml") == 0 ? chatml : text;
    return is_template || strcmp(text, "chatml") == 0 || strcmp(text, "auto") == 0 ||
           parsing_fail(parsing, value, "chat_template: '%.40s' is neither auto, chatml nor the text of a template",
                        text);
}

bool parsing_tokenizer(struct parsing *parsing, const struct yaml_value *root)
{
    const struct yaml_value *source = parsing_get(root, "tokenizer_source"), *whole = parsing_get(root, "tokenizer");
    const struct yaml_value *template = parsing_get(root, "chat_template");
    if (source != NULL && whole != NULL)
        return parsing_fail(parsing, source, "expected one of 'tokenizer' and 'tokenizer_source'");
    return (source == NULL || read_source(parsing, source)) && (whole == NULL || read_tokenizer(parsing, whole)) &&
           (template == NULL || read_template(parsing, template));
}
