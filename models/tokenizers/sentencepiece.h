/* SentencePiece models: tokenizer.model and its kin, a protocol buffer. */
#pragma once

#include "models/sentencepiece_model.pb-c.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"
#include "models/tokenizers/vocab.h"

typedef Wfs__Sentencepiece__Model sentencepiece_model;

enum { SENTENCEPIECE_UNIGRAM = 1, SENTENCEPIECE_BPE = 2 };

/* The limit of a model's memory for each byte of its file: ordinary pieces take 6 to 9 bytes, empty ones 50. */
enum { SENTENCEPIECE_MEMORY = 16 };

/* Reads the model in a side file. VOCAB_ABSENT where there is no such file. */
enum vocab_result sentencepiece_load(const struct checkpoint *checkpoint, const char *name,
                                     sentencepiece_model **ret_model, struct error *error);
void sentencepiece_free(sentencepiece_model *model);

/* A model with the tokenizer's side files, for vocab->write_pieces. */
struct sentencepiece {
    const sentencepiece_model *model;
    const struct tokenizer_files *files;
};
enum vocab_result sentencepiece_add(struct gguf_kvs *kvs, const struct vocab_input *input, const struct vocab *vocab,
                                    struct error *error);

/* A list of `n_tokens` with the model's pieces; what it has more is dropped, what it has less is "[PADn]" of score
 * -10000. Texts are the model's: it must live as long. Fails as token_count_fits() does. */
bool sentencepiece_list(const struct vocab_input *input, const sentencepiece_model *model, uint64_t n_tokens,
                        struct token_list *ret_list, struct error *error);

/* The id of the piece that begins or ends texts, stands for what is unknown, or pads; UINT64_MAX where there is none.
 */
enum sentencepiece_part { SENTENCEPIECE_BEGIN, SENTENCEPIECE_END, SENTENCEPIECE_UNKNOWN, SENTENCEPIECE_PADDING };
uint64_t sentencepiece_id(const sentencepiece_model *model, enum sentencepiece_part part);

/* Tokens of added_tokens.json, as the converter puts them over the pieces. */
void sentencepiece_add_file(struct token_list *list, const struct json *added_tokens);

/* Tokens of added_tokens_decoder of tokenizer_config.json: {"32000": {"content": "<|end|>", "special": true}}.
 * `by_looks`: what looks special is, and others have spaces for U+2581. */
void sentencepiece_add_decoder(struct token_list *list, const struct json *config, bool by_looks);

/* Writes the keys of "llama": the list, which is freed, and what follows it. */
bool sentencepiece_write(struct gguf_kvs *kvs, const struct vocab_input *input, const char *pre,
                         struct token_list *list, const struct tokenizer_files *files, struct error *error);

/* How many tokens the hyperparameters say there are; the number of pieces where they do not. */
uint64_t sentencepiece_vocab_size(const struct vocab_input *input, const sentencepiece_model *model);
