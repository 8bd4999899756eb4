/* A GGUF in shards, as `llama-gguf-split --split` writes them: the first has all keys, and each has split.no,
 * split.tensors.count and split.count.
 *
 * Source: tools/gguf-split/gguf-split.cpp of llama.cpp. */
#pragma once

#include "formats/gguf/write.h"

/* The limit of a shard; a GGUF without a limit is one file. */
struct split_rule {
    uint64_t max_bytes;   /* padded tensors' bytes; one larger tensor is a shard, unless it is first; 0: no limit */
    uint64_t max_tensors; /* 0: no limit */
};

/* Reads the limit as the tool spells it: 500M or 2G (powers of 1000), or a number of tensors. */
bool split_rule_parse(const char *text, struct split_rule *ret_rule, struct error *error);

enum { SPLIT_MAX_SHARDS = 65535 };

/* Returns, for each shard, the number of tensors up to its end, in memory that the caller frees; NULL, with the reason,
 * if the tool refuses, or there are more than SPLIT_MAX_SHARDS. */
size_t *split_ends(const struct artifact *whole, const struct split_rule *rule, size_t *ret_n_shards,
                   struct error *error);

/* The tool that writes the shards; the tools write the keys of a shard in different orders. */
enum splitter { SPLITTER_GGUF_SPLIT, SPLITTER_QUANTIZE };

/* Makes the artifact of shard `number`, counted from 0; borrows tensors from `whole`. */
void split_artifact(const struct artifact *whole, enum splitter splitter, const size_t *ends, size_t n_shards,
                    size_t number, struct artifact *ret_artifact);
