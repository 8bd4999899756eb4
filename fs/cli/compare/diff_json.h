/* The findings of `wfs diff` as JSON. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/lib/match.h"

/* Two checkpoints after the comparison. */
struct comparison {
    const struct checkpoint *a, *b;
    const char *names; /* the names by which both were compared: "GGUF", "Hugging Face"; NULL: their own */
    struct matches tensors;
    struct key_matches keys;
    size_t n_tensors, n_values, n_keys; /* numbers of tensors, tensor values and keys that differ */
};

/* Prints the comparison on stdout. */
void print_diff_json(const struct comparison *comparison);
