/* RoBERTa, and XLM-RoBERTa, which differs in its tokenizer. conversion/bert.py.
 *
 * Positions count from pad_token_id + 1: the rows before it are cut off, which shortens the context. */
#include "models/families/bert/bert.h"

static const struct relation_row tensors[] = {
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

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
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
    .tensors = {tensors, bert_tensors},
    .forms = CONFIG_FORMS({"RobertaForSequenceClassification", "roberta", "tensor:cls.output.weight",
                           CONFIG_TABLES(roberta_config_rows, bert_label_rows)},
                          {"RobertaModel", "roberta", NULL, CONFIG_TABLES(roberta_config_rows)}),
    .tokenizer_model = "gpt2",
    .keys = {base_keys, roberta_keys, bert_keys},
    .vocabs = {&bpe_vocab, &wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .rename = rename_tensor,
    .add_dimensions = roberta_add_dimensions,
    .after_vocab = after_vocab,
};

const struct family xlm_roberta_family = {
    .name = "xlm-roberta",
    .architecture = "bert",
    .summary = "XLM-RoBERTa, bge-m3, multilingual E5",
    .hf = FAMILY_NAMES({"XLMRobertaModel"}, {"XLMRobertaForSequenceClassification"}),
    .tensors = {tensors, bert_tensors},
    .forms = CONFIG_FORMS({"XLMRobertaForSequenceClassification", "xlm-roberta", "tensor:cls.output.weight",
                           CONFIG_TABLES(roberta_config_rows, bert_label_rows)},
                          {"XLMRobertaModel", "xlm-roberta", NULL, CONFIG_TABLES(roberta_config_rows)}),
    .tokenizer_model = "t5",
    .keys = {base_keys, roberta_keys, bert_keys},
    .vocabs = {&xlmr_vocab},
    .dropped_prefixes = prefixes,
    .rename = rename_tensor,
    .add_dimensions = roberta_add_dimensions,
};
