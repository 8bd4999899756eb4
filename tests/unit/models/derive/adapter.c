/* LoRA adapters as GGUF: what becomes of both matrices where a family moves rows, swaps axes or stacks experts; and
 * what is no adapter: one line each. The orders of rows are written out. */
#include "models/derive/adapter.h"
#include "models/formats.h"

#include "models/family/tensors.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

#include <stdlib.h>

static const char *const config = "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4}";

/* Writes adapter_model.safetensors of F32 tensors as safetensors_write_ramps() lists them, and its configuration. */
static void write_adapter(const char *folder, const char *json, const char *tensors)
{
    char path[256];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    safetensors_write_ramps(path, tensors);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    files_write_text(path, json);
}

static const struct checkpoint *open_or_die(const char *path)
{
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &(struct open_options){0}, &error);
    if (checkpoint == NULL)
        checkpoint = checkpoint_open_side_files(path, formats, false, &error);
    files_must(checkpoint != NULL, path);
    return checkpoint;
}

/* "name[rows,columns]: first column of each row, ...", or the error. */
static const char *outcome(const char *base_config)
{
    static char text[1 << 14];
    struct error error;
    files_write_text("base/config.json", base_config);
    const struct checkpoint *adapter = open_or_die("lora"), *base = open_or_die("base");
    struct gguf_model *model = gguf_adapter_new(adapter, base, NULL, false, &error);
    size_t used = (size_t)sprintf(text, "%s", model == NULL ? error.message : "");
    for (size_t i = 0; model != NULL && i < model->tensors->n_tensors; i++) {
        const struct view *view = model->tensors->tensors[i].view;
        used += (size_t)sprintf(text + used, "%s%s", i > 0 ? "; " : "", model->tensors->tensors[i].name);
        uint64_t row = view_row_elements(view);
        for (unsigned j = 0; j < view->rank; j++)
            used += (size_t)sprintf(text + used, "%c%d", j > 0 ? ',' : '[', (int)view->shape[j]);
        used += (size_t)sprintf(text + used, "]");
        for (uint64_t j = 0; j * row < view->n_elements; j++) {
            float value = -1;
            read_numbers(view, j * row, 1, &value, &error);
            used += (size_t)sprintf(text + used, " %g", (double)value);
        }
    }
    gguf_model_free(model);
    checkpoint_close(adapter);
    checkpoint_close(base);
    return text;
}

#define LLAMA                                                                                                          \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 4, "                      \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"intermediate_size\": 6, "     \
    "\"vocab_size\": 10}"
#define PREFIX "base_model.model.model.layers.0."

static void factors(void)
{
    write_adapter("lora", config,
                  PREFIX "self_attn.q_proj.lora_B.weight 8 2, " PREFIX "self_attn.q_proj.lora_A.weight 2 4");
    CHECK_TEXT(outcome(LLAMA),
               "blk.0.attn_q.weight.lora_a[2,4] 0 4; blk.0.attn_q.weight.lora_b[8,2] 0 4 2 6 8 12 10 14");

    write_adapter("lora", config,
                  PREFIX "mlp.up_proj.lora_A.weight 2 4, " PREFIX "mlp.down_proj.lora_A.weight 2 6, " PREFIX
                         "mlp.up_proj.lora_B.weight 6 2, " PREFIX "mlp.down_proj.lora_B.weight 4 2");
    CHECK_TEXT(outcome(LLAMA), "blk.0.ffn_up.weight.lora_a[2,4] 0 4; blk.0.ffn_up.weight.lora_b[6,2] 0 2 4 6 8 10; "
                               "blk.0.ffn_down.weight.lora_a[2,6] 0 6; blk.0.ffn_down.weight.lora_b[4,2] 0 2 4 6");

    write_adapter("lora", config,
                  "base_model.model.model.embed_tokens.lora_embedding_A 2 10, "
                  "base_model.model.model.embed_tokens.lora_embedding_B 4 2");
    CHECK_TEXT(outcome(LLAMA),
               "token_embd.weight.lora_a[10,2] 0 1 2 3 4 5 6 7 8 9; token_embd.weight.lora_b[4,2] 0 2 4 6");
}

