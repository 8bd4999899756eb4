/* The decoder of WavTokenizer, which makes sound from OuteTTS's tokens: convolutions, and one layer of attention.
 * conversion/wavtokenizer.py. */
#include "base/text.h"
#include "models/families/shared.h"

#define POSNET   "backbone.posnet.{}."
#define CONVNEXT "backbone.convnext.{}."

static const struct relation_row tensors[] = {
    {"backbone.embedding", "token_embd", .parallel = "row"},
    {"backbone.norm", "token_embd_norm"},
    {"backbone.embed", "conv1d"},
    {"backbone.final_layer_norm", "output_norm"},
    {"head.out", "output", .parallel = "row"},
    {CONVNEXT "dwconv", "convnext.{}.dw"},
    {CONVNEXT "norm", "convnext.{}.norm"},
    {CONVNEXT "pwconv1", "convnext.{}.pw1"},
    {CONVNEXT "pwconv2", "convnext.{}.pw2"},
    {CONVNEXT "gamma", "convnext.{}.gamma"},
    {POSNET "conv1", "posnet.{}.conv1"},
    {POSNET "conv2", "posnet.{}.conv2"},
    {POSNET "norm", "posnet.{}.attn_norm"},
    {POSNET "norm1", "posnet.{}.norm1"},
    {POSNET "norm2", "posnet.{}.norm2"},
    {POSNET "q", "posnet.{}.attn_q"},
    {POSNET "k", "posnet.{}.attn_k"},
    {POSNET "v", "posnet.{}.attn_v"},
    {POSNET "proj_out", "posnet.{}.attn_output"},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const of_training[] = {"codebook.cluster_size", "codebook.embed_avg", "codebook.inited"};
    for (size_t i = 0; direction == FORWARD && i < sizeof of_training / sizeof *of_training; i++)
        if (text_ends_with(name, of_training[i]))
            return NULL;
    return name;
}

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"features_length", GGUF_U32, REQUIRED, "n_embd_features"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_ff"},
    {"attention.group_norm_epsilon", GGUF_F32, REQUIRED, "group_norm_epsilon"},
    {"attention.group_norm_groups", GGUF_U32, REQUIRED, "group_norm_groups"},
    {"posnet.embedding_length", GGUF_U32, REQUIRED, "posnet.n_embd"},
    {"posnet.block_count", GGUF_U32, REQUIRED, "posnet.n_layer"},
    {"convnext.embedding_length", GGUF_U32, REQUIRED, "convnext.n_embd"},
    {"convnext.block_count", GGUF_U32, REQUIRED, "convnext.n_layer"},
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {0},
};

const struct family wavtokenizer_dec_family = {
    .name = "wavtokenizer-dec",
    .summary = "WavTokenizer decoder",
    .hf = FAMILY_NAMES({"WavTokenizerDec"}),
    .tensors = {tensors},
    .keys = {base_keys, keys},
    .vocabs = {&no_vocab},
    .rename = rename_tensor,
};
