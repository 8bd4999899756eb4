/* scripts/tables writes the values of keys from transformers 4.57.6. */
#include "models/config/saved_config.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
static const struct saved_class classes[] = {
    {"bloom",
     "{'apply_residual_connection_post_layernorm': false, 'attention_dropout': 0.0, 'bos_token_id': 1, "
     "'eos_token_id': 2, 'hidden_dropout': 0.0, 'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, "
     "'pretraining_tp': 1, 'slow_but_exact': false, 'use_cache': true}"},
    {"cohere",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 5, 'eos_token_id': 255001, "
     "'hidden_act': 'silu', 'initializer_range': 0.02, 'layer_norm_eps': 1e-05, 'logit_scale': 0.0625, "
     "'max_position_embeddings': 8192, 'num_key_value_heads': null, 'pad_token_id': 0, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'use_cache': true, 'use_qk_norm': false}"},
    {"cohere2",
     "{'_sliding_window_pattern': 4, 'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 5, "
     "'eos_token_id': 255001, 'head_dim': 128, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'layer_norm_eps': 1e-05, 'logit_scale': 0.0625, 'max_position_embeddings': 8192, "
     "'num_key_value_heads': null, 'pad_token_id': 0, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'sliding_window': 4096, 'use_cache': true}",
     .full_every = 4},
    {"gemma",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 2, 'eos_token_id': 1, "
     "'head_dim': 256, 'hidden_act': 'gelu_pytorch_tanh', 'hidden_activation': null, "
     "'initializer_range': 0.02, 'max_position_embeddings': 8192, 'num_key_value_heads': 16, "
     "'pad_token_id': 0, 'rms_norm_eps': 1e-06, 'rope_theta': 10000.0, 'use_cache': true}"},
    {"gemma2",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'attn_logit_softcapping': 50.0, 'bos_token_id': 2, "
     "'eos_token_id': 1, 'final_logit_softcapping': 30.0, 'head_dim': 256, "
     "'hidden_activation': 'gelu_pytorch_tanh', 'initializer_range': 0.02, 'max_position_embeddings': 8192, "
     "'num_key_value_heads': 4, 'pad_token_id': 0, 'query_pre_attn_scalar': 256, 'rms_norm_eps': 1e-06, "
     "'rope_theta': 10000.0, 'sliding_window': 4096, 'use_cache': true}",
     .full_every = 2},
    {"gemma3_text",
     "{'_sliding_window_pattern': 6, 'attention_bias': false, 'attention_dropout': 0.0, "
     "'attn_logit_softcapping': null, 'bos_token_id': 2, 'eos_token_id': 1, 'final_logit_softcapping': null, "
     "'head_dim': 256, 'hidden_activation': 'gelu_pytorch_tanh', 'initializer_range': 0.02, "
     "'max_position_embeddings': 131072, 'num_key_value_heads': 4, 'pad_token_id': 0, "
     "'query_pre_attn_scalar': 256, 'rms_norm_eps': 1e-06, 'rope_local_base_freq': 10000.0, "
     "'rope_scaling': null, 'rope_theta': 1000000.0, 'sliding_window': 4096, "
     "'use_bidirectional_attention': false, 'use_cache': true}",
     .full_every = 6},
    {"glm4",
     "{'attention_bias': true, 'attention_dropout': 0.0, 'eos_token_id': [151329, 151336, 151338], "
     "'head_dim': 128, 'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 131072, "
     "'num_key_value_heads': 2, 'pad_token_id': 151329, 'partial_rotary_factor': 0.5, "
     "'rms_norm_eps': 1.5625e-07, 'rope_theta': 10000.0, 'tie_word_embeddings': false, 'use_cache': true}"},
    {"gpt2",
     "{'activation_function': 'gelu_new', 'attn_pdrop': 0.1, 'bos_token_id': 50256, 'embd_pdrop': 0.1, "
     "'eos_token_id': 50256, 'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, 'n_inner': null, "
     "'n_positions': 1024, 'reorder_and_upcast_attn': false, 'resid_pdrop': 0.1, "
     "'scale_attn_by_inverse_layer_idx': false, 'scale_attn_weights': true, 'summary_activation': null, "
     "'summary_first_dropout': 0.1, 'summary_proj_to_labels': true, 'summary_type': 'cls_index', "
     "'summary_use_proj': true, 'use_cache': true}"},
    {"gpt_neox",
     "{'attention_bias': true, 'attention_dropout': 0.0, 'bos_token_id': 0, 'classifier_dropout': 0.1, "
     "'eos_token_id': 2, 'hidden_act': 'gelu', 'hidden_dropout': 0.0, 'initializer_range': 0.02, "
     "'layer_norm_eps': 1e-05, 'max_position_embeddings': 2048, 'partial_rotary_factor': 0.25, "
     "'rope_scaling': null, 'rope_theta': 10000, 'rotary_emb_base': 10000, 'rotary_pct': 0.25, "
     "'tie_word_embeddings': false, 'use_cache': true, 'use_parallel_residual': true}"},
    {"granite",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'attention_multiplier': 1.0, 'bos_token_id': 1, "
     "'embedding_multiplier': 1.0, 'eos_token_id': 2, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'logits_scaling': 1.0, 'max_position_embeddings': 2048, 'mlp_bias': false, 'num_key_value_heads': null, "
     "'residual_multiplier': 1.0, 'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"llama",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, "
     "'head_dim': null, 'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 2048, "
     "'mlp_bias': false, 'num_key_value_heads': null, 'pretraining_tp': 1, 'rms_norm_eps': 1e-06, "
     "'rope_scaling': null, 'rope_theta': 10000.0, 'tie_word_embeddings': false, 'use_cache': true}",
     .has_head_dim = true},
    {"mistral",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, 'head_dim': null, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 131072, 'num_key_value_heads': 8, "
     "'rms_norm_eps': 1e-06, 'rope_theta': 10000.0, 'sliding_window': 4096, 'tie_word_embeddings': false, "
     "'use_cache': true}"},
    {"mixtral",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, 'head_dim': null, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 131072, 'num_experts_per_tok': 2, "
     "'num_key_value_heads': 8, 'num_local_experts': 8, 'output_router_logits': false, 'rms_norm_eps': 1e-05, "
     "'rope_theta': 1000000.0, 'router_aux_loss_coef': 0.001, 'router_jitter_noise': 0.0, "
     "'sliding_window': null, 'tie_word_embeddings': false, 'use_cache': true}"},
    {"olmo",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'clip_qkv': null, 'eos_token_id': 50279, "
     "'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 2048, "
     "'num_key_value_heads': null, 'pad_token_id': 1, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"olmo2",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'eos_token_id': 50279, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 2048, 'num_key_value_heads': null, "
     "'pad_token_id': 1, 'rms_norm_eps': 1e-05, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"phi",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'embd_pdrop': 0.0, 'eos_token_id': 2, "
     "'hidden_act': 'gelu_new', 'initializer_range': 0.02, 'layer_norm_eps': 1e-05, "
     "'max_position_embeddings': 2048, 'num_key_value_heads': null, 'partial_rotary_factor': 0.5, "
     "'qk_layernorm': false, 'resid_pdrop': 0.0, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"phi3",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'embd_pdrop': 0.0, 'eos_token_id': 32000, "
     "'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 4096, "
     "'num_key_value_heads': null, 'original_max_position_embeddings': 4096, 'pad_token_id': 32000, "
     "'partial_rotary_factor': 1.0, 'resid_pdrop': 0.0, 'rms_norm_eps': 1e-05, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'sliding_window': null, 'tie_word_embeddings': false, 'use_cache': true}"},
    {"qwen2",
     "{'attention_dropout': 0.0, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'max_position_embeddings': 32768, 'max_window_layers': 28, 'num_key_value_heads': 32, "
     "'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 10000.0, 'sliding_window': 4096, "
     "'tie_word_embeddings': false, 'use_cache': true, 'use_sliding_window': false}",
     .has_window_layers = true},
    {"qwen2_moe",
     "{'attention_dropout': 0.0, 'decoder_sparse_step': 1, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'max_position_embeddings': 32768, 'max_window_layers': 28, 'mlp_only_layers': [], "
     "'moe_intermediate_size': 1408, 'norm_topk_prob': false, 'num_experts': 60, 'num_experts_per_tok': 4, "
     "'num_key_value_heads': 16, 'output_router_logits': false, 'qkv_bias': true, 'rms_norm_eps': 1e-06, "
     "'rope_scaling': null, 'rope_theta': 10000.0, 'router_aux_loss_coef': 0.001, "
     "'shared_expert_intermediate_size': 5632, 'sliding_window': 4096, 'tie_word_embeddings': false, "
     "'use_cache': true, 'use_sliding_window': false}"},
    {"qwen3",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'head_dim': 128, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 32768, 'max_window_layers': 28, "
     "'num_key_value_heads': 32, 'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'sliding_window': 4096, 'tie_word_embeddings': false, 'use_cache': true, 'use_sliding_window': false}",
     .has_window_layers = true},
    {"qwen3_moe",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'decoder_sparse_step': 1, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 32768, 'mlp_only_layers': [], "
     "'moe_intermediate_size': 768, 'norm_topk_prob': false, 'num_experts': 128, 'num_experts_per_tok': 8, "
     "'num_key_value_heads': 4, 'output_router_logits': false, 'rms_norm_eps': 1e-06, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'router_aux_loss_coef': 0.001, 'sliding_window': 4096, "
     "'tie_word_embeddings': false, 'use_cache': true, 'use_sliding_window': false}"},
    {"stablelm",
     "{'attention_dropout': 0.0, 'bos_token_id': 0, 'eos_token_id': 0, 'hidden_act': 'silu', "
     "'hidden_dropout': 0.0, 'initializer_range': 0.02, 'layer_norm_eps': 1e-05, "
     "'max_position_embeddings': 4096, 'num_key_value_heads': 32, 'partial_rotary_factor': 0.25, "
     "'qk_layernorm': false, 'rope_scaling': null, 'rope_theta': 10000, 'tie_word_embeddings': false, "
     "'use_cache': true, 'use_parallel_residual': false, 'use_qkv_bias': false}"},
    {"starcoder2",
     "{'attention_dropout': 0.0, 'bos_token_id': 50256, 'embedding_dropout': 0.0, 'eos_token_id': 50256, "
     "'hidden_act': 'gelu_pytorch_tanh', 'initializer_range': 0.018042, 'max_position_embeddings': 4096, "
     "'norm_epsilon': 1e-05, 'num_key_value_heads': 2, 'residual_dropout': 0.0, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'sliding_window': null, 'use_bias': true, 'use_cache': true}"},
    {0},
};
/* clang-format on */

const struct saved_class *saved_class_find(const char *model_type)
{
    for (const struct saved_class *class = classes; class->model_type != NULL; class ++)
        if (strcmp(class->model_type, model_type) == 0)
            return class;
    return NULL;
}
