/* tokenizer.ggml.pre, the pre-tokenizer for llama.cpp.
 *
 * The converter encodes one fixed text, hashes the ids and looks the hash up in a list. Where the converter fails
 * because the list lacks the hash, wfs writes the name of a pre-tokenizer that cuts text in the same way, as far as it
 * can tell, and adds a note. It fails if encoding exceeds its budget (hf_encode.h). */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

struct pre_hash {
    const char *sha256, *name;
    unsigned since; /* the first build of llama.cpp that knows the hash, such as 11549; 0: all */
};

extern const char pre_check_text[];
extern const struct pre_hash pre_hashes[]; /* the last match counts; ends with a NULL */

/* Sets the key; adds a note if the name is a guess. Fails if encoding exceeds its budget. */
bool pre_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               struct error *error);
