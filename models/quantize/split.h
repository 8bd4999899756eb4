/* A GGUF in parts, as `llama-gguf-split --split` writes them: the first has all keys, each three more of its own,
 * split.no, split.tensors.count and split.count.
 *
 * Source: tools/gguf-split/gguf-split.cpp of llama.cpp. */
#pragma once

#include "formats/gguf/write.h"

/* How: by size or by number. Neither: not at all. */
struct split_rule {
    uint64_t max_bytes;   /* of the padded tensors of a part, but for one that is larger alone */
    uint64_t max_tensors; /* in a part */
};

/* The tool's spelling: 500M or 2G of a part, powers of 1000, or a number of tensors. */
bool split_rule_parse(const char *text, struct split_rule *ret_rule, struct error *error);

enum { SPLIT_MAX_PARTS = 65535 };

/* Where the parts of a file end: of each the number of tensors up to there, in memory that the caller frees. NULL with
 * the reason where the tool refuses. */
size_t *split_ends(const struct artifact *whole, const struct split_rule *rule, size_t *ret_n_parts,
                   struct error *error);

/* Who writes the parts; the keys that say which part it is differ in their order. */
enum splitter { SPLITTER_GGUF_SPLIT, SPLITTER_QUANTIZE };

/* Makes the artifact of part `number`, counted from 0; borrows from the artifact of the whole. */
void split_artifact(const struct artifact *whole, enum splitter splitter, const size_t *ends, size_t n_parts,
                    size_t number, struct artifact *ret_artifact);
