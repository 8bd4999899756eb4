/* tokenizer.ggml.pre: which pre-tokenizer llama.cpp is to use.
 *
 * The converter encodes one fixed text and looks the hash of the ids up in a list. A tokenizer that is not in the list
 * fails there; here it gets the name of one that cuts text in the same way, where its pre-tokenizer is known, and a
 * note. One whose file asks for more work than encoding that text is worth (work.h) fails here too. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

struct pre_hash {
    const char *sha256, *name;
};

extern const char pre_check_text[];
extern const struct pre_hash pre_hashes[]; /* the last that fits counts; ended by NULL */

/* Sets the key. Notes why where it is a guess. */
bool pre_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               struct error *error);
