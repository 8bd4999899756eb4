#include "fs/http/viewer.h"

#include "base/text.h"
#include "formats/gguf/kv.h"
#include "fs/http/html.h"
#include "models/facts.h"
#include "models/family/gguf_model.h"
#include "models/tokenizers/token_list.h"
#include "products/product.h"

#include <inttypes.h>
#include <string.h>

enum { TOKENS_OF_PAGE = 500, MOST_ELEMENTS = 8 };

static const char prefix[] = "tokenizer.", tokens_key[] = "tokenizer.ggml.tokens";

struct vocabulary {
    struct gguf_array tokens, types, scores; /* those that are not there have no elements */
};

const struct gguf_kvs *viewer_tokenizer(const struct repository *model)
{
    const struct facts facts = facts_of(tree_checkpoint(model->tree));
    const struct gguf_edition *edition =
        facts.keys == NULL ? tree_object(model->tree, &gguf_product, OBJECT_WHOLE) : NULL;
    const struct gguf_kvs *keys = edition != NULL ? &edition->model->kvs : facts.keys;
    return keys != NULL && gguf_kvs_find(keys, tokens_key) != NULL ? keys : NULL;
}

static void put_key(struct buffer *out, const struct gguf_kv *key)
{
    struct buffer value = {0};
    gguf_append_text(&value, key, MOST_ELEMENTS);
    buffer_append_text(out, "<tr><td>");
    html_put_text(out, key->key);
    buffer_append_text(out, "</td><td>");
    html_put_text_n(out, (const char *)value.bytes, value.length);
    buffer_append_text(out, "</td></tr>\n");
    buffer_free(&value);
}

static bool is_template(const char *key)
{
    return text_starts_with(key, "tokenizer.chat_template");
}

static void put_keys(struct buffer *out, const struct gguf_kvs *keys)
{
    buffer_append_text(out, "<table>\n");
    for (size_t i = 0; i < keys->n_kvs; i++)
        if (text_starts_with(keys->kvs[i].key, prefix) && !is_template(keys->kvs[i].key))
            put_key(out, &keys->kvs[i]);
    buffer_append_text(out, "</table>\n");
}

static void put_templates(struct buffer *out, const struct gguf_kvs *keys, struct arena *arena)
{
    for (size_t i = 0; i < keys->n_kvs; i++) {
        const char *key = keys->kvs[i].key, *text = is_template(key) ? gguf_get_text(keys, key, arena) : NULL;
        if (text == NULL)
            continue;
        buffer_append_text(out, "<details><summary>");
        html_put_text(out, key);
        buffer_append_text(out, "</summary>");
        html_put_lines(out, text, strlen(text));
        buffer_append_text(out, "</details>\n");
    }
}

static const char *type_name(const struct vocabulary *vocabulary, uint64_t id)
{
    static const char *const names[] = {
        [TOKEN_NORMAL] = "normal",   [TOKEN_UNKNOWN] = "unknown",
        [TOKEN_CONTROL] = "control", [TOKEN_USER_DEFINED] = "user-defined",
        [TOKEN_UNUSED] = "unused",   [TOKEN_BYTE] = "byte",
    };
    uint64_t type;
    bool is_known = id < vocabulary->types.count && gguf_array_u64(&vocabulary->types, id, &type) &&
                    type >= TOKEN_NORMAL && type <= TOKEN_BYTE;
    return is_known ? names[type] : "";
}

static void put_token(struct buffer *out, const struct vocabulary *vocabulary, uint64_t id, const char *text,
                      size_t length)
{
    double score;
    buffer_printf(out, "<tr><td class=\"n\">%" PRIu64 "</td><td><code>", id);
    html_put_text_n(out, text, length);
    buffer_printf(out, "</code></td><td>%s</td>", type_name(vocabulary, id));
    if (id < vocabulary->scores.count && gguf_array_f64(&vocabulary->scores, id, &score))
        buffer_printf(out, "<td class=\"n\">%.9g</td>", score);
    buffer_append_text(out, "</tr>\n");
}

static void put_tokens(struct buffer *out, const struct vocabulary *vocabulary, const char *text, uint64_t first)
{
    uint64_t n_found = 0;
    buffer_printf(out, "<h2 id=\"tokens\">Tokens: %" PRIu64 "</h2>\n", vocabulary->tokens.count);
    viewer_put_filter(out, "tokenizer", text);
    buffer_append_text(out, "<table class=\"sort\"><tr><th class=\"n\">id</th><th>token</th><th>type</th>");
    buffer_append_text(out, vocabulary->scores.count > 0 ? "<th class=\"n\">score</th></tr>\n" : "</tr>\n");
    for (uint64_t id = 0; id < vocabulary->tokens.count; id++) {
        size_t length;
        const char *token = gguf_array_string(&vocabulary->tokens, id, &length);
        if (token == NULL || memmem(token, length, text, strlen(text)) == NULL)
            continue;
        if (n_found >= first && n_found - first < TOKENS_OF_PAGE)
            put_token(out, vocabulary, id, token, length);
        n_found++;
    }
    buffer_append_text(out, "</table>\n");
    viewer_put_next(out, "tokenizer", text, &(struct viewer_page){first, TOKENS_OF_PAGE, n_found});
}

void viewer_answer_tokenizer(const struct repository *model, const char *text, uint64_t first, struct answer *answer)
{
    const struct gguf_kvs *keys = viewer_tokenizer(model);
    struct vocabulary vocabulary = {.tokens.count = 0};
    struct error error, unused;
    if (keys == NULL) {
        answer_fail(answer, 404, "EntryNotFound", "%s has no tokenizer that wfs knows", model->base);
        return;
    }
    if (!gguf_get_array(keys, tokens_key, answer->arena, &vocabulary.tokens, &error)) {
        answer_fail(answer, 500, "ServerError", "%s", error.message);
        return;
    }
    gguf_get_array(keys, "tokenizer.ggml.token_type", answer->arena, &vocabulary.types, &unused);
    gguf_get_array(keys, "tokenizer.ggml.scores", answer->arena, &vocabulary.scores, &unused);
    struct buffer *out = html_begin(answer, "Tokenizer");
    buffer_append_text(out, "<p>The tokenizer of <a href=\"?\">");
    html_put_text(out, model->base);
    buffer_append_text(out, "</a>, as its GGUF has it.</p>\n");
    put_keys(out, keys);
    put_templates(out, keys, answer->arena);
    put_tokens(out, &vocabulary, text, first);
    html_end(out);
}
