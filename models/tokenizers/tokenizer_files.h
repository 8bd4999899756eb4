/* The tokenizer's side files, parsed. */
#pragma once

#include "formats/documents.h"
#include "models/tokenizers/vocab.h"

struct tokenizer_files {
    struct document *documents[4];
    const struct json *tokenizer;    /* tokenizer.json, or NULL */
    const struct json *config;       /* tokenizer_config.json, or NULL */
    const struct json *special_map;  /* special_tokens_map.json, or NULL */
    const struct json *added_tokens; /* added_tokens.json, or NULL */
};

/* Reads the files that exist, for tokenizer_files_free(). Fails if a file is not a valid JSON object, or has its added
 * tokens in a container of the wrong type. */
bool tokenizer_files_load(const struct checkpoint *checkpoint, struct tokenizer_files *ret_files, struct error *error);
void tokenizer_files_free(struct tokenizer_files *files);

/* Returns the text of a token given as a string or as an object with its "content"; NULL for other values. */
const char *token_content(const struct json *token, size_t *ret_length);

/* Turns line ends into \n in place, as Python reads text. Returns the new length. */
size_t unify_newlines(char *text, size_t length);

/* Writes the keys after every token list: merges, special ids, add_*_token, chat template, normalizer. */
bool special_vocab_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct tokenizer_files *files,
                         const struct special_vocab_options *options, struct error *error);
