/* tokenizer.json of Unigram vocabularies, as T5's converter in transformers makes it. */
#include "base/base64.h"
#include "models/tokenizers/rebuild.h"

#include <math.h>
#include <stdio.h>

static void put_metaspace(const char *key, struct json_writer *writer)
{
    json_begin_object(writer, key);
    json_put_text(writer, "type", "Metaspace");
    json_put_text(writer, "replacement", "\xe2\x96\x81");
    json_put_text(writer, "prepend_scheme", "always");
    json_put_bool(writer, "split", true);
    json_end(writer);
}

static bool put_precompiled(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    struct gguf_array charsmap;
    if (gguf_kvs_find(vocab->kvs, "tokenizer.ggml.precompiled_charsmap") == NULL)
        return true;
    if (!gguf_get_array(vocab->kvs, "tokenizer.ggml.precompiled_charsmap", vocab->arena, &charsmap, error))
        return false;
    if (charsmap.type != GGUF_U8 && charsmap.type != GGUF_I8)
        return error_set(error, "tokenizer.ggml.precompiled_charsmap is not an array of bytes");
    json_begin_object(writer, NULL);
    json_put_text(writer, "type", "Precompiled");
    json_put_text(writer, "precompiled_charsmap", base64_encode(vocab->arena, charsmap.elements, charsmap.count));
    json_end(writer);
    return true;
}

static bool write_normalizer(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    json_begin_object(writer, "normalizer");
    json_put_text(writer, "type", "Sequence");
    json_begin_array(writer, "normalizers");
    if (!put_precompiled(vocab, writer, error))
        return false;
    json_begin_object(writer, NULL);
    json_put_text(writer, "type", "Strip");
    json_put_bool(writer, "strip_left", false);
    json_put_bool(writer, "strip_right", true);
    json_end(writer);
    json_begin_object(writer, NULL);
    json_put_text(writer, "type", "Replace");
    json_begin_object(writer, "pattern");
    json_put_text(writer, "Regex", " {2,}");
    json_end(writer);
    json_put_text(writer, "content", "\xe2\x96\x81");
    json_end(writer);
    json_end(writer);
    json_end(writer);
    return true;
}

/* A score as a float of Python: those of F32 are exact as doubles. */
static void put_score(float score, struct json_writer *writer)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", isfinite(score) ? (double)score : 0.0);
    json_put_raw(writer, NULL, text);
}

static void write_model(const struct stored_vocab *vocab, struct json_writer *writer)
{
    uint64_t unknown = vocab->unknown != NO_TOKEN ? (uint64_t)vocab->unknown : 0;
    for (uint64_t i = 0; vocab->unknown == NO_TOKEN && i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_UNKNOWN) {
            unknown = i;
            break;
        }
    json_begin_object(writer, "model");
    json_put_text(writer, "type", "Unigram");
    json_put_number(writer, "unk_id", unknown);
    json_begin_array(writer, "vocab");
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        json_begin_array(writer, NULL);
        json_put_text_n(writer, NULL, vocab->tokens[i].text, vocab->tokens[i].length);
        put_score(vocab->tokens[i].score, writer);
        json_end(writer);
    }
    json_end(writer);
    json_put_bool(writer, "byte_fallback", false);
    json_end(writer);
}

/* Where no keys say it: T5's A </s>, and B </s> of a second text; XLM-R's <s> A </s></s> B </s>, of those that have a
 * first token. All are of type 0. */
static void read_template(const struct stored_vocab *vocab, struct template *ret_template)
{
    rebuild_usual_template(vocab, true, ret_template);
    if (ret_template->after != NO_TOKEN || !rebuild_flag(vocab, "tokenizer.ggml.add_eos_token", true))
        return;
    ret_template->after = vocab->eos;
    ret_template->n_between = ret_template->before != NO_TOKEN ? 2 : 1;
    ret_template->second_type = 0;
}

bool rebuild_unigram_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    struct template template;
    rebuild_begin(vocab, &writer);
    if (!write_normalizer(vocab, &writer, error))
        return false;
    put_metaspace("pre_tokenizer", &writer);
    read_template(vocab, &template);
    rebuild_template(vocab, &template, "post_processor", &writer);
    put_metaspace("decoder", &writer);
    write_model(vocab, &writer);
    json_end(&writer);
    return true;
}
