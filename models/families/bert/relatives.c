/* Encoders that BERT was developed into, with positions of another kind and gated networks. conversion/bert.py. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/families/bert/bert.h"

#include <math.h>
#include <string.h>

/* Jina's embeddings, version 2 and 3. conversion/bert.py. */

/* The second is transformers' name, which the converter does not know. */
static const struct family_name names3[] = {{"XLMRobertaModel"}, {"JinaEmbeddingsV3Model"}, {0}};

#define LAYER "encoder.layer.{}."

static const struct relation_row jina_bert_tensors[] = {
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
    .tensors = {jina_bert_tensors, bert_tensors},
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

/* ModernBERT. conversion/bert.py, ModernBertModel. */

static const struct relation_row modern_bert_tensors[] = {
    {"embeddings.tok_embeddings", "token_embd", .parallel = "row"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"layers.{}.attn_norm", "blk.{}.attn_norm"},
    {"layers.{}.attn.Wqkv", "blk.{}.attn_qkv", "(part head d) ...", "head"},
    {"layers.{}.attn.Wo", "blk.{}.attn_output", .parallel = "column"},
    {"layers.{}.mlp_norm", "blk.{}.ffn_norm"},
    {"layers.{}.mlp.Wi", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"layers.{}.mlp.Wo", "blk.{}.ffn_down", .parallel = "column"},
    {"head.dense", "cls"},
    {"head.norm", "cls.norm"},
    {"classifier", "cls.output"},
    {"decoder*", NULL},
    {0},
};

static const struct key_row modern_bert_keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "local_attention"},
    {"attention.sliding_window_pattern", GGUF_U32, IF_PRESENT, "global_attn_every_n_layers"},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"hidden_activation", GGUF_STRING, IF_PRESENT, "hidden_activation"},
    {0},
};

static const char *modern_bert_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                             enum direction direction, const char *name)
{
    return text_starts_with(name, "head.") ? name : bert_rename(arena, dimensions, direction, name, "model.");
}

static const struct config_row modern_bert_common_rows[] = {
    {"global_rope_theta", FROM_KEY, "rope.freq_base"},
    {"local_rope_theta", FROM_KEY, "rope.freq_base_swa"},
    {"rope_theta", FROM_NOWHERE},
    {"cls_token_id", FROM_KEY, ".tokenizer.ggml.bos_token_id"},
    {"sep_token_id", FROM_KEY, ".tokenizer.ggml.eos_token_id"},
    {"norm_bias", FROM_TENSOR, "output_norm.bias"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {0},
};

/* Notes that the converter writes norm_eps under a key that llama.cpp does not read for this architecture. */
static void note_epsilon(const struct model_builder *builder)
{
    if (hparams_find(builder->model->hparams, "layer_norm_eps|layer_norm_epsilon|norm_epsilon") == NULL)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp refuses this file without attention.layer_norm_epsilon, which the"
                        " converter does not write from norm_eps; give it the value of norm_eps with"
                        " -o override-kv=modern-bert.attention.layer_norm_epsilon=float:1e-05");
}

/* Notes that the head for masked words, on which the converter fails, is left out. */
static bool add_notes(struct model_builder *builder, struct error *error)
{
    const struct checkpoint *checkpoint = builder->model->checkpoint;
    note_epsilon(builder);
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        if (text_starts_with(checkpoint->tensors->tensors[i].name, "decoder.")) {
            checkpoint_note(checkpoint, SUBJECT_GGUF,
                            "the head for masked words is left out; the converter fails on it");
            break;
        }
    return true;
}

const struct family modern_bert_family = {
    .name = "modern-bert",
    .summary = "ModernBERT",
    .hf = FAMILY_NAMES({"ModernBertModel"}, {"ModernBertForMaskedLM"}, {"ModernBertForSequenceClassification"}),
    .tensors = {modern_bert_tensors},
    .forms =
        CONFIG_FORMS({"ModernBertForSequenceClassification", "modernbert", "tensor:cls.output.weight",
                      CONFIG_TABLES(mlp_bias_rows, modern_bert_common_rows, bert_label_rows,
                                    CONFIG_ROWS({"classifier_bias", FROM_TENSOR, "cls.bias"}))},
                     {"ModernBertModel", "modernbert", NULL, CONFIG_TABLES(mlp_bias_rows, modern_bert_common_rows)}),
    .keys = {base_keys, bert_keys, modern_bert_keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .add_dimensions = bert_add_dimensions,
    .rename = modern_bert_rename_tensor,
    .adjust = add_notes,
    .keys_before_vocab = KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 1},
                              {".tokenizer.ggml.add_eos_token", GGUF_BOOL, ALWAYS, .value = 1},
                              {".tokenizer.ggml.add_sep_token", GGUF_BOOL, ALWAYS, .value = 1}),
};

/* NeoBERT. conversion/bert.py, NeoBert. */

