/* BERT and the encoders with its layers. conversion/bert.py. */
#include "models/families/bert/bert.h"

#include "base/text.h"
#include "models/families/shared.h"

#include <stdlib.h>
#include <string.h>

/* BERT. conversion/bert.py. */

const struct relation_row bert_tensors[] = {
    {"embeddings.word_embeddings", "token_embd", .parallel = "row"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"embeddings.position_ids", NULL},
    {"pooler.dense", NULL},
    {"cls.predictions*", NULL},
    {"cls.seq_relationship*", NULL},
    /* the head is one layer, the output if there are labels, or two layers */
    {"classifier.dense", "cls", .when = "has:cls.output"},
    {"classifier.out_proj", "cls.output", .when = "has:cls"},
    {"classifier", "cls.output", .when = "labels !has:cls"},
    {"classifier", "cls", .when = "!labels !has:cls.output"},
    /* older spellings */
    {"embeddings.LayerNorm.gamma", "token_embd_norm.weight", .forward_only = true},
    {"embeddings.LayerNorm.beta", "token_embd_norm.bias", .forward_only = true},
    {"encoder.layer.{}.attention.output.LayerNorm.gamma", "blk.{}.attn_output_norm.weight", .forward_only = true},
    {"encoder.layer.{}.attention.output.LayerNorm.beta", "blk.{}.attn_output_norm.bias", .forward_only = true},
    {"encoder.layer.{}.output.LayerNorm.gamma", "blk.{}.layer_output_norm.weight", .forward_only = true},
    {"encoder.layer.{}.output.LayerNorm.beta", "blk.{}.layer_output_norm.bias", .forward_only = true},
    {"encoder.layer.{}.attention.self.query", "blk.{}.attn_q", "(head d) ...", "head"},
    {"encoder.layer.{}.attention.self.key", "blk.{}.attn_k", "(head d) ...", "head"},
    {"encoder.layer.{}.attention.self.value", "blk.{}.attn_v", "(head d) ...", "head"},
    {"encoder.layer.{}.attention.output.dense", "blk.{}.attn_output", .parallel = "column"},
    {"encoder.layer.{}.attention.output.LayerNorm", "blk.{}.attn_output_norm"},
    {"encoder.layer.{}.intermediate.dense", "blk.{}.ffn_up", .parallel = "row"},
    {"encoder.layer.{}.output.dense", "blk.{}.ffn_down", .parallel = "column"},
    {"encoder.layer.{}.output.LayerNorm", "blk.{}.layer_output_norm"},
    {0},
};

struct label {
    int64_t number;
    const struct json *text;
};

static int compare_labels(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Returns config.json's labels, unless they are the two that transformers makes up. */
static const struct json *labels(const struct hparams *hparams)
{
    const struct json *id2label = hparams_get(hparams, "id2label");
    bool is_made_up = json_count_members(id2label) == 2 && json_string_is(json_get(id2label, "0"), "LABEL_0");
    return !is_made_up && json_count_members(id2label) != 0 ? id2label : NULL;
}

static bool emit_labels(struct model_builder *builder, struct error *error)
{
    const struct json *id2label = labels(builder->model->hparams);
    size_t n_labels = 0;
    if (id2label == NULL)
        return true;
    struct label *sorted = memory_alloc(json_count_members(id2label) * sizeof *sorted);
    for (struct json_member item = {0}; json_next_member(id2label, &item);)
        sorted[n_labels++] = (struct label){strtoll(item.key, NULL, 10), item.value};
    qsort(sorted, n_labels, sizeof *sorted, compare_labels);

    struct buffer elements = {0};
    bool all_texts = true;
    for (size_t i = 0; i < n_labels && all_texts; i++) {
        size_t length;
        const char *text = json_string(sorted[i].text, &length);
        all_texts = text != NULL;
        if (all_texts)
            gguf_append_string(&elements, text, length);
    }
    free(sorted);
    if (!all_texts) {
        buffer_free(&elements);
        return error_set(error, "config.json: a label of id2label is not a string");
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, "classifier.output_labels"), GGUF_STRING, n_labels,
                   &elements);
    return true;
}

