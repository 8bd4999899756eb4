/* Nomic BERT, dense and with experts. conversion/bert.py. */
#include "models/families/bert/bert.h"

static const struct family_name names[] = {{"NomicBertModel"}, {0}};

static const struct relation_row tensors[] = {
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

/* Sets the context length of training; n_positions is the possible one. */
static bool emit_context_length(struct model_builder *builder, struct error *error)
{
    enum { V1_POSITIONS = 8192, V1_CONTEXT = 2048, V2_POSITIONS = 2048, V2_CONTEXT = 512, TRAINED = 2048 };
    double n_positions, n_trained;
    if (!builder_number(builder, "n_positions", 0, &n_positions, error) ||
        !builder_number(builder, "max_trained_positions", TRAINED, &n_trained, error))
        return false;
    if ((n_positions != V1_POSITIONS && n_positions != V2_POSITIONS) || n_trained != TRAINED)
        return error_set(error, "config.json: n_positions %g with max_trained_positions %g is not a known Nomic BERT",
                         n_positions, n_trained);
    if (hparams_find(builder->model->hparams, "max_position_embeddings|n_ctx") == NULL)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "context_length"),
                     n_positions == V1_POSITIONS ? V1_CONTEXT : V2_CONTEXT);
    return true;
}

/* Refuses what llama.cpp would compute as swiglu. */
static bool check_activation(struct model_builder *builder, struct error *error)
{
    const struct json *activation = hparams_get(builder->model->hparams, "activation_function");
    const char *name = json_string(activation, NULL);
    return json_string_is(activation, "swiglu") ||
           error_set(error, "config.json: activation_function is %.40s; Nomic BERT without experts needs swiglu",
                     name != NULL ? name : "missing");
}

static const struct key_row keys[] = {{.emit = emit_context_length}, {0}};
static const struct key_row dense_keys[] = {{.emit = check_activation, .since = NOMIC_ACTIVATION}, {0}};

static bool has_experts(const struct hparams *hparams)
{
    uint64_t every;
    return json_u64(hparams_get(hparams, "moe_every_n_layers"), &every) && every != 0;
}

/* Rows of the class in the model's own code. */
static const struct config_row common_rows[] = {
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
    .tensors = {tensors, bert_tensors},
    .forms = CONFIG_FORMS(
        {"NomicBertModel", "nomic_bert", "tensor:blk.0.ffn_gate.weight", CONFIG_TABLES(common_rows, config_rows)},
        {"NomicBertModel", "nomic_bert", NULL, CONFIG_TABLES(common_rows, config_dense_rows)}),
    .keys = {base_keys, dense_keys, keys, bert_keys},
    .vocabs = {&xlmr_vocab, &wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .add_dimensions = bert_add_dimensions,
};

const struct family nomic_bert_moe_family = {
    .name = "nomic-bert-moe",
    .summary = "Nomic BERT MoE",
    .hf = names,
    .tensors = {tensors, bert_tensors},
    .forms = CONFIG_FORMS(
        {"NomicBertModel", "nomic_bert", NULL, CONFIG_TABLES(num_experts_rows, common_rows, config_dense_rows)}),
    .keys = {base_keys, keys, bert_keys,
             KEYS({"moe_every_n_layers", GGUF_U32, REQUIRED, "moe_every_n_layers"},
                  {"expert_used_count", GGUF_U32, REQUIRED, "moe_top_k"})},
    .vocabs = {&xlmr_vocab, &wordpiece_vocab},
    .dropped_prefixes = prefixes,
    .applies = has_experts,
    .add_dimensions = bert_add_dimensions,
};