/* GPT-2 stores its matrices transposed, and peft makes A and B of what is multiplied with: as llama.cpp has them. */
static void transposed(void)
{
    static const char gpt2[] = "{\"architectures\": [\"GPT2LMHeadModel\"], \"model_type\": \"gpt2\", \"n_layer\": 1, "
                               "\"n_head\": 1, \"n_embd\": 3}";
    write_adapter("lora", config,
                  "base_model.model.transformer.h.0.mlp.c_fc.lora_A.weight 2 3, "
                  "base_model.model.transformer.h.0.mlp.c_fc.lora_B.weight 5 2");
    CHECK_TEXT(outcome(gpt2), "blk.0.ffn_up.weight.lora_a[2,3] 0 3; blk.0.ffn_up.weight.lora_b[5,2] 0 2 4 6 8");
    write_adapter("lora", config,
                  "base_model.model.h.0.attn.c_attn.lora_A.weight 2 3, "
                  "base_model.model.h.0.attn.c_attn.lora_B.weight 9 2");
    CHECK_TEXT(outcome(gpt2),
               "blk.0.attn_qkv.weight.lora_a[2,3] 0 3; blk.0.attn_qkv.weight.lora_b[9,2] 0 2 4 6 8 10 12 14 16");
}

/* What was trained without the head, as AutoModel has it, lacks the prefix; layers of what sees are left out. */
static void other_names(void)
{
    write_adapter("lora", config,
                  "base_model.model.layers.0.self_attn.q_proj.lora_A.weight 2 4, "
                  "base_model.model.layers.0.self_attn.q_proj.lora_B.weight 8 2, "
                  "base_model.model.language_model.layers.0.mlp.up_proj.lora_A.weight 2 4, "
                  "base_model.model.language_model.layers.0.mlp.up_proj.lora_B.weight 6 2, "
                  "base_model.model.visual.merger.weight 3 3");
    CHECK_TEXT(outcome(LLAMA),
               "blk.0.attn_q.weight.lora_a[2,4] 0 4; blk.0.attn_q.weight.lora_b[8,2] 0 4 2 6 8 12 10 14; "
               "blk.0.ffn_up.weight.lora_a[2,4] 0 4; blk.0.ffn_up.weight.lora_b[6,2] 0 2 4 6 8 10");
}

static const char mixtral[] = "{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\", "
                              "\"hidden_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
                              "\"num_local_experts\": 2}";

/* Of what is stacked, some matrices of all experts; but not all matrices of some experts. */
static void some_matrices(void)
{
#define EXPERT PREFIX "block_sparse_moe.experts."
    write_adapter("lora", config,
                  EXPERT "0.w3.lora_A.weight 1 3, " EXPERT "0.w3.lora_B.weight 5 1, " EXPERT
                         "1.w3.lora_A.weight 1 3, " EXPERT "1.w3.lora_B.weight 5 1");
    CHECK_TEXT(outcome(mixtral), "blk.0.ffn_up_exps.weight.lora_a[2,1,3] 0 0; "
                                 "blk.0.ffn_up_exps.weight.lora_b[2,5,1] 0 1 2 3 4 0 1 2 3 4");
    write_adapter("lora", config,
                  EXPERT "0.w3.lora_A.weight 1 3, " EXPERT "0.w3.lora_B.weight 5 1, " PREFIX
                         "self_attn.o_proj.lora_A.weight 1 3, " PREFIX "self_attn.o_proj.lora_B.weight 3 1");
    CHECK_TEXT(outcome(mixtral), "layer 0 has only 1 of the 2 tensors that llama puts together");
}

/* Cohere has no output besides its embedding. */
static void head(void)
{
    write_adapter("lora", config,
                  "base_model.model.lm_head.lora_A.weight 2 4, "
                  "base_model.model.lm_head.lora_B.weight 10 2");
    CHECK_TEXT(outcome("{\"architectures\": [\"CohereForCausalLM\"], \"model_type\": \"cohere\", \"hidden_size\": 4, "
                       "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1}"),
               "tensor 'lm_head.weight' is adapted, but the base shares it with its embedding");
}

