/* InternLM 2. conversion/internlm.py. InternLM 3 is a Llama with its own vocabulary, and without rope_freqs.weight,
 * which the converter writes for none of its models. */
#include "models/families/llama/llama.h"

/* Each key head's queries, key and value follow one another. */
static const struct relation_row tensors[] = {
    {"model.tok_embeddings", "token_embd", .parallel = "row"},
    {"output", "output", .parallel = "row"},
    {"model.layers.{}.attention.wqkv", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
     "(kv_head (share half pair + key half pair + value half pair)) ... -> "
     "(kv_head share pair half) ..., (kv_head key pair half) ..., (kv_head value half pair) ...",
     "kv_head/share"},
    {"model.layers.{}.attention.wo", "blk.{}.attn_output", .parallel = "column"},
    {"model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.feed_forward.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.feed_forward.w3", "blk.{}.ffn_up", .parallel = "row"},
    {"model.layers.{}.attention_norm", "blk.{}.attn_norm"},
    {"model.layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head = dimensions_get(dimensions, "head"), kv_head = dimensions_get(dimensions, "kv_head");
    if (head == 0 || kv_head == 0)
        return;
    dimensions_set(dimensions, "share", head / kv_head);
    dimensions_set(dimensions, "pair", dimensions_get(dimensions, "hidden") / head / 2);
}

const struct family internlm2_family = {
    .name = "internlm2",
    .summary = "InternLM 2",
    .hf = FAMILY_NAMES({"InternLM2ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"InternLM2ForCausalLM", "internlm2", NULL,
                           CONFIG_TABLES(silu_rows, CONFIG_ROWS({"bias", FROM_TENSOR, "blk.0.attn_output.bias"})),
                           OWN_CLASS_NOTE}),
    .keys = {base_keys},
    .vocabs = {&internlm2_vocab, &hf_internlm2_vocab},
    .dimensions = {qkv_dimensions},
    .add_dimensions = add_dimensions,
};

const struct family internlm3_family = {
    .name = "internlm3",
    .architecture = "llama",
    .summary = "InternLM 3",
    .hf = FAMILY_NAMES({"InternLM3ForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    .vocabs = {&internlm3_vocab, &hf_internlm3_vocab},
};
