#include "models/convert/fitting_class.h"

#include <stddef.h>

#define OWN(...)  ((const struct class_tensor[]){__VA_ARGS__, {0}})
#define L         "model.layers.{}."
#define ATTENTION L "self_attn."

/* The tables have one row a line. */
/* clang-format off */
static const struct class_tensor ends[] = {
    {"model.embed_tokens.weight", "v,e"},
    {"model.norm.weight", "e"},
    {"lm_head.weight", "v,e", "!tie_word_embeddings", .spare = true},
    {0},
};
static const struct class_tensor norms[] = {
    {L "input_layernorm.weight", "e"},
    {L "post_attention_layernorm.weight", "e"},
    {0},
};
static const struct class_tensor norm_biases[] = {
    {L "input_layernorm.bias", "e"},
    {L "post_attention_layernorm.bias", "e"},
    {"model.norm.bias", "e"},
    {0},
};
static const struct class_tensor post_norms[] = {
    {L "post_attention_layernorm.weight", "e"},
    {L "post_feedforward_layernorm.weight", "e"},
    {0},
};
static const struct class_tensor four_norms[] = {
    {L "input_layernorm.weight", "e"},
    {L "post_attention_layernorm.weight", "e"},
    {L "pre_feedforward_layernorm.weight", "e"},
    {L "post_feedforward_layernorm.weight", "e"},
    {0},
};
static const struct class_tensor attention[] = {
    {ATTENTION "q_proj.weight", "q,e"},
    {ATTENTION "k_proj.weight", "k,e"},
    {ATTENTION "v_proj.weight", "k,e"},
    {ATTENTION "o_proj.weight", "e,q"},
    {ATTENTION "q_proj.bias", "q", "attention_bias"},
    {ATTENTION "k_proj.bias", "k", "attention_bias"},
    {ATTENTION "v_proj.bias", "k", "attention_bias"},
    {ATTENTION "o_proj.bias", "e", "attention_bias"},
    {0},
};
static const struct class_tensor attention_without_biases[] = {
    {ATTENTION "q_proj.weight", "q,e"},
    {ATTENTION "k_proj.weight", "k,e"},
    {ATTENTION "v_proj.weight", "k,e"},
    {ATTENTION "o_proj.weight", "e,q"},
    {0},
};
static const struct class_tensor attention_of_qwen2[] = {
    {ATTENTION "q_proj.weight", "q,e"},
    {ATTENTION "k_proj.weight", "k,e"},
    {ATTENTION "v_proj.weight", "k,e"},
    {ATTENTION "o_proj.weight", "e,q"},
    {ATTENTION "q_proj.bias", "q"},
    {ATTENTION "k_proj.bias", "k"},
    {ATTENTION "v_proj.bias", "k"},
    {0},
};
static const struct class_tensor head_norms[] = {
    {ATTENTION "q_norm.weight", "d"},
    {ATTENTION "k_norm.weight", "d"},
    {0},
};
static const struct class_tensor whole_norms[] = {
    {ATTENTION "q_norm.weight", "q"},
    {ATTENTION "k_norm.weight", "k"},
    {0},
};
static const struct class_tensor mlp[] = {
    {L "mlp.gate_proj.weight", "f,e"},
    {L "mlp.up_proj.weight", "f,e"},
    {L "mlp.down_proj.weight", "e,f"},
    {L "mlp.gate_proj.bias", "f", "mlp_bias"},
    {L "mlp.up_proj.bias", "f", "mlp_bias"},
    {L "mlp.down_proj.bias", "e", "mlp_bias"},
    {0},
};
static const struct class_tensor experts[] = {
    {L "mlp.gate.weight", "x,e"},
    {L "mlp.experts.{expert}.gate_proj.weight", "m,e"},
    {L "mlp.experts.{expert}.up_proj.weight", "m,e"},
    {L "mlp.experts.{expert}.down_proj.weight", "e,m"},
    {0},
};
static const struct class_tensor up_and_down[] = {
    {L "mlp.up_proj.weight", "f,e"},
    {L "mlp.down_proj.weight", "e,f"},
    {L "mlp.up_proj.bias", "f", "mlp_bias"},
    {L "mlp.down_proj.bias", "e", "mlp_bias"},
    {0},
};
static const struct class_tensor fused_mlp[] = {
    {L "mlp.gate_up_proj.weight", "2f,e"},
    {L "mlp.down_proj.weight", "e,f"},
    {0},
};
static const struct class_tensor experts_of_mixtral[] = {
    {L "block_sparse_moe.gate.weight", "x,e"},
    {L "block_sparse_moe.experts.{expert}.w1.weight", "f,e"},
    {L "block_sparse_moe.experts.{expert}.w2.weight", "e,f"},
    {L "block_sparse_moe.experts.{expert}.w3.weight", "f,e"},
    {0},
};
static const struct class_tensor experts_of_granite[] = {
    {L "block_sparse_moe.input_linear.weight", "x,2f,e"},
    {L "block_sparse_moe.output_linear.weight", "x,e,f"},
    {L "block_sparse_moe.router.layer.weight", "x,e"},
    {0},
};
static const struct class_tensor shared_expert_of_qwen2[] = {
    {L "mlp.shared_expert.gate_proj.weight", "s,e"},
    {L "mlp.shared_expert.up_proj.weight", "s,e"},
    {L "mlp.shared_expert.down_proj.weight", "e,s"},
    {L "mlp.shared_expert_gate.weight", "1,e"},
    {0},
};
static const struct class_tensor attention_of_deepseek[] = {
    {ATTENTION "q_proj.weight", "Q,e", "!q_lora_rank"},
    {ATTENTION "q_a_proj.weight", "a,e", "q_lora_rank"},
    {ATTENTION "q_a_layernorm.weight", "a", "q_lora_rank"},
    {ATTENTION "q_b_proj.weight", "Q,a", "q_lora_rank"},
    {ATTENTION "kv_a_proj_with_mqa.weight", "b+r,e"},
    {ATTENTION "kv_a_layernorm.weight", "b"},
    {ATTENTION "kv_b_proj.weight", "K,b"},
    {ATTENTION "o_proj.weight", "e,O"},
    {0},
};
static const struct class_tensor experts_of_deepseek[] = {
    {L "mlp.gate_proj.weight", "f,e", .layers = DENSE_LAYERS},
    {L "mlp.up_proj.weight", "f,e", .layers = DENSE_LAYERS},
    {L "mlp.down_proj.weight", "e,f", .layers = DENSE_LAYERS},
    {L "mlp.gate.weight", "x,e", .layers = SPARSE_LAYERS},
    {L "mlp.experts.{expert}.gate_proj.weight", "m,e", .layers = SPARSE_LAYERS},
    {L "mlp.experts.{expert}.up_proj.weight", "m,e", .layers = SPARSE_LAYERS},
    {L "mlp.experts.{expert}.down_proj.weight", "e,m", .layers = SPARSE_LAYERS},
    {L "mlp.shared_experts.gate_proj.weight", "S,e", "n_shared_experts", .layers = SPARSE_LAYERS},
    {L "mlp.shared_experts.up_proj.weight", "S,e", "n_shared_experts", .layers = SPARSE_LAYERS},
    {L "mlp.shared_experts.down_proj.weight", "e,S", "n_shared_experts", .layers = SPARSE_LAYERS},
    {0},
};

