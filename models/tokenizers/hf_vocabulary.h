/* The vocabulary of a Hugging Face tokenizer as transformers builds it: the model's tokens, and those added to it.
 *
 * The added tokens of tokenizer.json are only the start: those of tokenizer_config.json are added again with their own
 * flags, and then every special token that either file names, or that the tokenizer's class has by default. Without
 * tokenizer.json the model's tokens come from vocab.json or vocab.txt.
 *
 * Loading files of N bytes takes O(N log N): every text is found by an index.
 *
 * Source: PreTrainedTokenizerFast.__init__ and _from_pretrained of transformers; tokenizers' added_vocabulary.rs.
 */
#pragma once

#include "base/text_index.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

struct added_token {
    const char *text;
    size_t length;
    uint64_t id;
    size_t rank; /* among those that are sorted: where it was read */
    bool special, normalized, left_strip, right_strip, single_word;
};

struct hf_vocabulary {
    struct arena *arena;
    const struct tokenizer_files *files;
    const struct json *steps; /* what a text goes through: tokenizer.json, what a class makes of vocab.txt, or NULL */
    const struct json *model; /* of these, or NULL */
    const struct json *vocab; /* {token: id}, or [[token, score], ...] of a Unigram model */
    struct document *vocab_json;
    struct json_document *vocab_txt, *txt_steps; /* turned into JSON */
    uint64_t n_model_tokens, n_ids;              /* n_ids: one more than the highest id */
    struct added_token *added;                   /* in order of adding */
    size_t n_added;
    uint64_t next_id;              /* of an added token that the model has not */
    struct text_index added_index; /* texts of `added` */
    struct text_index array_index; /* texts of a vocabulary that is an array */
    /* "LlamaTokenizerFast", without the "Fast"; what tokenizer_config.json or the model type says */
    const char *class_name;
    bool keeps_added; /* lists have added tokens as the files do, whatever they look like */
};

/* VOCAB_ABSENT where there are no files of a tokenizer. */
enum vocab_result hf_vocabulary_load(const struct vocab_input *input, const struct tokenizer_files *files,
                                     struct hf_vocabulary *ret_vocabulary, struct error *error);
void hf_vocabulary_free(struct hf_vocabulary *vocabulary);

/* The id of a token of the model itself; false where it has none. */
bool hf_model_id(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t *ret_id);

/* The added token of that text, or NULL. */
const struct added_token *hf_added_token(const struct hf_vocabulary *vocabulary, const char *text, size_t length);

/* The id of a token, added or not. */
bool hf_token_id(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t *ret_id);

/* A special token by its attribute, as transformers has it after loading: "bos_token". NULL where there is none. */
const char *hf_special_token(const struct hf_vocabulary *vocabulary, const char *attribute, size_t *ret_length);

/* Adds to an index the special tokens that have names: bos_token ... and additional_special_tokens. */
void hf_index_named_specials(const struct hf_vocabulary *vocabulary, struct text_index *specials);

/* Fills a list of `n_tokens` with the converter's texts and types (get_vocab_base). */
bool hf_token_list(const struct hf_vocabulary *vocabulary, uint64_t n_tokens, struct token_list *ret_list,
                   struct error *error);

/* token_count_fits() for what the files give. */
bool hf_count_fits(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, uint64_t n_tokens,
                   struct error *error);

/* Writes the keys of these kinds, for vocab_add(): reads the files, asks `fits` (may be NULL) whether tokenizer.json is
 * of the kind, loads the vocabulary and writes the keys. */
enum vocab_result hf_vocabulary_add(struct gguf_kvs *kvs, const struct vocab_input *input,
                                    bool (*fits)(const struct json *tokenizer),
                                    bool (*write_keys)(struct gguf_kvs *kvs, const struct vocab_input *input,
                                                       const struct hf_vocabulary *vocabulary, struct error *error),
                                    struct error *error);
