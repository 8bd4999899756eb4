/* Meta's own layout of Llama 1, 2 and 3: params.json and consolidated.00.pth, .01.pth ..., one file for each rank of
 * tensor parallelism, shown as the Hugging Face conversion would be: names, the order of rotary rows, config.json and
 * the tokenizer's files. Nothing is read of the weights before somebody asks for them.
 *
 * Sources: transformers' convert_llama_weights_to_hf.py and convert_slow_tokenizer.py (TikTokenConverter),
 * llama-models' tokenizer and params.json files.
 *
 * Tensors are in the order of their names, as in a single model.safetensors. Where the output is tied to the embedding,
 * it is left out, as the conversion does.
 *
 * What a Meta directory does not tell: the release (told here from the vocabulary, norm_eps, rope_theta,
 * use_scaled_rope and the size), and whether it is an instruct model (taken as none). So model.gguf is that of the
 * Hugging Face layout, but for the keys that only the latter knows: general.name and its parts, general.size_label,
 * license, tags, languages and base models (the directory's name and the model card), general.sampling.*
 * (generation_config.json), tokenizer.chat_template, of instruct models tokenizer.ggml.eos_token_id, and where its
 * tokenizer was saved otherwise tokenizer.ggml.add_space_prefix, add_bos_token, add_eos_token and padding_token_id. */
#pragma once

#include "base/buffer.h"
#include "formats/checkpoint.h"
#include "formats/json.h"
#include "models/tokenizers/tiktoken.h"

/* The contents of params.json and the shards, in Hugging Face's words. */
struct meta_params {
    uint64_t dim, n_layers, n_heads, n_kv_heads;
    const char *norm_eps, *rope_theta; /* as spelled */
    double rope_theta_value;
    const char *rope_scaling_factor; /* as spelled; NULL: not given */
    bool use_scaled_rope;

    /* From the tensors. */
    uint64_t vocab_size, intermediate_size;
    const char *dtype; /* "bfloat16" */
    bool tied;         /* no output.weight, or a release that ties it to the embedding */

    /* From tokenizer.model: the number of ranks of a tiktoken file, 0 for SentencePiece or none. */
    uint64_t n_ranks;
    bool sentencepiece;
};

/* The values of params.json, whose texts must outlive the result. The error names the key. */
bool meta_params_parse(const struct json *root, struct meta_params *ret_params, struct error *error);

/* Reports whether this is one of the small models of Llama 3.2, which tie their output. */
bool meta_is_small_llama32(const struct meta_params *params);

/* The texts of the files. */
void meta_write_config(const struct meta_params *params, struct buffer *out);
void meta_write_tokenizer_config(const struct meta_params *params, struct buffer *out);

/* tokenizer.json as TikTokenConverter makes it: the merges of each token are all of its pairs; and the 256 special
 * tokens after the ranks, of Llama 3.1 and later or of 3. Laid out as the tokenizers library saves it, merges as the
 * releases have them: "LEFT RIGHT". */
void meta_write_tokenizer(const struct tiktoken *tiktoken, bool llama31, struct buffer *out);

/* The `index`th special token of Llama 3, or of 3.1 and later. `out` has room for 64 bytes. */
enum { META_SPECIAL_TOKENS = 256 };
const char *meta_special_token(bool llama31, unsigned index, char *out);