static void experts(void)
{
    char tensors[2048] = "";
    for (int i = 0; i < 2; i++)
        for (int j = 1; j <= 3; j++)
            sprintf(tensors + strlen(tensors),
                    PREFIX "block_sparse_moe.experts.%d.w%d.lora_A.weight 1 %d, " PREFIX
                           "block_sparse_moe.experts.%d.w%d.lora_B.weight %d 1, ",
                    i, j, j == 2 ? 5 : 3, i, j, j == 2 ? 3 : 5);
    write_adapter("lora", config, tensors);
    CHECK_TEXT(outcome(mixtral), "blk.0.ffn_gate_exps.weight.lora_a[2,1,3] 0 0; "
                                 "blk.0.ffn_gate_exps.weight.lora_b[2,5,1] 0 1 2 3 4 0 1 2 3 4; "
                                 "blk.0.ffn_down_exps.weight.lora_a[2,1,5] 0 0; "
                                 "blk.0.ffn_down_exps.weight.lora_b[2,3,1] 0 1 2 0 1 2; "
                                 "blk.0.ffn_up_exps.weight.lora_a[2,1,3] 0 0; "
                                 "blk.0.ffn_up_exps.weight.lora_b[2,5,1] 0 1 2 3 4 0 1 2 3 4");
}

/* Adapters of mlx-lm: of all experts at once, and with a scale instead of alpha. */
static void of_mlx(void)
{
#define SWITCH "model.layers.0.block_sparse_moe.switch_mlp.up_proj."
    static const char scaled[] = "{\"lora_parameters\": {\"rank\": 1, \"scale\": 3}}";
    write_adapter("lora", scaled, SWITCH "lora_a 1 3x2, " SWITCH "lora_b 5 1x2");
    CHECK_TEXT(outcome(mixtral), "blk.0.ffn_up_exps.weight.lora_a[2,1,3] 0 3; "
                                 "blk.0.ffn_up_exps.weight.lora_b[2,5,1] 0 1 2 3 4 5 6 7 8 9");
    write_adapter("lora", "{}", SWITCH "lora_a 1 3x2, " SWITCH "lora_b 5 1x2");
    CHECK_TEXT(outcome(mixtral), "adapter_config.json has no lora_parameters.scale, which mlx-lm's matrices need");
    write_adapter("lora", scaled, SWITCH "lora_a 1 3x2, " SWITCH "lora_b 5 1x3");
    CHECK_TEXT(outcome(mixtral), "tensor 'model.layers.0.block_sparse_moe.switch_mlp.up_proj.weight': the ranks of A "
                                 "[2, 1, 3] and B [3, 5, 1] differ");
    write_adapter("lora", scaled,
                  SWITCH "lora_a 1 3x2, " SWITCH "lora_b 5 1x2, model.layers.0.self_attn.o_proj.lora_a 3 2, "
                         "model.layers.0.self_attn.o_proj.lora_b 2 3");
    CHECK_TEXT(outcome(mixtral), "'model.layers.0.self_attn.o_proj.weight' has another rank than "
                                 "'model.layers.0.block_sparse_moe.experts.{}.w3.weight', but a GGUF adapter has one "
                                 "alpha");
    write_adapter("lora", scaled, SWITCH "lora_a 1 3x2, " SWITCH "lora_b 5 1x2, " SWITCH "m 0 5");
    CHECK_TEXT(outcome(mixtral), "tensor '" SWITCH "m': GGUF adapters do not support DoRA");
    write_adapter("lora", scaled, SWITCH "lora_a 1 3x2, " SWITCH "lora_b 5 1x2");
    CHECK_TEXT(outcome("{\"architectures\": [\"GraniteMoeForCausalLM\"], \"model_type\": \"granitemoe\"}"),
               "'model.layers.0.block_sparse_moe.input_linear.weight' adapts a part of stacked weights, which wfs does "
               "not write as a GGUF adapter; -o lora= merges it");
}

