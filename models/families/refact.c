/* Refact. conversion/refact.py. */
#include "models/families/shared.h"
#include "models/tokenizers/tokenizer_files.h"

#include <math.h>

/* All heads share one key and one value: "kv_head" is 1. */
static const struct relation_row tensors[] = {
    {"transformer.h.{}.attn.q", "blk.{}.attn_q", "(head d) ...", "head"},
    {"transformer.h.{}.attn.kv", "blk.{}.attn_k, blk.{}.attn_v", "(kv_head (k + v)) c -> (kv_head k) c, (kv_head v) c",
     "kv_head"},
    {"transformer.h.{}.mlp.gate_up_proj", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up"},
    {0},
};

/* Computes two thirds of four times the width, rounded up to a multiple. */
static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    enum { MULTIPLE = 256 };
    double width;
    if (!builder_number(builder, "n_embd", 0, &width, error))
        return false;
    *ret_value = ceil(trunc(8 * width / 3) / MULTIPLE) * MULTIPLE;
    return true;
}

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.head_count_kv", GGUF_U32, ALWAYS, .value = 1},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

/* Adds the end of a turn after all other keys. */
static bool add_turn_end(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const char *const types[] = {"eot", NULL};
    const struct special_vocab_options options = {.more_types = types};
    struct tokenizer_files files;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool written = special_vocab_write(&builder->model->kvs, input, &files, &options, error);
    tokenizer_files_free(&files);
    return written;
}

const struct family refact_family = {
    .name = "refact",
    .summary = "Refact",
    .hf = FAMILY_NAMES({"GPTRefactForCausalLM"}),
    .tensors = {tensors, gpt_tensors},
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"kv_head", NULL, 1})},
    .after_vocab = add_turn_end,
};
