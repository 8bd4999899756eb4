/* Meta's own directories of Llama 1, 2 and 3: params.json and consolidated.00.pth, .01.pth ..., one file for each rank
 * of tensor parallelism, shown like the Hugging Face conversion: names, the order of rotary rows, config.json and the
 * tokenizer's files. Opening a directory reads no weights.
 *
 * Sources: transformers' convert_llama_weights_to_hf.py and convert_slow_tokenizer.py (TikTokenConverter),
 * llama-models' tokenizer and params.json files.
 *
 * Tensors are in the order of their names, as in a single model.safetensors. An output that is tied to the embedding is
 * left out, as in the conversion.
 *
 * A Meta directory does not state the release, which is guessed from the vocabulary, norm_eps, rope_theta,
 * use_scaled_rope and the size, nor whether it is an instruct model, which is assumed not. So model.gguf equals that of
 * the Hugging Face directory, except for keys that only the latter has: general.name and its parts, general.size_label,
 * license, tags, languages and base models (from the directory's name and the model card), general.sampling.*
 * (generation_config.json), tokenizer.chat_template, tokenizer.ggml.eos_token_id of instruct models, and, if the
 * tokenizer was saved otherwise, tokenizer.ggml.add_space_prefix, add_bos_token, add_eos_token and padding_token_id. */
#pragma once

#include "base/buffer.h"
#include "formats/checkpoint.h"
#include "models/tokenizers/tiktoken.h"
#include "text/json.h"

/* The model's sizes and options, from params.json, the shards and the tokenizer. */
struct meta_params {
    uint64_t dim, n_layers, n_heads, n_kv_heads;
    const char *norm_eps, *rope_theta; /* as spelled in params.json */
    double rope_theta_value;
    const char *rope_scaling_factor; /* as spelled; NULL: missing */
    bool use_scaled_rope;

    /* From the tensors. */
    uint64_t vocab_size, intermediate_size;
    const char *dtype; /* "bfloat16" */
    bool tied;         /* no output.weight, or a release that ties it to the embedding */

    /* From tokenizer.model: the number of ranks of a tiktoken file, 0 for SentencePiece or none. */
    uint64_t n_ranks;
    bool sentencepiece;
};

/* Reads the values of params.json, which must outlive the result. The error names the key. */
bool meta_params_parse(const struct json *root, struct meta_params *ret_params, struct error *error);

/* Reports whether this is one of the small models of Llama 3.2, which tie their output. */
bool meta_is_small_llama32(const struct meta_params *params);

/* Append the texts of config.json and tokenizer_config.json. */
void meta_write_config(const struct meta_params *params, struct buffer *out);
void meta_write_tokenizer_config(const struct meta_params *params, struct buffer *out);

/* Appends tokenizer.json as TikTokenConverter makes it: the merges of each token are all of its pairs, and the 256
 * special tokens of Llama 3.1 and later, or of 3, follow the ranks. The text is laid out as the tokenizers library
 * saves it, with merges as in the releases: "LEFT RIGHT". */
void meta_write_tokenizer(const struct tiktoken *tiktoken, bool llama31, struct buffer *out);

/* Writes the special token number `index` of Llama 3.1 and later, or of 3, to `out`, of 64 bytes; returns `out`. */
enum { META_SPECIAL_TOKENS = 256 };
const char *meta_special_token(bool llama31, unsigned index, char *out);
