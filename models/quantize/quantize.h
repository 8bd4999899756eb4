/* llama-quantize: the artifacts of gguf/model-Q4_K_M.gguf and the other mixes.
 *
 * The output is the tool's for the converter's F32 output, or for the source if it is a GGUF. It differs from its input
 * not only in types: tensors are sorted by layer and name, trailing dimensions of 1 dropped, and
 * general.quantization_version and general.file_type moved to the end.
 *
 * Source: src/llama-quant.cpp, tools/quantize/quantize.cpp of llama.cpp. */
#pragma once

#include "formats/gguf/write.h"
#include "models/convert/model.h"
#include "models/quantize/mix.h"

/* Returns the order and traits of a model's tensors, computed once for all its outputs, in the arena; NULL for a plain
 * container, which is not quantized: its tensors have no names that the tool's rules know. */
const struct quantize_outline *quantize_outline_of(const struct gguf_model *model, struct arena *arena);

/* Reports whether the tool knows the architecture of a GGUF, after the edits; if not, sets the error. */
bool quantize_takes(const struct gguf_edition *edition, struct error *error);

/* Returns the number of quantizable tensors that the importance matrix lacks: the tool quantizes these without
 * importances if the type allows it, with a warning for each. *ret_n is the number of quantizable tensors, *ret_first
 * the first missing one, unchanged if none is. Only tensors of layers count: llama-imatrix leaves the others out. */
size_t quantize_unweighed(const struct gguf_edition *edition, const struct quantize_options *options, size_t *ret_n,
                          const char **ret_first);

/* Makes the artifact of a mix, which the caller frees. Fails, with the reason, if the tool refuses the model or mix. */
bool quantize_artifact(const struct gguf_edition *edition, const struct mix *mix,
                       const struct quantize_options *options, struct artifact *ret_artifact, struct error *error);

/* A GGUF in shards, as `llama-gguf-split --split` writes them: the first has all keys, and each has split.no,
 * split.tensors.count and split.count.
 *
 * Source: tools/gguf-split/gguf-split.cpp of llama.cpp. */

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
