/* The vocabulary of a Hugging Face tokenizer as transformers builds it: the model's tokens and the added tokens.
 *
 * tokenizer.json's added tokens come first; tokenizer_config.json's are added again with their own flags, and then
 * every special token that either file names, or that the tokenizer's class has by default. Without tokenizer.json,
 * vocab.json or vocab.txt has the model's tokens.
 *
 * Loading files of N bytes takes O(N log N): indexes find every text.
 *
 * Source: PreTrainedTokenizerFast.__init__ and _from_pretrained of transformers; tokenizers' added_vocabulary.rs. */
#pragma once

#include "base/text_index.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

struct added_token {
    const char *text;
    size_t length;
    uint64_t id;
    size_t rank; /* the order in which the files list it, for sorting */
    bool special, normalized, left_strip, right_strip, single_word;
};

struct hf_vocabulary {
    struct arena *arena;
    const struct tokenizer_files *files;
    const struct json *steps; /* the steps of encoding: tokenizer.json, or made for vocab.txt; NULL: none */
    const struct json *model; /* its member "model", or NULL */
    const struct json *vocab; /* {token: id}, or [[token, score], ...] of a Unigram model */
    struct document *vocab_json;
    struct json_document *vocab_txt, *txt_steps; /* made by wfs */
    uint64_t n_model_tokens, n_ids;              /* n_ids: one more than the highest id */
    struct added_token *added;                   /* in order of adding */
    size_t n_added;
    uint64_t next_id;              /* for the next added token that the model lacks */
    struct text_index added_index; /* texts of `added` */
    struct text_index array_index; /* texts of a `vocab` that is an array */
    /* "LlamaTokenizer", from tokenizer_config.json or the model type, without "Fast" */
    const char *class_name;
    bool keeps_added; /* token lists take the flags of added tokens from the files, whatever their texts look like */
};

/* Loads the vocabulary; `files` must outlive it. VOCAB_ABSENT: the checkpoint has no file with tokens. */
enum vocab_result hf_vocabulary_load(const struct vocab_input *input, const struct tokenizer_files *files,
                                     struct hf_vocabulary *ret_vocabulary, struct error *error);
void hf_vocabulary_free(struct hf_vocabulary *vocabulary);

/* Finds the id of a token of the model itself, not an added one; false if the model lacks the token. */
bool hf_model_id(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t *ret_id);

/* Returns the added token of that text, or NULL. */
const struct added_token *hf_added_token(const struct hf_vocabulary *vocabulary, const char *text, size_t length);

/* Finds the id of a token, added or not. */
bool hf_token_id(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t *ret_id);

/* Returns a special token by its attribute, "bos_token", as transformers has it after loading; NULL: none. */
const char *hf_special_token(const struct hf_vocabulary *vocabulary, const char *attribute, size_t *ret_length);

/* Adds the special tokens that have names to an index: bos_token ... and additional_special_tokens. */
void hf_index_named_specials(const struct hf_vocabulary *vocabulary, struct text_index *specials);

/* Makes a list of `n_tokens`, with the converter's texts and types (get_vocab_base). Fails above TOKEN_LIST_MAX. */
bool hf_token_list(const struct hf_vocabulary *vocabulary, uint64_t n_tokens, struct token_list *ret_list,
                   struct error *error);

/* Like token_count_fits(), for the ids that the files give. */
bool hf_count_fits(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, uint64_t n_tokens,
                   struct error *error);

/* Writes the keys of a vocabulary, for vocab_add(): reads the files, asks `fits` (NULL: any fits) whether
 * tokenizer.json is of that kind, loads the vocabulary and calls `write_keys`. */
enum vocab_result hf_vocabulary_add(struct gguf_kvs *kvs, const struct vocab_input *input,
                                    bool (*fits)(const struct json *tokenizer),
                                    bool (*write_keys)(struct gguf_kvs *kvs, const struct vocab_input *input,
                                                       const struct hf_vocabulary *vocabulary, struct error *error),
                                    struct error *error);

/* tokenizer.ggml.pre, the pre-tokenizer for llama.cpp.
 *
 * The converter encodes one fixed text, hashes the ids and looks the hash up in a list. Where the converter fails
 * because the list lacks the hash, wfs writes the name of a pre-tokenizer that cuts text in the same way, as far as it
 * can tell, and adds a note. It fails if encoding exceeds its budget (hf_encode.h). */

struct pre_hash {
    const char *sha256, *name;
    unsigned since; /* the first build of llama.cpp that knows the hash, such as 11549; 0: all */
};

extern const char pre_check_text[];
extern const struct pre_hash pre_hashes[]; /* the last match counts; ends with a NULL */

/* Sets the key; adds a note if the name is a guess. Fails if encoding exceeds its budget. */
bool pre_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               struct error *error);