static const struct relation_row neo_bert_tensors[] = {
    {"decoder*", NULL},
    {"dense", "cls"},
    {"classifier", "cls.output"},
    {"encoder", "token_embd", .parallel = "row"},
    {"layer_norm", "enc.output_norm"},
    {"transformer_encoder.{}.qkv", "blk.{}.attn_qkv", "(head part d) ...", "head"},
    {"transformer_encoder.{}.wo", "blk.{}.attn_output", .parallel = "column"},
    {"transformer_encoder.{}.ffn.w12", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"transformer_encoder.{}.ffn.w3", "blk.{}.ffn_down", .parallel = "column"},
    {"transformer_encoder.{}.attention_norm", "blk.{}.attn_norm"},
    {"transformer_encoder.{}.ffn_norm", "blk.{}.ffn_norm"},
    {0},
};

static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width;
    if (!builder_number(builder, "intermediate_size", 0, &width, error))
        return false;
    *ret_value = trunc(2 * width / 3);
    return true;
}

static const struct key_row neo_bert_keys[] = {
    {"feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {"rope.freq_base", GGUF_F32, ALWAYS, .value = 10000},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "norm_eps", 1e-6},
    {"pooling_type", GGUF_U32, ALWAYS, .value = 2}, /* the first token */
    {0},
};

/* Returns the width before the class reduces it to two thirds. */
static const char *make_width(const struct config_material *material)
{
    double width;
    bool known = config_number_of_layer(material, "feed_forward_length", 0, &width);
    return known ? arena_printf(material->arena, "%.0f", ceil(width * 3 / 2)) : NULL;
}

static const char *neo_bert_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const char *name)
{
    return text_starts_with(name, "dense.") ? name : bert_rename(arena, dimensions, direction, name, "model.");
}

static const struct config_row neo_bert_common_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'SwiGLU'"},
    {"intermediate_size", .make = make_width},
    {"max_length", FROM_KEY, "context_length"},
    {0},
};

const struct family neo_bert_family = {
    .name = "neo-bert",
    .summary = "NeoBERT",
    .hf = FAMILY_NAMES({"NeoBERT"}, {"NeoBERTLMHead"}, {"NeoBERTForSequenceClassification"}),
    .tensors = {neo_bert_tensors},
    .forms = CONFIG_FORMS({"NeoBERTForSequenceClassification", "neobert", "tensor:cls.output.weight",
                           CONFIG_TABLES(neo_bert_common_rows, bert_label_rows), OWN_CLASS_NOTE},
                          {"NeoBERT", "neobert", NULL, CONFIG_TABLES(neo_bert_common_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, bert_keys, neo_bert_keys},
    .vocabs = {&wordpiece_vocab},
    .dropped_prefixes = TEXTS("model."),
    .add_dimensions = bert_add_dimensions,
    .rename = neo_bert_rename_tensor,
};

/* Nomic BERT, dense and with experts. conversion/bert.py. */

static const struct family_name names[] = {{"NomicBertModel"}, {0}};

static const struct relation_row nomic_bert_tensors[] = {
    {"emb_ln", "token_embd_norm"},
    {"encoder.layers.{}.attn.Wqkv", "blk.{}.attn_qkv", "(part head d) ...", "head"},
    {"encoder.layers.{}.attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {"encoder.layers.{}.norm1", "blk.{}.attn_output_norm"},
    {"encoder.layers.{}.mlp.fc11", "blk.{}.ffn_up", .parallel = "row", .when = "has:blk.{}.ffn_gate"},
    {"encoder.layers.{}.mlp.fc12", "blk.{}.ffn_gate", .parallel = "row"},
    {"encoder.layers.{}.mlp.fc2", "blk.{}.ffn_down", .parallel = "column"},
    {"encoder.layers.{}.norm2", "blk.{}.layer_output_norm"},
    {"encoder.layers.{}.mlp.fc1", "blk.{}.ffn_up", .parallel = "row", .when = "!has:blk.{}.ffn_gate"},
    {"encoder.layers.{}.mlp.router.layer", "blk.{}.ffn_gate_inp"},
    {"encoder.layers.{}.mlp.experts.mlp.w1", "blk.{}.ffn_up_exps.weight", "(expert f) c -> expert f c", "f"},
    {"encoder.layers.{}.mlp.experts.mlp.w2", "blk.{}.ffn_down_exps.weight", "(expert f) c -> expert c f", "f"},
    {"encoder.layers.{}.mlp.experts.bias", NULL},
    {0},
};

/* Reports whether config.json is as transformers 5 saves it, whose class has common names for all. */
static bool is_of_transformers(const struct hparams *hparams)
{
    return hparams_get(hparams, "n_positions") == NULL && hparams_get(hparams, "activation_function") == NULL &&
           hparams_get(hparams, "max_position_embeddings") != NULL;
}

static bool check_text(const struct hparams *hparams, const char *key, const char *needed, struct error *error)
{
    const struct json *found = hparams_get(hparams, key);
    const char *name = json_string(found, NULL);
    return json_string_is(found, needed) ||
           error_set(error, "config.json: %s is %.40s; Nomic BERT without experts needs %s", key,
                     name != NULL ? name : "missing", needed);
}

/* Sets the context length of training; n_positions is the possible one. */
static bool emit_context_length(struct model_builder *builder, struct error *error)
{
    enum { V1_POSITIONS = 8192, V1_CONTEXT = 2048, V2_POSITIONS = 2048, V2_CONTEXT = 512, TRAINED = 2048 };
    const struct hparams *hparams = builder->model->hparams;
    double n_positions, n_trained;
    if (is_of_transformers(hparams)) {
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json has the keys of transformers 5 instead of n_positions; the converter fails on "
                        "that");
        return check_text(hparams, "hidden_act", "silu", error);
    }
    if (!builder_number(builder, "n_positions", 0, &n_positions, error) ||
        !builder_number(builder, "max_trained_positions", TRAINED, &n_trained, error))
        return false;
    if ((n_positions != V1_POSITIONS && n_positions != V2_POSITIONS) || n_trained != TRAINED)
        return error_set(error, "config.json: n_positions %g with max_trained_positions %g is not a known Nomic BERT",
                         n_positions, n_trained);
    if (hparams_find(hparams, "max_position_embeddings|n_ctx") == NULL)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "context_length"),
                     n_positions == V1_POSITIONS ? V1_CONTEXT : V2_CONTEXT);
    return true;
}

