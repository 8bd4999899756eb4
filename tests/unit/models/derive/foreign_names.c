/* Weights of other frameworks under Hugging Face's names. Expected names and transposes are those of transformers 4.57:
 * rename_key_and_reshape_tensor(), convert_tf_weight_name_to_pt_weight_name(), and for checkpoints of TensorFlow 1
 * load_tf_weights_in_bert() and load_tf_weights_in_gpt2(); of Megatron-Core those that Megatron-Bridge maps. */
#include "models/derive/derive.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"
#include "tests/unit/unreached.h"
#include "tests/unit/write_safetensors.h"

#include <stdlib.h>

#define LLAMA "llama\", \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"hidden_size\": 8, \"x\": \""

#define GROUPED                                                                                                        \
    "llama\", \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"hidden_size\": 8, \"vocab_size\": 2, "         \
    "\"num_hidden_layers\": 2, \"x\": \""

/* Tensors are ramps: 0, 1, 2 ... */
static const struct {
    const char *model_type, *there, *here; /* "name: values" for each tensor */
} rows[] = {
    {"bert", "params.bert.encoder.layer.0.attention.self.query.kernel 2 3",
     "bert.encoder.layer.0.attention.self.query.weight: 0 3 1 4 2 5"},
    {"bert",
     "embeddings.LayerNorm.scale 0 2, embeddings.LayerNorm.bias 0 2, embeddings.word_embeddings.embedding 2 2, "
     "conv.kernel 1 3x2",
     "conv.weight: 0 3 1 4 2 5, embeddings.LayerNorm.bias: 0 1, embeddings.LayerNorm.weight: 0 1, "
     "embeddings.word_embeddings.weight: 0 1 2 3"},
    {"gpt2", "transformer.h.0.attn.c_attn.kernel 3 2", "transformer.h.0.attn.c_attn.weight: 0 2 4 1 3 5"},
    {"none-of-ours", "a.kernel 2 3", "a.kernel: 0 1 2 3 4 5"},
    {"bert", "a.weight 0 2, b.scale 0 2", "a.weight: 0 1, b.scale: 0 1"}, /* no mark of Flax */

    {"bert",
     "bert/tf_bert_model/bert/encoder/layer_._0/attention/self/query/kernel:0 2 3, "
     "bert/tf_bert_model/bert/embeddings/LayerNorm/gamma:0 0 2, bert/tf_bert_model/bert/embeddings/LayerNorm/beta:0 0 "
     "2, "
     "bert/tf_bert_model/bert/embeddings/position_embeddings/embeddings:0 0 2, "
     "bert/tf_bert_model/bert/embeddings/word_embeddings/weight:0 0 2",
     "bert.embeddings.LayerNorm.bias: 0 1, bert.embeddings.LayerNorm.weight: 0 1, "
     "bert.embeddings.position_embeddings.weight: 0 1, bert.embeddings.word_embeddings.weight: 0 1, "
     "bert.encoder.layer.0.attention.self.query.weight: 0 3 1 4 2 5"},
    {"bert", "mlm___cls/tf_bert_for_masked_lm/mlm___cls/predictions/transform/dense/kernel:0 1 2, top/step 0 1",
     "cls.predictions.transform.dense.weight: 0 1"},
    {"t5",
     "shared/shared/weight:0 0 2, "
     "encoder/tf_t5_model/encoder/block_._0/layer_._0/SelfAttention/relative_attention_bias/embeddings:0 2 1",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight: 0 1, shared.weight: 0 1"},
    {"gpt2", "transformer/tfgpt2lm_head_model/transformer/h_._11/attn/c_attn/weight:0 2 3",
     "transformer.h.11.attn.c_attn.weight: 0 1 2 3 4 5"},

    {"bert",
     "bert/encoder/layer_10/output/dense/kernel 2 3, bert/encoder/layer_10/output/dense/kernel/adam_v 2 3, "
     "bert/embeddings/token_type_embeddings 0 2, bert/embeddings/LayerNorm/gamma 0 2, cls/predictions/output_bias 0 2, "
     "cls/seq_relationship/output_weights 2 1, global_step 0 1",
     "bert.embeddings.LayerNorm.weight: 0 1, bert.embeddings.token_type_embeddings.weight: 0 1, "
     "bert.encoder.layer.10.output.dense.weight: 0 3 1 4 2 5, cls.predictions.bias: 0 1, "
     "cls.seq_relationship.weight: 0 1"},
    {"gpt2",
     "model/h0/attn/c_attn/w 2 3x1, model/h0/ln_1/g 0 2, model/h0/attn/c_attn/b 0 3, model/wte 2 2, model/ln_f/b 0 1",
     "transformer.h.0.attn.c_attn.bias: 0 1 2, transformer.h.0.attn.c_attn.weight: 0 1 2 3 4 5, "
     "transformer.h.0.ln_1.weight: 0 1, transformer.ln_f.bias: 0, transformer.wte.weight: 0 1 2 3"},

    /* rows of a head: pairs side by side there, halves here */
    {LLAMA,
     "layers.0.attention.wq.weight 8 1, layers.0.attention.wk.weight 4 1, layers.0.attention.wv.weight 4 1, "
     "tok_embeddings.weight 2 1, layers.0.feed_forward.w2.weight 1 2, output.weight 2 1, train_state.step 0 1",
     "lm_head.weight: 0 1, model.embed_tokens.weight: 0 1, model.layers.0.mlp.down_proj.weight: 0 1, "
     "model.layers.0.self_attn.k_proj.weight: 0 2 1 3, model.layers.0.self_attn.q_proj.weight: 0 2 1 3 4 6 5 7, "
     "model.layers.0.self_attn.v_proj.weight: 0 1 2 3"},

    /* a row of padding; a key head's two queries, its key and its value; gate and up */
    {GROUPED,
     "embedding.word_embeddings.weight 3 1, decoder.final_layernorm.weight 0 1, "
     "decoder.layers.self_attention.linear_qkv.weight 8 1x2, "
     "decoder.layers.self_attention.linear_qkv.layer_norm_weight 2 1, decoder.layers.mlp.linear_fc1.weight 4 1x2, "
     "optimizer.state.exp_avg.embedding.word_embeddings.weight 3 1",
     "model.embed_tokens.weight: 0 1, model.layers.0.input_layernorm.weight: 0, "
     "model.layers.0.mlp.gate_proj.weight: 0 1, model.layers.0.mlp.up_proj.weight: 2 3, "
     "model.layers.0.self_attn.k_proj.weight: 4 5, model.layers.0.self_attn.q_proj.weight: 0 1 2 3, "
     "model.layers.0.self_attn.v_proj.weight: 6 7, model.layers.1.input_layernorm.weight: 1, "
     "model.layers.1.mlp.gate_proj.weight: 4 5, model.layers.1.mlp.up_proj.weight: 6 7, "
     "model.layers.1.self_attn.k_proj.weight: 12 13, model.layers.1.self_attn.q_proj.weight: 8 9 10 11, "
     "model.layers.1.self_attn.v_proj.weight: 14 15, model.norm.weight: 0"},

    /* the parts of gate and up apart, and a bias of two key heads with one query each */
    {"qwen2\", \"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"num_hidden_layers\": 1, \"vocab_size\": 2, "
     "\"x\": \"",
     "decoder.final_layernorm.weight 0 1, output_layer.weight 2 1, decoder.layers.0.mlp.linear_fc1.weight_w 1 1, "
     "decoder.layers.0.mlp.linear_fc1.weight_v 1 2, decoder.layers.0.self_attention.linear_qkv.bias 0 6, "
     "decoder.layers.0.mlp.linear_fc2.weight 1 1, decoder.layers.0.self_attention.linear_proj.weight 1 2",
     "lm_head.weight: 0 1, model.layers.0.mlp.down_proj.weight: 0, model.layers.0.mlp.gate_proj.weight: 0, "
     "model.layers.0.mlp.up_proj.weight: 0 1, model.layers.0.self_attn.k_proj.bias: 1 4, "
     "model.layers.0.self_attn.o_proj.weight: 0 1, model.layers.0.self_attn.q_proj.bias: 0 3, "
     "model.layers.0.self_attn.v_proj.bias: 2 5, model.norm.weight: 0"},

    /* experts on an axis after the layers, and numbered ones */
    {"qwen3_moe\", \"num_experts\": 2, \"num_hidden_layers\": 1, \"x\": \"",
     "decoder.final_layernorm.weight 0 1, decoder.layers.0.mlp.experts.experts.linear_fc1.weight 2 1x2, "
     "decoder.layers.0.mlp.experts.experts.linear_fc2.weight 1 1x2, decoder.layers.mlp.router.weight 2 1x1, "
     "decoder.layers.pre_mlp_layernorm.weight 1 1",
     "model.layers.0.mlp.experts.0.down_proj.weight: 0, model.layers.0.mlp.experts.0.gate_proj.weight: 0, "
     "model.layers.0.mlp.experts.0.up_proj.weight: 1, model.layers.0.mlp.experts.1.down_proj.weight: 1, "
     "model.layers.0.mlp.experts.1.gate_proj.weight: 2, model.layers.0.mlp.experts.1.up_proj.weight: 3, "
     "model.layers.0.mlp.gate.weight: 0 1, model.layers.0.post_attention_layernorm.weight: 0, model.norm.weight: 0"},
    {"mixtral\", \"num_local_experts\": 2, \"num_hidden_layers\": 1, \"x\": \"",
     "decoder.final_layernorm.weight 0 1, decoder.layers.0.mlp.experts.experts.0.linear_fc1.weight 2 1, "
     "decoder.layers.0.mlp.experts.experts.1.linear_fc1.weight_w 1 1, "
     "decoder.layers.0.mlp.experts.experts.1.linear_fc1.weight_v 1 2, "
     "decoder.layers.0.mlp.experts.experts.1.linear_fc2.weight 1 1, "
     "decoder.layers.0.mlp.experts.local_experts.0.linear_fc2.weight 1 1",
     "model.layers.0.block_sparse_moe.experts.0.w1.weight: 0, model.layers.0.block_sparse_moe.experts.0.w2.weight: 0, "
     "model.layers.0.block_sparse_moe.experts.0.w3.weight: 1, model.layers.0.block_sparse_moe.experts.1.w1.weight: 0, "
     "model.layers.0.block_sparse_moe.experts.1.w2.weight: 0, "
     "model.layers.0.block_sparse_moe.experts.1.w3.weight: 0 1, model.norm.weight: 0"},

    /* experts as transformers 5 holds them: MergeModulelist and Concatenate of its conversion_mapping.py, undone */
    {"mixtral",
     "model.layers.0.mlp.experts.gate_up_proj 2 1x2, model.layers.0.mlp.experts.down_proj 1 1x2, "
     "model.layers.0.mlp.gate.weight 1 2, model.norm.weight 0 1",
     "model.layers.0.block_sparse_moe.experts.0.w1.weight: 0, model.layers.0.block_sparse_moe.experts.0.w2.weight: 0, "
     "model.layers.0.block_sparse_moe.experts.0.w3.weight: 1, model.layers.0.block_sparse_moe.experts.1.w1.weight: 2, "
     "model.layers.0.block_sparse_moe.experts.1.w2.weight: 1, model.layers.0.block_sparse_moe.experts.1.w3.weight: 3, "
     "model.layers.0.block_sparse_moe.gate.weight: 0 1, model.norm.weight: 0"},
    {"phimoe", "layers.0.mlp.experts.gate_up_proj 2 1x1, layers.0.mlp.router.weight 1 1",
     "layers.0.block_sparse_moe.experts.0.w1.weight: 0, layers.0.block_sparse_moe.experts.0.w3.weight: 1, "
     "layers.0.block_sparse_moe.gate.weight: 0"},
    {"glm4_moe",
     "model.layers.0.mlp.experts.gate_up_proj 4 2x1, model.layers.0.mlp.experts.gate_up_proj_scale_inv 2 1x1, "
     "model.layers.0.mlp.gate.weight 1 1",
     "model.layers.0.mlp.experts.0.gate_proj.weight: 0 1 2 3, "
     "model.layers.0.mlp.experts.0.gate_proj.weight_scale_inv: 0, "
     "model.layers.0.mlp.experts.0.up_proj.weight: 4 5 6 7, "
     "model.layers.0.mlp.experts.0.up_proj.weight_scale_inv: 1, model.layers.0.mlp.gate.weight: 0"},
    {"laguna", "m.mlp.experts.gate_up_proj 2 1x1, m.mlp.gate.e_score_correction_bias 0 1, m.mlp.shared_experts.a 0 1",
     "m.mlp.experts.0.gate_proj.weight: 0, m.mlp.experts.0.up_proj.weight: 1, "
     "m.mlp.experts.e_score_correction_bias: 0, m.mlp.shared_expert.a: 0"},
    {"nemotron_h", "model.layers.0.mixer.experts.up_proj 1 1x2, model.layers.0.mixer.experts.down_proj 1 1x2",
     "backbone.layers.0.mixer.experts.0.down_proj.weight: 0, backbone.layers.0.mixer.experts.0.up_proj.weight: 0, "
     "backbone.layers.0.mixer.experts.1.down_proj.weight: 1, backbone.layers.0.mixer.experts.1.up_proj.weight: 1"},
    {"granitemoehybrid",
     "m.block_sparse_moe.experts.gate_up_proj 2 1x1, m.block_sparse_moe.experts.down_proj 1 1x1, "
     "m.block_sparse_moe.router.weight 1 1, m.shared_mlp.input_linear.weight 1 1",
     "m.block_sparse_moe.input_linear.weight: 0 1, m.block_sparse_moe.output_linear.weight: 0, "
     "m.block_sparse_moe.router.layer.weight: 0, m.shared_mlp.input_linear.weight: 0"},
    /* of Qwen the converter takes both forms; and what is not of the form stays */
    {"qwen3_moe", "model.layers.0.mlp.experts.gate_up_proj 2 1x1", "model.layers.0.mlp.experts.gate_up_proj: 0 1"},
    {"mixtral", "model.layers.0.mlp.experts.gate_up_proj 3 1x1", "model.layers.0.mlp.experts.gate_up_proj: 0 1 2"},
    {"mixtral", "model.layers.0.mlp.experts.gate_up_proj 3 1", "model.layers.0.mlp.experts.gate_up_proj: 0 1 2"},
    {"mixtral", "model.layers.0.mlp.gate.weight 1 1", "model.layers.0.mlp.gate.weight: 0"},
};

static void describe(const struct checkpoint *checkpoint, struct buffer *out)
{
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        struct error error;
        buffer_printf(out, "%s%s:", i > 0 ? ", " : "", tensor->name);
        for (uint64_t j = 0; j < tensor_elements(tensor); j++) {
            float value = -1;
            read_numbers(tensor_view(tensor, checkpoint->arena), j, 1, &value, &error);
            buffer_printf(out, " %g", (double)value);
        }
    }
}

