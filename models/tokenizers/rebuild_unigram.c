/* tokenizer.json of Unigram vocabularies, as T5's converter in transformers makes it. */
#include "base/encodings.h"
#include "models/tokenizers/rebuild.h"

#include <math.h>
#include <stdio.h>

static const char metaspace[] =
    "{'type': 'Metaspace', 'replacement': '\xe2\x96\x81', 'prepend_scheme': 'always', 'split': true}";

static bool put_precompiled(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    struct gguf_array charsmap;
    if (gguf_kvs_find(vocab->kvs, "tokenizer.ggml.precompiled_charsmap") == NULL)
        return true;
    if (!gguf_get_array(vocab->kvs, "tokenizer.ggml.precompiled_charsmap", vocab->arena, &charsmap, error))
        return false;
    if (charsmap.type != GGUF_U8 && charsmap.type != GGUF_I8)
        return error_set(error, "tokenizer.ggml.precompiled_charsmap is not an array of bytes");
    json_put_template(writer, "{'type': 'Precompiled', 'precompiled_charsmap': %s}",
                      base64_encode(vocab->arena, charsmap.elements, charsmap.count));
    return true;
}

enum { SCORE_TEXT = 32 };

/* Writes a score as Python writes a float: every F32 is exact as a double. */
static const char *score_text(float score, char out[SCORE_TEXT])
{
    snprintf(out, SCORE_TEXT, "%.17g", isfinite(score) ? (double)score : 0.0);
    return out;
}

static void write_model(const struct stored_vocab *vocab, struct json_writer *writer)
{
    char text[SCORE_TEXT];
    uint64_t unknown = vocab->ids[SPECIAL_UNKNOWN] != NO_TOKEN ? (uint64_t)vocab->ids[SPECIAL_UNKNOWN] : 0;
    for (uint64_t i = 0; vocab->ids[SPECIAL_UNKNOWN] == NO_TOKEN && i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_UNKNOWN) {
            unknown = i;
            break;
        }
    json_put_template(writer, "'model': {'type': 'Unigram', 'unk_id': %u, 'vocab': [", unknown);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        json_put_template(writer, "[%t, %r]", token->text, token->length, score_text(token->score, text));
    }
    json_put_template(writer, "], 'byte_fallback': false}");
}

/* Reads the template; without its keys, T5's A </s> and, for a second text, B </s>; or XLM-R's <s> A </s></s> B </s> if
 * there is a first token. All tokens have type 0. */
static void read_template(const struct stored_vocab *vocab, struct template *ret_template)
{
    rebuild_usual_template(vocab, true, ret_template);
    if (ret_template->after != NO_TOKEN || !rebuild_flag(vocab, "tokenizer.ggml.add_eos_token", true))
        return;
    ret_template->after = vocab->ids[SPECIAL_EOS];
    ret_template->n_between = ret_template->before != NO_TOKEN ? 2 : 1;
    ret_template->second_type = 0;
}

bool rebuild_unigram_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    struct template template;
    rebuild_begin(vocab, &writer);
    json_put_template(&writer, "'normalizer': {'type': 'Sequence', 'normalizers': [");
    if (!put_precompiled(vocab, &writer, error))
        return false;
    json_put_template(&writer, "{'type': 'Strip', 'strip_left': false, 'strip_right': true},"
                               "{'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': '\xe2\x96\x81'}]}");
    json_put_template(&writer, "'pre_tokenizer': ");
    json_put_template(&writer, metaspace);
    read_template(vocab, &template);
    rebuild_template(vocab, &template, "post_processor", &writer);
    json_put_template(&writer, "'decoder': ");
    json_put_template(&writer, metaspace);
    write_model(vocab, &writer);
    json_end(&writer);
    return true;
}
