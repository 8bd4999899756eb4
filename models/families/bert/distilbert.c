/* DistilBERT. conversion/bert.py, DistilBertModel. */
#include "models/families/bert/bert.h"

#include "base/text.h"

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

/* The class has these constants without a key; labels are those of its head. */
static const struct config_row common_rows[] = {
    {"activation", FROM_TEXT, .text = "'gelu'"},
    {"max_position_embeddings", FROM_ROWS, "position_embd.weight"},
    {"sinusoidal_pos_embds", FROM_TEXT, .text = "false"},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return text_starts_with(name, "pre_classifier") ? name
                                                    : bert_rename(arena, dimensions, direction, name, "distilbert.");
}

const struct family distilbert_family = {
    .name = "distilbert",
    .architecture = "bert",
    .summary = "DistilBERT",
    .hf = FAMILY_NAMES({"DistilBertModel"}, {"DistilBertForMaskedLM"}, {"DistilBertForSequenceClassification"}),
    .tensors = {tensors, bert_tensors},
    .keys = {KEYS({"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-12}), base_keys, bert_keys},
    .vocabs = {&wordpiece_vocab},
    .forms = CONFIG_FORMS({"DistilBertForSequenceClassification", "distilbert",
                           "tensor:cls.output.weight key:classifier.output_labels",
                           CONFIG_TABLES(common_rows, bert_label_rows)},
                          {"DistilBertForSequenceClassification", "distilbert", "tensor:cls.output.weight",
                           CONFIG_TABLES(common_rows, CONFIG_ROWS({"num_labels", FROM_ROWS, "cls.output.weight"}))},
                          {"DistilBertModel", "distilbert", NULL, CONFIG_TABLES(common_rows)}),
    .tokenizer_model = "bert",
    .told_by = "!tensor:token_types.weight",
    .dropped_prefixes = TEXTS("distilbert."),
    .rename = rename_tensor,
    .add_dimensions = bert_add_dimensions,
};
