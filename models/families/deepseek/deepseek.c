/* DeepSeek 1 to 3, and latent attention, which many other families have. conversion/deepseek.py. */
#include "models/families/deepseek/deepseek.h"

#include "models/families/llama/llama.h"

#include <string.h>

/* Multi-head latent attention, and the experts and keys of DeepSeek V2 and its successors. conversion/deepseek.py. */

const struct relation_row mla_tensors[] = {
    {"model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"},
    {"model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {"model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b", "(head d) ...", "head"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_k_b, blk.{}.attn_v_b",
     "(kv_head (nope + value)) c -> kv_head c nope, kv_head value c", "kv_head"},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b", .backward_only = true}, /* until April 2025 */
    {0},
};

bool deepseek_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    bool has_experts = dimensions_get(&builder->dimensions, "expert") != 0;
    const struct json *type = json_first(hparams_get(builder->model->hparams, "mlp_layer_types"));
    double n_dense = 0; /* for classes of transformers 5 that save the types of layers alone */
    for (; json_string_is(type, "dense"); type = json_next(type))
        n_dense += 1;
    return builder_number(builder, "first_k_dense_replace",
                          has_experts ? n_dense : (double)builder->dimensions.n_layers, ret_value, error);
}

/* After absorption, all queries share one key, whatever config.json says. */
static bool share_keys(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "num_key_value_heads", 1, error);
}

const struct key_row mla_first_keys[] = {{.emit = share_keys}, {0}};

const struct key_row mla_keys[] = {
    {"leading_dense_block_count", GGUF_U32, .compute = deepseek_dense_layers},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank", .plus = "qk_rope_head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "v_head_dim"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size|intermediate_size"},
    {"expert_count", GGUF_U32, IF_PRESENT, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, OR_DEFAULT, "n_shared_experts", 0},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_TRUE, "norm_topk_prob"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"rope.scaling.yarn_log_multiplier", GGUF_F32, IF_PRESENT, "rope.mscale_all_dim", .times = 0.1},
    {0},
};

/* Both are 0 if unknown, so that they do not count as halves. */
const struct dimension_row mla_dimensions[] = {
    {"nope", "qk_nope_head_dim"}, {"value", "v_head_dim"}, {"expert", "n_routed_experts", .kept = true}, {0}};

const struct config_row deepseek_config_rows[] = {
    {"num_key_value_heads", FROM_KEY, "attention.head_count"},
    {"q_lora_rank", FROM_KEY, "attention.q_lora_rank", .text = "null"},
    {"kv_lora_rank", FROM_KEY, "attention.kv_lora_rank"},
    {"qk_rope_head_dim", FROM_KEY, "rope.dimension_count"},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length", "rope.dimension_count"},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length_mla", "rope.dimension_count"},
    {"v_head_dim", FROM_KEY, "attention.value_length"},
    {"v_head_dim", FROM_KEY, "attention.value_length_mla"},
    {"first_k_dense_replace", FROM_KEY, "leading_dense_block_count"},
    {"norm_topk_prob", FROM_KEY, "expert_weights_norm", .text = "false"},
    {"moe_layer_freq", FROM_TEXT, .text = "1"},
    {0},
};

/* DeepSeek MoE 16B, the first generation. conversion/deepseek.py. */

