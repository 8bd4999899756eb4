/* The kinds of vocabulary that a tokenizer.json has, and how each becomes keys of a GGUF.
 *
 * The model and its steps decide the kind, never how text is cut before: a BPE of bytes in letters of their own, a BPE
 * or Unigram model of SentencePiece pieces, or WordPiece. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

enum hf_kind {
    HF_OTHER, /* none of these, or no tokenizer.json */
    HF_BYTE_LEVEL,
    HF_BYTE_FALLBACK, /* BPE of SentencePiece pieces; other characters are tokens of bytes: "<0x0A>" */
    HF_UNIGRAM,
    HF_WORDPIECE,
};

enum hf_kind hf_kind_of(const struct json *tokenizer);

/* Reports whether the text is a byte token: "<0x0A>". */
bool hf_is_byte(const char *text, size_t length);

/* Returns the first step of that type: the step itself, or one in its list (such as "pretokenizers" or "decoders") or
 * in the lists in there; NULL: none. */
const struct json *hf_find_step(const struct json *step, const char *list, const char *type);
bool hf_has_step(const struct json *step, const char *list, const char *type);

/* Reports whether a pre-tokenizer or normalizer puts U+2581 before a text. */
bool hf_adds_prefix(const struct json *tokenizer);

/* Fails for a tokenizer.json that llama.cpp would split into noise (hf_unlike.c). */
bool hf_is_usable(const struct hf_vocabulary *vocabulary, struct error *error);

/* Tells llama.cpp to add no BOS or no EOS where it would by default, and the post-processor of tokenizer.json adds
 * none. */
void hf_deny_ends(struct gguf_kvs *kvs, const struct hf_vocabulary *vocabulary);

/* Adds a note on what llama.cpp does otherwise than transformers with tokenizer.json, whose keys are complete. */
void hf_unlike_note(const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                    const struct gguf_kvs *kvs);

/* Byte-level byte pair encoding (bpe.c), which the vocabularies share that add special ids to it. */

/* Reports whether the pieces of tokenizer.json are not SentencePiece's, which "gpt2" would split into noise. */
bool bpe_fits(const struct json *tokenizer);

/* Writes the keys of "gpt2"; `ids`, at most SPECIAL_IDS, follow the special ids of the files. Fails for an invalid
 * file, or if the check text's budget or the limit of tokens is exceeded. */
bool bpe_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               const struct special_id *ids, size_t n_ids, struct error *error);

/* BPE with byte fallback (llama_hf.c). */

/* Reports whether tokenizer.json is BPE with byte fallback and a decoder in steps. */
bool llama_hf_fits(const struct json *tokenizer);

/* Makes a list of the model's tokens, then the added ones that have ids of their own. */
bool llama_hf_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, struct token_list *ret_list,
                   struct error *error);

/* "llama" from a tokenizer.json alone, as transformers 5 saves it (llama_hf.c): a SentencePiece vocabulary with the
 * scores that its merges give back. */

/* Reports whether the converter's release of transformers cannot load the tokenizer, which a later one saved: it has a
 * class, or a list where that release has names. */
bool hf_is_too_new(const struct tokenizer_files *files);

/* Reports whether tokenizer.json has such a vocabulary. */
bool hf_spm_fits(const struct json *tokenizer);

/* How the vocabulary of a family differs. */
struct hf_spm_form {
    bool by_flags;   /* added tokens have the type that the file gives, whatever their texts look like */
    bool counts_all; /* scores count from the first id, not from the first piece (merge_scores_set()) */
};

/* Writes the keys. */
bool hf_spm_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                  struct hf_spm_form form, struct error *error);

/* The scores of SentencePiece's pieces, found again from the merges (merge_scores.c).
 *
 * llama.cpp joins the neighbours whose joint piece has the highest score; tokenizers join the pair of the lowest rank.
 * All ways to make one piece stand next to each other in a list of merges, so scores that fall with the first rank that
 * makes a piece split text alike. SentencePiece numbers its pieces by these ranks: where ids and ranks agree, the
 * scores are those of tokenizer.model to the bit.
 *
 * Source: llama-vocab.cpp (llm_tokenizer_spm) of llama.cpp; trainer_interface.cc of SentencePiece. */

/* Sets the scores of the list's normal tokens. `counts_all`: ids count from 0, as Gemma's do, else from the first piece
 * after the tokens of bytes. `spaces_last`: pieces of U+2581 alone come last although their merges do not, as in
 * Llama's vocabularies before a class sorted their merges by id. Takes O(N log N) for N tokens and merges. Returns what
 * merges say that no scores do, or NULL. */
const char *merge_scores_set(struct token_list *list, const struct hf_vocabulary *vocabulary, bool counts_all,
                             bool spaces_last);