const struct key_row bert_keys[] = {
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {.emit = emit_pooling_type},
    {.emit = emit_labels},
    {0},
};

void bert_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    if (labels(hparams) != NULL)
        dimensions_set(dimensions, "labels", 1);
    const char *class_name = hparams_class(hparams);
    if (class_name != NULL && text_ends_with(class_name, "ForSequenceClassification"))
        dimensions_set(dimensions, "classifies", 1);
}

const char *bert_rename(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                        const char *name, const char *prefix)
{
    bool is_below =
        direction == BACKWARD && dimensions_get(dimensions, "classifies") != 0 && !text_starts_with(name, "classifier");
    return is_below ? arena_printf(arena, "%s%s", prefix, name) : name;
}

static const char *bert_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                      enum direction direction, const char *name)
{
    return bert_rename(arena, dimensions, direction, name, "bert.");
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu'"},
    {"max_position_embeddings", FROM_ROWS, "position_embd.weight"},
    {"type_vocab_size", FROM_ROWS, "token_types.weight"},
    {0},
};

const struct config_row bert_label_rows[] = {
    {"num_labels", FROM_ROWS, "cls.output.weight"},
    {"id2label", FROM_LABELS, "classifier.output_labels"},
    {"label2id", FROM_NUMBERS, "classifier.output_labels"},
    {0},
};

#define POOLER_NOTE                                                                                                    \
    "the GGUF lacks the pooler below the classifier, so transformers fills it with random numbers: take pooler.dense " \
    "from the original checkpoint"

const struct family bert_family = {
    .name = "bert",
    .summary = "BERT, bge, E5 and similar models",
    .hf = FAMILY_NAMES({"BertModel"}, {"BertForMaskedLM"}, {"BertForSequenceClassification"}, {"CamembertModel"}),
    .tensors = {bert_tensors},
    .forms =
        CONFIG_FORMS({"BertForSequenceClassification", "bert", "tensor:cls.output.weight",
                      CONFIG_TABLES(config_rows, bert_label_rows), POOLER_NOTE},
                     {"BertForSequenceClassification", "bert", "tensor:cls.weight",
                      CONFIG_TABLES(config_rows, CONFIG_ROWS({"num_labels", FROM_ROWS, "cls.weight"})), POOLER_NOTE},
                     {"BertModel", "bert", NULL, CONFIG_TABLES(config_rows)}),
    .tokenizer_model = "bert",
    .keys = {base_keys, bert_keys},
    .vocabs = {&wordpiece_vocab},
    .dropped_prefixes = TEXTS("bert."),
    .rename = bert_rename_tensor,
    .add_dimensions = bert_add_dimensions,
};

/* EuroBERT, Jina v5. conversion/bert.py. */

const struct family eurobert_family = {
    .name = "eurobert",
    .summary = "EuroBERT, Jina v5",
    .hf = FAMILY_NAMES({"EuroBertModel", "model."}, {"JinaEmbeddingsV5Model", "model."}),
    .tensors = {decoder_tensors},
    .forms = CONFIG_FORMS({"EuroBertModel", "eurobert", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows,
                                         CONFIG_ROWS({"mask_token_id", FROM_KEY, ".tokenizer.ggml.mask_token_id"}))}),
    .keys = {base_keys, KEYS({"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                             {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"}, {.emit = emit_pooling_type})},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .keys_before_vocab = KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 0}),
};

/* DistilBERT. conversion/bert.py, DistilBertModel. */

static const struct relation_row distilbert_tensors[] = {
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

static const char *distilbert_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                            enum direction direction, const char *name)
{
    return text_starts_with(name, "pre_classifier") ? name
                                                    : bert_rename(arena, dimensions, direction, name, "distilbert.");
}

const struct family distilbert_family = {
    .name = "distilbert",
    .architecture = "bert",
    .summary = "DistilBERT",
    .hf = FAMILY_NAMES({"DistilBertModel"}, {"DistilBertForMaskedLM"}, {"DistilBertForSequenceClassification"}),
    .tensors = {distilbert_tensors, bert_tensors},
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
    .rename = distilbert_rename_tensor,
    .add_dimensions = bert_add_dimensions,
};