static void check_row(size_t i)
{
    static const struct open_options options = {0};
    static const struct derive_options none;
    struct buffer config = {0}, text = {0};
    struct error error;
    buffer_printf(&config, "{\"model_type\": \"%s\"}", rows[i].model_type);
    files_write("m/config.json", config.bytes, config.length);
    safetensors_write_ramps("m/model.safetensors", rows[i].there);
    const struct checkpoint *checkpoint = checkpoint_open("m", formats, &options, &error);
    files_must(checkpoint != NULL, error.message);
    checkpoint = derive(checkpoint, &none, &error);
    if (CHECK_NAMED(checkpoint != NULL, checkpoint != NULL ? rows[i].here : error.message)) {
        describe(checkpoint, &text);
        buffer_append(&text, "", 1);
        CHECK_TEXT((const char *)text.bytes, rows[i].here);
    }
    checkpoint_close(checkpoint);
    buffer_free(&config);
    buffer_free(&text);
}

/* Tensors that would have one name, and heads that do not divide the rows. */
static void check_faults(void)
{
    static const struct {
        const char *model_type, *there, *says;
    } faults[] = {
        {"bert", "a.scale 0 1, a.embedding 0 1", "tensor 'a.weight'"},
        {LLAMA, "layers.0.attention.wq.weight 3 1", "layers.0.attention.wq.weight"},
        {GROUPED, "decoder.final_layernorm.weight 0 1, decoder.layers.input_layernorm.weight 3 1",
         "tensor 'decoder.layers.input_layernorm.weight' has 3 layers on its first axis, but config.json has 2"},
        {GROUPED, "decoder.final_layernorm.weight 0 1, embedding.word_embeddings.weight 1 1", "word_embeddings"},
        {GROUPED, "decoder.final_layernorm.weight 0 1, decoder.layers.0.self_attention.linear_qkv.weight 7 1",
         "linear_qkv"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct buffer config = {0};
        struct error error = {""};
        buffer_printf(&config, "{\"model_type\": \"%s\"}", faults[i].model_type);
        files_write("m/config.json", config.bytes, config.length);
        safetensors_write_ramps("m/model.safetensors", faults[i].there);
        const struct checkpoint *checkpoint = checkpoint_open("m", formats, &(const struct open_options){0}, &error);
        files_must(checkpoint != NULL, error.message);
        CHECK(derive(checkpoint, &(const struct derive_options){0}, &error) == NULL);
        CHECK_NAMED(strstr(error.message, faults[i].says) != NULL, error.message);
        buffer_free(&config);
    }
}

/* A server that answers only later may say that the names are another framework's. */
static void check_outage(void)
{
    struct error error;
    struct checkpoint *checkpoint = checkpoint_new("here");
    checkpoint->format = "safetensors";
    checkpoint_add_source(checkpoint, unreached_source("model.safetensors", ""));
    checkpoint_add_side_file(checkpoint, "config.json", unreached_source("config.json", "{}"));
    CHECK(checkpoint_seal(checkpoint, &error));
    unreached_now = true;
    if (CHECK(derive(checkpoint, &(const struct derive_options){0}, &error) == NULL))
        CHECK_TEXT(error.message, "no server");
    unreached_now = false;
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(i);
    check_faults();
    check_outage();
    files_remove();
    return check_done();
}