static void refused(void)
{
    write_adapter("lora", config, PREFIX "mlp.up_proj.lora_A.weight 2 4");
    CHECK_TEXT(outcome(LLAMA), "tensor '" PREFIX "mlp.up_proj.lora_A.weight' is unpaired: its lora_B is missing");
    write_adapter("lora", config, PREFIX "mlp.up_proj.lora_A.weight 2 4, " PREFIX "mlp.up_proj.lora_B.weight 6 3");
    CHECK_TEXT(outcome(LLAMA), "tensor 'model.layers.0.mlp.up_proj.weight': the ranks of A [2, 4] and B [6, 3] differ");
    struct safetensors file = {0};
    safetensors_add(&file, PREFIX "mlp.up_proj.lora_A.weight", "F32", "0,4", NULL, 0);
    safetensors_add(&file, PREFIX "mlp.up_proj.lora_B.weight", "F32", "6,0", NULL, 0);
    safetensors_write(&file, "lora/adapter_model.safetensors");
    CHECK_TEXT(outcome(LLAMA), "tensor 'model.layers.0.mlp.up_proj.weight' has a rank of 0");
    write_adapter("lora", config,
                  PREFIX "mlp.up_proj.lora_A.weight 2 4, " PREFIX "mlp.up_proj.lora_B.weight 6 2, " PREFIX
                         "mlp.up_proj.lora_magnitude_vector 6 1");
    CHECK_TEXT(outcome(LLAMA),
               "tensor '" PREFIX "mlp.up_proj.lora_magnitude_vector': GGUF adapters do not support DoRA");
    write_adapter("lora", config,
                  PREFIX "mlp.up_proj.lora_A.weight 2 4, " PREFIX "mlp.up_proj.lora_B.weight 6 2, "
                         "base_model.model.lm_head.weight 10 4");
    CHECK_TEXT(outcome(LLAMA), "tensor 'base_model.model.lm_head.weight': GGUF adapters do not support "
                               "whole embeddings (new tokens?)");
    write_adapter("lora", config, PREFIX "mlp.nothing.lora_A.weight 2 4, " PREFIX "mlp.nothing.lora_B.weight 6 2");
    CHECK_TEXT(outcome(LLAMA), "tensor 'model.layers.0.mlp.nothing.weight' is unknown to the family llama");
    write_adapter("lora", config,
                  PREFIX "self_attn.q_proj.lora_A.weight 2 4, " PREFIX "self_attn.q_proj.lora_B.weight 7 2");
    CHECK(strstr(outcome(LLAMA), "shape [7, 4] does not fit") != NULL);
    write_adapter("lora", "{\"peft_type\": \"LOHA\"}", PREFIX "mlp.up_proj.hada_w1_a 2 4");
    CHECK_TEXT(outcome(LLAMA), "adapter_config.json: unsupported peft_type LOHA: only LORA is supported");
    write_adapter("lora", "{\"r\": 2}",
                  PREFIX "mlp.up_proj.lora_A.weight 2 4, " PREFIX "mlp.up_proj.lora_B.weight 6 2");
    CHECK_TEXT(outcome(LLAMA), "adapter_config.json: lora_alpha is not a number");
    write_adapter("lora", "{\"r\": 2, \"lora_alpha\": 4, \"target_parameters\": [\"input_linear.weight\"]}",
                  PREFIX "block_sparse_moe.input_linear.lora_A.weight 8 4, " PREFIX
                         "block_sparse_moe.input_linear.lora_B.weight 12 8");
    CHECK_TEXT(outcome("{\"architectures\": [\"GraniteMoeForCausalLM\"]}"),
               "'model.layers.0.block_sparse_moe.input_linear.weight' adapts stacked experts (target_parameters), "
               "which GGUF adapters do not support");
    write_adapter("lora", "{\"r\": 2, \"lora_alpha\": 4, \"target_parameters\": [\"up_proj.weight\"]}",
                  PREFIX "mlp.up_proj.lora_A.weight 2 4, " PREFIX "mlp.up_proj.lora_B.weight 6 2");
    CHECK_TEXT(outcome(LLAMA), "blk.0.ffn_up.weight.lora_a[2,4] 0 4; blk.0.ffn_up.weight.lora_b[6,2] 0 2 4 6 8 10");
    CHECK_TEXT(outcome("{}"), "the base's config.json names no architecture");
    CHECK_TEXT(outcome("{\"architectures\": [\"NobodyForCausalLM\"]}"),
               "the base's architecture NobodyForCausalLM is unknown");
}

/* What moves columns has no two factors: of DeepSeek's attention, the matrix that is cut and transposed. */
static void beyond_factors(void)
{
    write_adapter("lora", config,
                  PREFIX "self_attn.kv_b_proj.lora_A.weight 2 8, " PREFIX "self_attn.kv_b_proj.lora_B.weight 16 2");
    CHECK_TEXT(
        outcome(
            "{\"architectures\": [\"DeepseekV2ForCausalLM\"], \"model_type\": \"deepseek_v2\", \"hidden_size\": 4, "
            "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"kv_lora_rank\": 8, "
            "\"qk_nope_head_dim\": 4, \"qk_rope_head_dim\": 2, \"v_head_dim\": 4, \"n_routed_experts\": 2}"),
        "tensor 'blk.0.attn_k_b.weight': the conversion of this weight cannot be applied to two LoRA matrices");
}

int main(void)
{
    files_begin();
    factors();
    transposed();
    other_names();
    some_matrices();
    head();
    experts();
    of_mlx();
    refused();
    beyond_factors();
    files_remove();
    return check_done();
}
