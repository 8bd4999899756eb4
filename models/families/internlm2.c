/* InternLM 2. conversion/internlm.py. InternLM 3 is a Llama with a vocabulary of its own, but for
 * rope_freqs.weight, which the converter gives to no model of it. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"InternLM2ForCausalLM"}, {0}};
static const struct family_name names3[] = {{"InternLM3ForCausalLM"}, {0}};

/* Each key head has its queries, its key and its value after one another; "key" and "value" are 1. */
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

static void add_facts(struct facts *facts, const struct hparams *hparams)
{
    uint64_t head = facts_get(facts, "head"), kv_head = facts_get(facts, "kv_head");
    (void)hparams;
    if (head == 0 || kv_head == 0)
        return;
    facts_set(facts, "share", head / kv_head);
    facts_set(facts, "pair", facts_get(facts, "hidden") / head / 2);
    facts_set(facts, "key", 1);
    facts_set(facts, "value", 1);
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"bias", FROM_TENSOR, "blk.0.attn_output.bias"},
    {0},
};

static const struct config_form forms[] = {{"InternLM2ForCausalLM", "internlm2", NULL, config_rows, OWN_CLASS_NOTE},
                                           {0}};

const struct family internlm2_family = {
    .name = "internlm2",
    .summary = "InternLM 2",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys},
    .vocabs = {&internlm2_vocab},
    .add_facts = add_facts,
};

const struct family internlm3_family = {
    .name = "internlm3",
    .architecture = "llama",
    .summary = "InternLM 3",
    .hf = names3,
    .tensors = {llama_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    .vocabs = {&internlm3_vocab},
};
