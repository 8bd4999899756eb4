/* The tokens of whisper.cpp's files, from the vocabularies of Whisper: bytes, in the order of the file.
 *
 * A vocab.json has them spelled in the byte alphabet (tokenizers/byte_alphabet.h), a .tiktoken file in base64, a line
 * each. */
#pragma once

#include "formats/checkpoint.h"

/* Sets "tokens" to those of the side file vocab.json, sorted by id. Fails if it is missing or a token has another
 * character than those of bytes. */
bool whisper_tokens_by_id(const struct checkpoint *checkpoint, struct gguf_kvs *metadata, struct error *error);

/* Sets "tokens" to those of the side file `name` ("gpt2.tiktoken"); without it, to those of vocab.json, in the order of
 * that file and without <|endoftext|>, which the other file lacks. Fails if both are missing. */
bool whisper_tokens_of_openai(const struct checkpoint *checkpoint, const char *name, struct gguf_kvs *metadata,
                              struct error *error);