/* RoBERTa, and XLM-RoBERTa, which differs in its tokenizer. conversion/bert.py.
 *
 * Positions count from pad_token_id + 1: the rows before it are cut off, which shortens the context. */

static const struct relation_row roberta_tensors[] = {
    {"embeddings.position_embeddings", "position_embd", "(padding + row) c -> row c"}, {0}};

void roberta_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    enum { MAX_PADDING = 1 << 24 };
    uint64_t padding;
    bool has_padding = json_u64(hparams_get(hparams, "pad_token_id"), &padding) && padding < MAX_PADDING;
    dimensions_set(dimensions, "padding", has_padding ? padding + 1 : 0);
    bert_add_dimensions(dimensions, hparams);
}

static bool compute_context_length(const struct model_builder *builder, double *ret_value, struct error *error)
{
    if (!builder_number(builder, "max_position_embeddings", -1, ret_value, error))
        return false;
    if (*ret_value < (double)dimensions_get(&builder->dimensions, "padding"))
        return error_set(error, "config.json: max_position_embeddings is missing, or less than pad_token_id");
    *ret_value -= (double)dimensions_get(&builder->dimensions, "padding");
    return true;
}

const struct key_row roberta_keys[] = {{"context_length", GGUF_U32, .compute = compute_context_length}, {0}};

/* Sets the number of token types, which the keys of a byte-level tokenizer lack. */
static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const struct key_row rows[] = {
        {".tokenizer.ggml.token_type_count", GGUF_U32, OR_DEFAULT, "type_vocab_size", 1}, {0}};
    if (gguf_kvs_find(&builder->model->kvs, "tokenizer.ggml.token_type_count") != NULL)
        return true;
    return builder_emit(builder, rows, error);
}

static const char *const prefixes[] = {"roberta.", "bert.", NULL};

static const char *roberta_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                         enum direction direction, const char *name)
{
    return bert_rename(arena, dimensions, direction, name, "roberta.");
}

const struct config_row roberta_config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu'"},
    {"max_position_embeddings", FROM_SUM, "context_length", ".tokenizer.ggml.padding_token_id", .plus = 1},
    {"type_vocab_size", FROM_ROWS, "token_types.weight"},
    {0},
};

const struct family roberta_family = {
    .name = "roberta",
    .architecture = "bert",
    .summary = "RoBERTa",
    .hf = FAMILY_NAMES({"RobertaModel"}, {"RobertaForSequenceClassification"}),
    .tensors = {roberta_tensors, bert_tensors},
    .forms = CONFIG_FORMS({"RobertaForSequenceClassification", "roberta", "tensor:cls.output.weight",
                           CONFIG_TABLES(roberta_config_rows, bert_label_rows)},
                          {"RobertaModel", "roberta", NULL, CONFIG_TABLES(roberta_config_rows)}),
    .tokenizer_model = "gpt2",
    .keys = {base_keys, roberta_keys, bert_keys},
    .vocabs = {&bpe_vocab, &wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .rename = roberta_rename_tensor,
    .add_dimensions = roberta_add_dimensions,
    .after_vocab = after_vocab,
};

const struct family xlm_roberta_family = {
    .name = "xlm-roberta",
    .architecture = "bert",
    .summary = "XLM-RoBERTa, bge-m3, multilingual E5",
    .hf = FAMILY_NAMES({"XLMRobertaModel"}, {"XLMRobertaForSequenceClassification"}),
    .tensors = {roberta_tensors, bert_tensors},
    .forms = CONFIG_FORMS({"XLMRobertaForSequenceClassification", "xlm-roberta", "tensor:cls.output.weight",
                           CONFIG_TABLES(roberta_config_rows, bert_label_rows)},
                          {"XLMRobertaModel", "xlm-roberta", NULL, CONFIG_TABLES(roberta_config_rows)}),
    .tokenizer_model = "t5",
    .keys = {base_keys, roberta_keys, bert_keys},
    .vocabs = {&xlmr_vocab},
    .dropped_prefixes = prefixes,
    .rename = roberta_rename_tensor,
    .add_dimensions = roberta_add_dimensions,
};
