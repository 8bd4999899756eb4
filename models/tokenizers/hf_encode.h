/* Encodes a short text as a Hugging Face tokenizer does: added tokens, normalizer, pre-tokenizer, model (BPE or
 * WordPiece), post-processor.
 *
 * The ids of one fixed text identify a tokenizer (pre.c), so this module is made for texts of some hundred characters.
 * PCRE2 runs the pre-tokenizer's regular expressions, which come from a file, under limits. Anything unsupported - a
 * normalizer, a Unigram model, a pattern that does not compile - is an error; the caller has a fallback.
 *
 * Encoding spends a budget, plus O(N log N) time for merges of N bytes. Exceeding the budget is an error that leaves
 * work.left at 0.
 *
 * Source: huggingface/tokenizers. */
#pragma once

#include "base/error.h"
#include "models/tokenizers/hf_vocabulary.h"

#include <stdint.h>

/* The budget, whatever a tokenizer's file contains: templates multiply, normalizers and pre-tokenizers repeat and grow,
 * patterns backtrack. Each action spends steps before it runs; a step is some 100 nanoseconds and at most 16 bytes of
 * memory. Ordinary tokenizers take some 30,000 steps. */
enum { ENCODE_WORK = 1 << 21 };

struct work {
    uint64_t left; /* 0: exceeded */
};

static inline void work_exceed(struct work *work)
{
    work->left = 0;
}

static inline bool work_spend(struct work *work, uint64_t steps, struct error *error)
{
    if (steps >= work->left) {
        work_exceed(work);
        return error_set(error, "encoding a short text takes more than %d steps", ENCODE_WORK);
    }
    work->left -= steps;
    return true;
}

enum { ENCODE_MAX_TEXT = 4096 };

/* Encodes `text`: the ids, with the post-processor's, in the vocabulary's arena. Fails above ENCODE_MAX_TEXT bytes. */
bool hf_encode(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct work *work,
               uint32_t **ret_ids, size_t *ret_count, struct error *error);

/* The first half of encoding (hf_split.c): cuts a text into the segments that the model encodes one by one. */

/* A piece of text, or an added token that was found in it. */
struct segment {
    const char *text;
    size_t length;
    bool is_token;
    uint64_t id; /* of the token */
};

struct segments {
    struct arena *arena;
    struct work *work; /* remaining budget */
    struct segment *items;
    size_t count, capacity;
};

/* Cuts `text` at added tokens, normalizes the text between and pre-tokenizes it. `segments` comes with an arena and a
 * budget. Fails if a step is unsupported or the budget is spent. */
bool hf_split(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct segments *segments,
              struct error *error);