/* Refuses what llama.cpp would compute as swiglu. */
static bool check_activation(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    return is_of_transformers(hparams) || check_text(hparams, "activation_function", "swiglu", error);
}

static const struct key_row nomic_bert_keys[] = {{.emit = emit_context_length}, {0}};
static const struct key_row dense_keys[] = {{.emit = check_activation, .since = NOMIC_ACTIVATION}, {0}};

static bool has_experts(const struct hparams *hparams)
{
    uint64_t every;
    return json_u64(hparams_get(hparams, "moe_every_n_layers"), &every) && every != 0;
}

/* Rows of the class in the model's own code. */
static const struct config_row nomic_bert_common_rows[] = {
    {"n_embd", FROM_KEY, "embedding_length"},
    {"n_head", FROM_KEY, "attention.head_count"},
    {"n_inner", FROM_KEY, "feed_forward_length"},
    {"n_layer", FROM_KEY, "block_count"},
    {"layer_norm_epsilon", FROM_KEY, "attention.layer_norm_epsilon"},
    {"rotary_emb_base", FROM_KEY, "rope.freq_base"},
    {"type_vocab_size", FROM_ROWS, "token_types.weight"},
    {"rotary_emb_fraction", FROM_TEXT, .text = "1.0"},
    {"prenorm", FROM_TEXT, .text = "false"},
    {"qkv_proj_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {"mlp_fc1_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {"mlp_fc2_bias", FROM_TENSOR, "blk.0.ffn_down.bias"},
    {"causal", FROM_TEXT, .text = "false"},
    {"max_trained_positions", FROM_TEXT, .text = "2048"},
    {0},
};

static const struct config_row config_rows[] = {
    {"n_positions", FROM_TEXT, .text = "8192"},
    {"activation_function", FROM_TEXT, .text = "'swiglu'"},
    {0},
};

static const struct config_row config_dense_rows[] = {
    {"n_positions", FROM_TEXT, .text = "2048"},
    {"activation_function", FROM_TEXT, .text = "'gelu'"},
    {0},
};

static const char *const prefixes[] = {"bert.", NULL};

const struct family nomic_bert_family = {
    .name = "nomic-bert",
    .summary = "Nomic BERT",
    .hf = names,
    .tensors = {nomic_bert_tensors, bert_tensors},
    .forms =
        CONFIG_FORMS({"NomicBertModel", "nomic_bert", "tensor:blk.0.ffn_gate.weight",
                      CONFIG_TABLES(nomic_bert_common_rows, config_rows)},
                     {"NomicBertModel", "nomic_bert", NULL, CONFIG_TABLES(nomic_bert_common_rows, config_dense_rows)}),
    .keys = {base_keys, dense_keys, nomic_bert_keys, bert_keys},
    .vocabs = {&xlmr_vocab, &wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .add_dimensions = bert_add_dimensions,
};

const struct family nomic_bert_moe_family = {
    .name = "nomic-bert-moe",
    .summary = "Nomic BERT MoE",
    .hf = names,
    .tensors = {nomic_bert_tensors, bert_tensors},
    .forms = CONFIG_FORMS({"NomicBertModel", "nomic_bert", NULL,
                           CONFIG_TABLES(num_experts_rows, nomic_bert_common_rows, config_dense_rows)}),
    .keys = {base_keys, nomic_bert_keys, bert_keys,
             KEYS({"moe_every_n_layers", GGUF_U32, REQUIRED, "moe_every_n_layers"},
                  {"expert_used_count", GGUF_U32, REQUIRED, "moe_top_k"})},
    .vocabs = {&xlmr_vocab, &wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .applies = has_experts,
    .add_dimensions = bert_add_dimensions,
};