#define SILU     "hidden_act=silu|swish"
#define WINDOW   "sliding_window use_sliding_window max_window_layers "
#define SPARSE   "decoder_sparse_step norm_topk_prob "
#define MLA      "kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim "
#define DEEPSEEK "q_lora_rank qk_head_dim first_k_dense_replace n_shared_experts n_group topk_group topk_method scoring_func norm_topk_prob " \
                 "routed_scaling_factor moe_layer_freq ep_size aux_loss_alpha seq_aux rope_interleave num_nextn_predict_layers attention_bias "

const struct known_class known_classes[] = {
    {"LlamaForCausalLM", "rms_norm_eps", "attention_bias mlp_bias", SILU, {ends, norms, attention, mlp}},
    {"MistralForCausalLM", "rms_norm_eps", "sliding_window", SILU, {ends, norms, attention_without_biases, mlp}},
    {"Ernie4_5ForCausalLM", "rms_norm_eps use_bias", "", SILU, {ends, norms, attention_without_biases, mlp}},
    {"Qwen2ForCausalLM", "rms_norm_eps", WINDOW, SILU, {ends, norms, attention_of_qwen2, mlp}},
    {"Qwen3ForCausalLM", "rms_norm_eps", WINDOW "attention_bias", SILU, {ends, norms, attention, head_norms, mlp}},
    {"Qwen3MoeForCausalLM", "rms_norm_eps num_experts num_experts_per_tok moe_intermediate_size", WINDOW SPARSE "attention_bias",
     SILU " decoder_sparse_step=1", {ends, norms, attention, head_norms, experts}},
    {"MixtralForCausalLM", "rms_norm_eps num_local_experts num_experts_per_tok", "sliding_window", SILU,
     {ends, norms, attention_without_biases, experts_of_mixtral}},
    {"GemmaForCausalLM", "rms_norm_eps head_dim hidden_activation", "attention_bias", "hidden_activation=gelu_pytorch_tanh",
     {ends, norms, attention, mlp}},
    {"Gemma2ForCausalLM", "rms_norm_eps hidden_activation query_pre_attn_scalar sliding_window final_logit_softcapping",
     "attention_bias attn_logit_softcapping cache_implementation layer_types hidden_act", "hidden_activation=gelu_pytorch_tanh",
     {ends, four_norms, attention, mlp}},
    {"Gemma3ForCausalLM", "rms_norm_eps hidden_activation query_pre_attn_scalar sliding_window",
     "attention_bias rope_local_base_freq sliding_window_pattern layer_types cache_implementation", "hidden_activation=gelu_pytorch_tanh",
     {ends, four_norms, attention, head_norms, mlp}},
    {"Phi3ForCausalLM", "rms_norm_eps", "sliding_window original_max_position_embeddings partial_rotary_factor", SILU, {ends, norms, OWN(
        {ATTENTION "qkv_proj.weight", "q+2k,e"},
        {ATTENTION "o_proj.weight", "e,q"}), fused_mlp}},
    {"DeepseekV3ForCausalLM", MLA "rms_norm_eps n_routed_experts num_experts_per_tok moe_intermediate_size first_k_dense_replace", DEEPSEEK,
     SILU " moe_layer_freq=1 scoring_func=sigmoid topk_method=noaux_tc", {ends, norms, attention_of_deepseek, experts_of_deepseek, OWN(
        {L "mlp.gate.e_score_correction_bias", "x", .layers = SPARSE_LAYERS})}},
    {"DeepseekV2ForCausalLM", MLA "rms_norm_eps n_routed_experts num_experts_per_tok moe_intermediate_size first_k_dense_replace", DEEPSEEK,
     SILU " moe_layer_freq=1 scoring_func=softmax", {ends, norms, attention_of_deepseek, experts_of_deepseek}},
    {"Qwen2MoeForCausalLM", "rms_norm_eps num_experts num_experts_per_tok moe_intermediate_size shared_expert_intermediate_size",
     WINDOW SPARSE "qkv_bias", SILU " decoder_sparse_step=1", {ends, norms, attention_of_qwen2, experts, shared_expert_of_qwen2}},
    {"GraniteForCausalLM", "rms_norm_eps embedding_multiplier attention_multiplier residual_multiplier logits_scaling", "attention_bias mlp_bias",
     SILU, {ends, norms, attention, mlp}},
    {"GraniteMoeForCausalLM",
     "rms_norm_eps embedding_multiplier attention_multiplier residual_multiplier logits_scaling num_local_experts num_experts_per_tok",
     "attention_bias position_embedding_type", SILU, {ends, norms, attention, experts_of_granite}},
    {"SmolLM3ForCausalLM", "rms_norm_eps no_rope_layers", WINDOW "attention_bias mlp_bias no_rope_layer_interval layer_types", SILU,
     {ends, norms, attention, mlp}},
    {"Olmo2ForCausalLM", "rms_norm_eps", "attention_bias", SILU, {ends, post_norms, attention, whole_norms, mlp}},
    {"Olmo3ForCausalLM", "rms_norm_eps sliding_window layer_types", "attention_bias", SILU, {ends, post_norms, attention, whole_norms, mlp}},
    {"OlmoeForCausalLM", "rms_norm_eps num_experts num_experts_per_tok", "attention_bias clip_qkv norm_topk_prob", SILU,
     {ends, norms, attention, whole_norms, OWN(
        {L "mlp.gate.weight", "x,e"},
        {L "mlp.experts.{expert}.gate_proj.weight", "f,e"},
        {L "mlp.experts.{expert}.up_proj.weight", "f,e"},
        {L "mlp.experts.{expert}.down_proj.weight", "e,f"})}},
    {"Exaone4ForCausalLM", "rms_norm_eps", "sliding_window sliding_window_pattern layer_types", SILU,
     {ends, post_norms, attention_without_biases, head_norms, mlp}},
    {"HunYuanDenseV1ForCausalLM", "rms_norm_eps", "attention_bias", SILU, {ends, norms, attention, mlp, OWN(
        {ATTENTION "query_layernorm.weight", "d"},
        {ATTENTION "key_layernorm.weight", "d"})}},
    {"SeedOssForCausalLM", "rms_norm_eps attention_out_bias", "attention_bias mlp_bias", SILU, {ends, norms, attention_of_qwen2, mlp, OWN(
        {ATTENTION "o_proj.bias", "e", "attention_out_bias"})}},
    {"Glm4ForCausalLM", "rms_norm_eps partial_rotary_factor", "attention_bias", SILU, {ends, norms, fused_mlp, OWN(
        {L "post_self_attn_layernorm.weight", "e"},
        {L "post_mlp_layernorm.weight", "e"},
        {ATTENTION "q_proj.weight", "q,e"},
        {ATTENTION "k_proj.weight", "k,e"},
        {ATTENTION "v_proj.weight", "k,e"},
        {ATTENTION "o_proj.weight", "e,q"},
        {ATTENTION "q_proj.bias", "q", "attention_bias"},
        {ATTENTION "k_proj.bias", "k", "attention_bias"},
        {ATTENTION "v_proj.bias", "k", "attention_bias"})}},
    {"NemotronForCausalLM", "norm_eps partial_rotary_factor hidden_act", "attention_bias mlp_bias rms_norm_eps", "hidden_act=relu2",
     {ends, norms, norm_biases, attention, up_and_down}},
    {"Cohere2ForCausalLM", "layer_norm_eps logit_scale sliding_window",
     "attention_bias layer_types sliding_window_pattern rotary_pct order_of_interleaved_layers position_embedding_type cache_implementation rms_norm_eps",
     SILU, {ends, attention, mlp, OWN({L "input_layernorm.weight", "e"})}},
    {"StableLmForCausalLM", "layer_norm_eps", "partial_rotary_factor use_qkv_bias rms_norm_eps", SILU,
     {ends, norms, norm_biases, mlp, OWN(
        {ATTENTION "q_proj.weight", "q,e"},
        {ATTENTION "k_proj.weight", "k,e"},
        {ATTENTION "v_proj.weight", "k,e"},
        {ATTENTION "o_proj.weight", "e,q"},
        {ATTENTION "q_proj.bias", "q", "use_qkv_bias"},
        {ATTENTION "k_proj.bias", "k", "use_qkv_bias"},
        {ATTENTION "v_proj.bias", "k", "use_qkv_bias"})}},
    {"ArceeForCausalLM", "rms_norm_eps hidden_act", "attention_bias mlp_bias", "hidden_act=relu2", {ends, norms, attention, up_and_down}},
    {"Starcoder2ForCausalLM", "norm_epsilon use_bias hidden_act", "sliding_window rms_norm_eps", "hidden_act=gelu_pytorch_tanh",
     {ends, norms, norm_biases, attention_of_qwen2, OWN(
        {ATTENTION "o_proj.bias", "e"},
        {L "mlp.c_fc.weight", "f,e"},
        {L "mlp.c_fc.bias", "f"},
        {L "mlp.c_proj.weight", "e,f"},
        {L "mlp.c_proj.bias", "e"})}},
    {0},
};

const char harmless_keys[] =
    "architectures auto_map model_type torch_dtype dtype transformers_version use_cache tie_word_embeddings initializer_range vocab_size "
    "hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim intermediate_size max_position_embeddings hidden_act "
    "hidden_activation rope_theta rope_scaling rope_parameters pretraining_tp quantization_config task_specific_params id2label label2id max_length "
    "output_router_logits router_aux_loss_coef router_jitter_noise attn_implementation unsloth_version unsloth_fixed";
const char *const harmless_key_ends[] = {"_token_id", "dropout", "_pdrop", NULL};
/* clang-format on */
