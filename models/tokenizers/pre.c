#include "models/tokenizers/hf_vocabulary.h"

#include "base/encodings.h"
#include "models/tokenizers/hf_encode.h"
#include "models/tokenizers/hf_kind.h"

#include <string.h>

/* Pre-tokenizers recognized by one of their patterns, the first match counts; llama.cpp treats these names alike. */
static const struct {
    const char *pattern, *name;
} structures[] = {
    {"\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:", "gpt-4o"},
    {"\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+", "tekken"},
    {"[\\p{L}\\p{M}]+|\\p{N}|", "qwen35"},
    {"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|", "llama-bpe"},
    {"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|", "qwen2"},
    {"\\p{P}+", "deepseek-coder"},
};

static const char *name_of_pattern(const struct json *pre_tokenizer, int depth)
{
    const char *pattern = json_string(json_get(json_get(pre_tokenizer, "pattern"), "Regex"), NULL);
    for (size_t i = 0; pattern != NULL && i < sizeof structures / sizeof *structures; i++)
        if (strstr(pattern, structures[i].pattern) != NULL)
            return structures[i].name;
    const struct json *each = json_first(json_get(pre_tokenizer, "pretokenizers"));
    const char *name = NULL;
    for (; each != NULL && name == NULL && depth < 4; each = json_next(each))
        name = name_of_pattern(each, depth + 1);
    return name;
}

static bool has_type(const struct json *pre_tokenizer, const char *type)
{
    if (json_string_is(json_get(pre_tokenizer, "type"), type))
        return true;
    const struct json *each = json_first(json_get(pre_tokenizer, "pretokenizers"));
    for (; each != NULL; each = json_next(each))
        if (json_string_is(json_get(each, "type"), type))
            return true;
    return false;
}

static const char *name_of_structure(const struct json *pre_tokenizer)
{
    const char *name = name_of_pattern(pre_tokenizer, 0);
    if (name != NULL)
        return name;
    if (has_type(pre_tokenizer, "BertPreTokenizer"))
        return "jina-v2-en";
    if (has_type(pre_tokenizer, "Punctuation"))
        return "falcon";
    if (has_type(pre_tokenizer, "Digits"))
        return "starcoder";
    return has_type(pre_tokenizer, "ByteLevel") ? "gpt-2" : "default";
}

static void hash_ids(const uint32_t *ids, size_t count, char hex[SHA256_HEX + 1])
{
    struct buffer list = {0};
    for (size_t i = 0; i < count; i++)
        buffer_printf(&list, "%s%u", i == 0 ? "[" : ", ", ids[i]);
    buffer_append_text(&list, count == 0 ? "[]" : "]");
    sha256_hex(list.bytes, list.length, hex);
    buffer_free(&list);
}

static const char *name_of_ids(const char *hex, const struct references *references)
{
    const char *name = NULL;
    for (const struct pre_hash *known = pre_hashes; known->sha256 != NULL; known++)
        if (strcmp(known->sha256, hex) == 0 && reference_build(references) >= known->since)
            name = known->name;
    return name;
}

/* Returns the architecture's own name for a pre-tokenizer where another model's splits alike: the hash holds the tokens
 * that the tokenizer adds, and transformers 5 saves one that adds none. */
static const char *name_for(const char *architecture, const char *name)
{
    static const struct {
        const char *architecture, *without_bos, *name;
    } rows[] = {{"deepseek2", "joyai-llm", "deepseek-v3"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(architecture, rows[i].architecture) == 0 && strcmp(name, rows[i].without_bos) == 0)
            return rows[i].name;
    return name;
}

/* Returns the pre-tokenizer that transformers uses with vocab.json and merges.txt, by tokenizer class. */
static const char *name_of_class(const char *class_name)
{
    static const char *const known[][2] = {
        {"GPT2Tokenizer", "gpt-2"}, {"Qwen2Tokenizer", "qwen2"}, {"RobertaTokenizer", "roberta-bpe"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], class_name) == 0)
            return known[i][1];
    return "default";
}

/* Returns a name for a pre-tokenizer that the converter does not know, and adds a note; `failure`: why the check text
 * could not be encoded, or NULL. */
static const char *guess_name(const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                              const char *failure)
{
    const struct json *steps = vocabulary->steps;
    const char *name =
        steps != NULL ? name_of_structure(json_get(steps, "pre_tokenizer")) : name_of_class(vocabulary->class_name);
    checkpoint_note(input->checkpoint, SUBJECT_GGUF,
                    "the converter does not know the pre-tokenizer of %s (%.100s)%s%s; wfs calls it '%s', which splits "
                    "text most like it; -o override-kv=tokenizer.ggml.pre=str:NAME changes that",
                    input->checkpoint->model_name, vocabulary->class_name, failure != NULL ? ": " : "",
                    failure != NULL ? failure : "", name);
    return name;
}

bool pre_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               struct error *error)
{
    uint32_t *ids;
    size_t count;
    struct work work = {ENCODE_WORK};
    const char *name;
    char hex[SHA256_HEX + 1];
    if (hf_encode(vocabulary, pre_check_text, strlen(pre_check_text), &work, &ids, &count, error)) {
        hash_ids(ids, count, hex);
        name = name_of_ids(hex, input->references);
        if (name == NULL) {
            name = guess_name(input, vocabulary, NULL);
            checkpoint_hint(input->checkpoint, SUBJECT_GGUF, "the converter's hash of this tokenizer is %s", hex);
        } else if (hf_is_too_new(vocabulary->files)) {
            name = name_for(input->architecture, name);
        }
    } else if (work.left == 0) {
        return error_prefix(error, "tokenizer.json");
    } else {
        name = guess_name(input, vocabulary, error->message);
    }
    gguf_set_text(kvs, "tokenizer.ggml.pre", name);
    return true;
}
