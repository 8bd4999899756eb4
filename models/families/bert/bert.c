/* BERT. conversion/bert.py. */
#include "models/families/bert/bert.h"

#include "base/text.h"
#include "models/families/shared.h"

#include <stdlib.h>
#include <string.h>

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

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
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
    .rename = rename_tensor,
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