static const struct key_row deepseek1_keys[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_weights_scale", GGUF_F32, ALWAYS, .value = 1},
    {"expert_count", GGUF_U32, REQUIRED, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
    {0},
};

const struct family deepseek_family = {
    .name = "deepseek",
    .summary = "DeepSeek MoE 16B",
    .hf = FAMILY_NAMES({"DeepseekForCausalLM"}),
    .tensors = {expert_tensors, router_tensors, llama_tensors, decoder_tensors},
    .keys = {base_keys, deepseek1_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};

/* DeepSeek V2 and V3: multi-head latent attention, shared experts. conversion/deepseek.py. */

static const struct relation_row deepseek2_tensors[] = {
    {"model.layers.{}.*", NULL, .when = "extra_layer"}, /* layers that predict more than one token */
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {0},
};

static const struct config_row config_v3_rows[] = {
    {"topk_method", FROM_TEXT, .text = "'noaux_tc'"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

static const char *choose_method(const struct config_material *material)
{
    double n_groups;
    bool has_groups = config_number_of_layer(material, "expert_group_count", 0, &n_groups) && n_groups > 1;
    return has_groups ? "\"group_limited_greedy\"" : "\"greedy\"";
}

/* Notes a V3 without scoring_func, as transformers makes a new one: its class always has a sigmoid. */
static bool note_gating(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t function;
    (void)error;
    if (strcmp(builder->hf->name, "DeepseekV3ForCausalLM") == 0 &&
        dimensions_get(&builder->dimensions, "expert") != 0 &&
        !gguf_get_u64(&model->kvs, builder_key(builder, "expert_gating_func"), &function))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "config.json has no scoring_func, so that llama.cpp weighs experts by a softmax, transformers "
                        "by a sigmoid: -o override-kv=%s.expert_gating_func=int:2",
                        family_architecture(builder->family));
    return true;
}

/* V3's router is a sigmoid; older files show that only by V3's bias. */
#define V3_CONDITION "key:expert_gating_func=2|!key:expert_gating_func tensor:blk.{}.exp_probs_b.bias"

const struct family deepseek2_family = {
    .name = "deepseek2",
    .summary = "DeepSeek V2 and V3",
    .hf = FAMILY_NAMES({"DeepseekV2ForCausalLM"}, {"DeepseekV3ForCausalLM"}, {"KimiVLForConditionalGeneration"},
                       {"KimiK25ForConditionalGeneration"}, {"YoutuForCausalLM"}, {"YoutuVLForConditionalGeneration"}),
    .tensors = {deepseek2_tensors, mla_tensors, router_tensors, expert_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"DeepseekV3ForCausalLM", "deepseek_v3", V3_CONDITION,
         CONFIG_TABLES(silu_rows, deepseek_config_rows, config_v3_rows)},
        {"DeepseekV2ForCausalLM", "deepseek_v2", NULL,
         CONFIG_TABLES(silu_rows, deepseek_config_rows, CONFIG_ROWS({"topk_method", .make = choose_method}))}),
    .keys = {mla_first_keys, base_keys, mla_keys, KEYS({.emit = note_gating})},
    .vocabs = {&bpe_vocab, &kimi_vocab},
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
};

/* DeepSeek-OCR and related models: language model, DeepSeek's experts with plain attention. conversion/deepseek.py. */

/* Their text_config names an ordinary DeepSeek V2. */
static const struct family_name names[] = {{"DeepseekOCRForCausalLM"},
                                           {"UnlimitedOCRForCausalLM"},
                                           {"DeepseekOCR2ForCausalLM"},
                                           {"DeepseekV2ForCausalLM"},
                                           {0}};

static const struct relation_row deepseek2_ocr_tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.sam_model.*", NULL},
    {"model.qwen2_model.*", NULL},
    {"model.vision_model.*", NULL},
    {"model.projector.*", NULL},
    {0},
};

/* Reports whether the multimodal model is DeepSeek-OCR or a related one, whatever the class of its text_config. */
static bool is_ocr(const struct hparams *hparams)
{
    const struct json *outer = json_first(json_get(hparams_raw(hparams), "architectures"));
    return json_string_is(outer, names[0].name) || json_string_is(outer, names[1].name) ||
           json_string_is(outer, names[2].name);
}

static const struct key_row deepseek2_ocr_keys[] = {
    {"leading_dense_block_count", GGUF_U32, .compute = deepseek_dense_layers},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size|intermediate_size"},
    {"expert_count", GGUF_U32, IF_PRESENT, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, OR_DEFAULT, "n_shared_experts", 0},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_TRUE, "norm_topk_prob"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"rope.scaling.yarn_log_multiplier", GGUF_F32, IF_PRESENT, "rope.mscale_all_dim", .times = 0.1},
    {"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window_size|sliding_window"},
    {0},
};

/* Adds a template that writes the content of each message; a template in the files replaces it. */
static bool add_template(struct model_builder *builder, struct error *error)
{
    gguf_set_text(&builder->model->kvs, "tokenizer.chat_template",
                  "{% for m in messages %}{{m['content']}}{% endfor %}");
    return true;
}

const struct family deepseek2_ocr_family = {
    .name = "deepseek2-ocr",
    .summary = "DeepSeek-OCR (language model)",
    .hf = names,
    .tensors = {deepseek2_ocr_tensors, router_tensors, expert_tensors, decoder_tensors},
    .keys = {base_keys, deepseek2_ocr_keys},
    .vocabs = {&bpe_vocab},
    .applies = is_ocr,
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
    .add_extras = add_template,
};
