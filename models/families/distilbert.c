/* DistilBERT. conversion/bert.py, DistilBertModel. */
#include "models/families/bert.h"

static const struct family_name names[] = {
    {"DistilBertModel"}, {"DistilBertForMaskedLM"}, {"DistilBertForSequenceClassification"}, {0}};

static const struct relation_row tensors[] = {
    {"vocab_*", NULL},
    {"transformer.layer.{}.attention.q_lin", "blk.{}.attn_q", .parallel = "row"},
    {"transformer.layer.{}.attention.k_lin", "blk.{}.attn_k", .parallel = "row"},
    {"transformer.layer.{}.attention.v_lin", "blk.{}.attn_v", .parallel = "row"},
    {"transformer.layer.{}.attention.out_lin", "blk.{}.attn_output", .parallel = "column"},
    {"transformer.layer.{}.sa_layer_norm", "blk.{}.attn_output_norm"},
    {"transformer.layer.{}.ffn.lin1", "blk.{}.ffn_up", .parallel = "row"},
    {"transformer.layer.{}.ffn.lin2", "blk.{}.ffn_down", .parallel = "column"},
    {"transformer.layer.{}.output_layer_norm", "blk.{}.layer_output_norm"},
    {"pre_classifier", "cls"},
    {"classifier", "cls.output"},
    {0},
};

static const struct key_row first_keys[] = {{"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-12}, {0}};

static const char *const prefixes[] = {"distilbert.", NULL};

const struct family distilbert_family = {
    .name = "distilbert",
    .architecture = "bert",
    .summary = "DistilBERT",
    .hf = names,
    .tensors = {tensors, bert_tensors},
    .keys = {first_keys, base_keys, bert_keys},
    .vocabs = {&wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .add_facts = bert_add_facts,
};
