#include "models/tokenizers/hf_kind.h"

#include <string.h>

bool hf_is_byte(const char *text, size_t length)
{
    return length == 6 && memcmp(text, "<0x", 3) == 0 && strspn(text + 3, "0123456789abcdefABCDEF") >= 2 &&
           text[5] == '>';
}

enum { STEP_DEPTH = 8 };

static const struct json *find_step(const struct json *step, const char *list, const char *type, int depth)
{
    if (json_string_is(json_get(step, "type"), type))
        return step;
    const struct json *each = json_first(json_get(step, list)), *found = NULL;
    for (; each != NULL && found == NULL && depth < STEP_DEPTH; each = json_next(each))
        found = find_step(each, list, type, depth + 1);
    return found;
}

const struct json *hf_find_step(const struct json *step, const char *list, const char *type)
{
    return find_step(step, list, type, 0);
}

bool hf_has_step(const struct json *step, const char *list, const char *type)
{
    return hf_find_step(step, list, type) != NULL;
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

/* Reports whether the model is of that type; files of the first tokenizers libraries have no type, but a member that
 * only that type has. */
static bool is_type(const struct json *model, const char *type, const char *member)
{
    const struct json *given = json_get(model, "type");
    return given != NULL ? json_string_is(given, type) : json_get(model, member) != NULL;
}

enum hf_kind hf_kind_of(const struct json *tokenizer)
{
    const struct json *model = json_get(tokenizer, "model");
    if (is_type(model, "BPE", "merges"))
        return kind_of_bpe(tokenizer);
    if (is_type(model, "Unigram", "unk_id"))
        return HF_UNIGRAM;
    return is_type(model, "WordPiece", "max_input_chars_per_word") ? HF_WORDPIECE : HF_OTHER;
}

bool hf_adds_prefix(const struct json *tokenizer)
{
    static const char space[] = "\xe2\x96\x81";
    const struct json *metaspace = hf_find_step(json_get(tokenizer, "pre_tokenizer"), "pretokenizers", "Metaspace");
    const struct json *prepend = hf_find_step(json_get(tokenizer, "normalizer"), "normalizers", "Prepend");
    if (metaspace != NULL)
        return !json_string_is(json_get(metaspace, "prepend_scheme"), "never") &&
               json_bool(json_get(metaspace, "add_prefix_space"), true);
    return json_string_is(json_get(prepend, "prepend"), space);
}
