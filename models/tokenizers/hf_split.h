/* The first half of encoding: cuts a text into the segments that the model encodes one by one. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/work.h"

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
