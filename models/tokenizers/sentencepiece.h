/* SentencePiece models: tokenizer.model and similar files, which are protocol buffers. */
#pragma once

#include "models/sentencepiece_model.pb-c.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"
#include "models/tokenizers/vocab.h"

typedef Wfs__Sentencepiece__Model sentencepiece_model;

enum { SENTENCEPIECE_UNIGRAM = 1, SENTENCEPIECE_BPE = 2 };

/* The limit of a model's memory for each byte of its file: ordinary pieces take 6 to 9 bytes, empty ones 50. */
enum { SENTENCEPIECE_MEMORY = 16 };

/* Reads the model in a side file, for sentencepiece_free(). VOCAB_ABSENT: there is no such file. Fails for a model
 * without pieces, or one that exceeds SENTENCEPIECE_MEMORY. */
enum vocab_result sentencepiece_load(const struct checkpoint *checkpoint, const char *name,
                                     sentencepiece_model **ret_model, struct error *error);
void sentencepiece_free(sentencepiece_model *model);

/* A model with the tokenizer's side files, for vocab->write_pieces, which sentencepiece_add() calls. */
struct sentencepiece {
    const sentencepiece_model *model;
    const struct tokenizer_files *files;
};
enum vocab_result sentencepiece_add(struct gguf_kvs *kvs, const struct vocab_input *input, const struct vocab *vocab,
                                    struct error *error);

/* Makes a list of `n_tokens` from the model's pieces; fills missing ones with "[PADn]" of score -10000. The texts are
 * the model's, which must live as long. Fails as token_count_fits() and token_list_init() do. */
bool sentencepiece_list(const struct vocab_input *input, const sentencepiece_model *model, uint64_t n_tokens,
                        struct token_list *ret_list, struct error *error);

/* Returns the id of the BOS, EOS, unknown or padding piece; UINT64_MAX: none. */
enum sentencepiece_part { SENTENCEPIECE_BEGIN, SENTENCEPIECE_END, SENTENCEPIECE_UNKNOWN, SENTENCEPIECE_PADDING };
uint64_t sentencepiece_id(const sentencepiece_model *model, enum sentencepiece_part part);

/* Sets the tokens of added_tokens.json, replacing pieces with the same ids, as the converter does. */
void sentencepiece_add_file(struct token_list *list, const struct json *added_tokens);

/* Sets the tokens of tokenizer_config.json's added_tokens_decoder: {"32000": {"content": "<|end|>", "special": true}}.
 * With `by_looks`, tokens that look special are control tokens, and U+2581 in others becomes a space. */
void sentencepiece_add_decoder(struct token_list *list, const struct json *config, bool by_looks);

/* Writes the keys of "llama": the list, which it frees, and the keys of special_vocab_write(). */
bool sentencepiece_write(struct gguf_kvs *kvs, const struct vocab_input *input, const char *pre,
                         struct token_list *list, const struct tokenizer_files *files, struct error *error);

/* Returns the number of tokens in the hyperparameters; the number of pieces if these have none. */
uint64_t sentencepiece_vocab_size(const struct vocab_input *input, const sentencepiece_model *model);
