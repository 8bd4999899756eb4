/* The scores of SentencePiece's pieces, found again from the merges of a tokenizer.json.
 *
 * llama.cpp joins the neighbours whose joint piece has the highest score; tokenizers join the pair of the lowest rank.
 * All ways to make one piece stand next to each other in a list of merges, so scores that fall with the first rank that
 * makes a piece split text alike. SentencePiece numbers its pieces by these ranks: where ids and ranks agree, the
 * scores are those of tokenizer.model to the bit.
 *
 * Source: llama-vocab.cpp (llm_tokenizer_spm) of llama.cpp; trainer_interface.cc of SentencePiece. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* Sets the scores of the list's normal tokens. `counts_all`: ids count from 0, as Gemma's do, else from the first piece
 * after the tokens of bytes. `spaces_last`: pieces of U+2581 alone come last although their merges do not, as in
 * Llama's vocabularies before a class sorted their merges by id. Takes O(N log N) for N tokens and merges. */
void merge_scores_set(struct token_list *list, const struct hf_vocabulary *vocabulary, bool counts_all,
                      bool spaces_last);
