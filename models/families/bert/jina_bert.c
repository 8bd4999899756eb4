/* Jina's embeddings, version 2 and 3. conversion/bert.py. */
#include "formats/documents.h"
#include "models/families/bert/bert.h"

#include <string.h>

/* The second is transformers' name, which the converter does not know. */
static const struct family_name names3[] = {{"XLMRobertaModel"}, {"JinaEmbeddingsV3Model"}, {0}};

#define LAYER "encoder.layer.{}."

static const struct relation_row tensors[] = {
    {LAYER "attention.self.layer_norm_q", "blk.{}.attn_q_norm"},
    {LAYER "attention.self.layer_norm_k", "blk.{}.attn_k_norm"},
    {LAYER "layer_norm_1", "blk.{}.attn_norm_2"},
    {LAYER "mlp.gated_layers", "blk.{}.ffn_up", "(half f) c -> (half f) c", "f"},
    {LAYER "mlp.up_gated_layer", "blk.{}.ffn_up", "(half f) c -> (half f) c", "f", .forward_only = true},
    {LAYER "mlp.gated_layers_v", "blk.{}.ffn_up", .parallel = "row", .forward_only = true},
    {LAYER "mlp.gated_layers_w", "blk.{}.ffn_gate", .parallel = "row"},
    {LAYER "mlp.wo", "blk.{}.ffn_down", .parallel = "column"},
    {LAYER "mlp.down_layer", "blk.{}.ffn_down", .parallel = "column", .forward_only = true},
    {LAYER "mlp.layernorm", "blk.{}.layer_output_norm"},
    {LAYER "layer_norm_2", "blk.{}.layer_output_norm", .forward_only = true},
    {0},
};

#define LAYER3 "encoder.layers.{}."

static const struct relation_row tensors3[] = {
    {"emb_ln", "token_embd_norm"},
    {LAYER3 "mixer.Wqkv", "blk.{}.attn_qkv", "(part head d) ...", "head"},
    {LAYER3 "mixer.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {LAYER3 "norm1", "blk.{}.attn_output_norm"},
    {LAYER3 "mlp.fc1", "blk.{}.ffn_up", .parallel = "row"},
    {LAYER3 "mlp.fc2", "blk.{}.ffn_down", .parallel = "column"},
    {LAYER3 "norm2", "blk.{}.layer_output_norm"},
    {0},
};

static enum vocab_result add_byte_level(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum { TOKEN_TYPES = 2 };
    struct document *tokenizer;
    if (!document_open(input->checkpoint, "tokenizer.json", &tokenizer, error))
        return VOCAB_FAILED;
    bool by_whitespace =
        json_string_is(json_get(json_get(document_root(tokenizer), "pre_tokenizer"), "type"), "Whitespace");
    document_close(tokenizer);
    enum vocab_result result = vocab_add(&bpe_vocab, kvs, input, error);
    if (result != VOCAB_ADDED)
        return result;
    if (by_whitespace) {
        gguf_set_text(kvs, "tokenizer.ggml.model", "whitespace");
        gguf_set_text(kvs, "tokenizer.ggml.pre", "whitespace");
    }
    gguf_set_u32(kvs, "tokenizer.ggml.token_type_count", TOKEN_TYPES);
    return VOCAB_ADDED;
}

/* Adds the vocabulary of the class in tokenizer_config.json. */
static enum vocab_result add_by_class(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    struct document *config;
    if (!document_open(input->checkpoint, "tokenizer_config.json", &config, error))
        return VOCAB_FAILED;
    const struct json *class = json_get(document_root(config), "tokenizer_class");
    bool is_bert = json_string_is(class, "BertTokenizer"), is_roberta = json_string_is(class, "RobertaTokenizer");
    document_close(config);
    if (is_bert)
        return vocab_add(&wordpiece_vocab, kvs, input, error);
    if (is_roberta)
        return add_byte_level(kvs, input, error);
    error_set(error, "tokenizer_config.json: tokenizer_class is neither BertTokenizer nor RobertaTokenizer");
    return VOCAB_FAILED;
}

static const struct vocab jina_vocab = {.name = "Jina's", .file = "tokenizer.json", .add = add_by_class};

/* Leaves out adapters for tasks, which the converter writes into files of their own. */
static const char *leave_out_adapters(struct arena *arena, const struct dimensions *dimensions,
                                      enum direction direction, const char *name)
{
    return direction == FORWARD && strstr(name, ".0.lora_") != NULL ? NULL : name;
}

/* Reports whether the model is Jina 3, which has adapters for tasks. */
static bool has_adapters(const struct hparams *hparams)
{
    return json_count(hparams_get(hparams, "lora_adaptations")) > 0;
}

static bool note_adapters(struct model_builder *builder, struct error *error)
{
    if (!has_adapters(builder->model->hparams))
        return true;
    checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                    "the adapters to tasks, which the converter writes as files of their own, are left out");
    return true;
}

static bool is_version_3(const struct hparams *hparams)
{
    const char *class_name = hparams_class(hparams);
    return has_adapters(hparams) || (class_name != NULL && strcmp(class_name, names3[1].name) == 0);
}

const struct family jina_bert_v2_family = {
    .name = "jina-bert-v2",
    .summary = "Jina embeddings v2",
    .hf = FAMILY_NAMES({"JinaBertModel"}, {"JinaBertForMaskedLM"}),
    .tensors = {tensors, bert_tensors},
    .keys = {base_keys, bert_keys},
    .vocabs = {&jina_vocab},
    .dropped_prefixes = TEXTS("bert."),
    .add_dimensions = bert_add_dimensions,
};

const struct family jina_bert_v3_family = {
    .name = "jina-bert-v3",
    .summary = "Jina embeddings v3",
    .hf = names3,
    .tensors = {tensors3, bert_tensors},
    .forms = CONFIG_FORMS({"JinaEmbeddingsV3Model", "jina_embeddings_v3", NULL, CONFIG_TABLES(roberta_config_rows)}),
    .keys = {base_keys, roberta_keys, bert_keys},
    .vocabs = {&xlmr_vocab},
    .applies = is_version_3,
    .dropped_prefixes = TEXTS("roberta.", "bert."),
    .dropped_parts = TEXTS(".parametrizations", ".original"),
    .rename = leave_out_adapters,
    .add_dimensions = roberta_add_dimensions,
    .adjust = note_adapters,
};
