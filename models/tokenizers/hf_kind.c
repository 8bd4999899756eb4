#include "models/tokenizers/hf_kind.h"

#include <string.h>

bool hf_is_byte(const char *text, size_t length)
{
    return length == 6 && memcmp(text, "<0x", 3) == 0 && strspn(text + 3, "0123456789abcdefABCDEF") >= 2 &&
           text[5] == '>';
}

bool hf_has_step(const struct json *step, const char *list, const char *type)
{
    const struct json *each = json_first(json_get(step, list));
    while (each != NULL && !json_string_is(json_get(each, "type"), type))
        each = json_next(each);
    return each != NULL || json_string_is(json_get(step, "type"), type);
}

static enum hf_kind kind_of_bpe(const struct json *tokenizer)
{
    const struct json *model = json_get(tokenizer, "model"), *decoder = json_get(tokenizer, "decoder");
    const struct json *vocab = json_get(model, "vocab");
    if (hf_has_step(json_get(tokenizer, "pre_tokenizer"), "pretokenizers", "ByteLevel") ||
        hf_has_step(decoder, "decoders", "ByteLevel"))
        return HF_BYTE_LEVEL;
    bool has_bytes = json_get(vocab, "<0x00>") != NULL && json_get(vocab, "<0xFF>") != NULL;
    return has_bytes || json_bool(json_get(model, "byte_fallback"), false) ||
                   hf_has_step(decoder, "decoders", "ByteFallback")
               ? HF_BYTE_FALLBACK
               : HF_OTHER;
}

enum hf_kind hf_kind_of(const struct json *tokenizer)
{
    const struct json *type = json_get(json_get(tokenizer, "model"), "type");
    if (json_string_is(type, "BPE"))
        return kind_of_bpe(tokenizer);
    if (json_string_is(type, "Unigram"))
        return HF_UNIGRAM;
    return json_string_is(type, "WordPiece") ? HF_WORDPIECE : HF_OTHER;
}

bool hf_adds_prefix(const struct json *tokenizer)
{
    const struct json *pre = json_get(tokenizer, "pre_tokenizer"), *first = json_first(json_get(pre, "pretokenizers"));
    for (const struct json *step = first != NULL ? first : pre; step != NULL; step = json_next(step))
        if (json_string_is(json_get(step, "type"), "Metaspace"))
            return !json_string_is(json_get(step, "prepend_scheme"), "never") &&
                   json_bool(json_get(step, "add_prefix_space"), true);
    return hf_has_step(json_get(tokenizer, "normalizer"), "normalizers", "Prepend");
}
