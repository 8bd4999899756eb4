/* The findings of `wfs diff` as JSON. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/cli/match.h"

/* Two checkpoints after the comparison. */
struct comparison {
    const struct checkpoint *a, *b;
    const char *names; /* whose names both have been brought to: "GGUF", "Hugging Face"; NULL: their own */
    struct matches tensors;
    struct key_matches keys;
    size_t n_tensors, n_values, n_keys; /* that differ: tensors, those of them with other values, keys */
};

void print_diff_json(const struct comparison *comparison);
