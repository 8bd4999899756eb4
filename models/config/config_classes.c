/* scripts/tables writes the values of keys from transformers 4.57.6. */
#include "models/config/config_class.h"

#include <stddef.h>
#include <string.h>

const char config_common_defaults[] =
    "{'max_length': 20, 'bos_token_id': null, 'eos_token_id': null, 'pad_token_id': null, 'sep_token_id': null,"
    " 'decoder_start_token_id': null, 'tie_word_embeddings': true}";

static const struct config_computed kv_heads[] = {{"num_key_value_heads", "num_attention_heads", NULL}, {0}};
static const struct config_computed head_dim[] = {{"head_dim", "hidden_size", "num_attention_heads"}, {0}};
static const struct config_computed kv_heads_and_head_dim[] = {
    {"num_key_value_heads", "num_attention_heads", NULL}, {"head_dim", "hidden_size", "num_attention_heads"}, {0}};
static const struct config_computed kv_heads_and_rope_head_dim[] = {
    {"num_key_value_heads", "num_attention_heads", NULL}, {"head_dim", "qk_rope_head_dim", NULL}, {0}};
static const struct config_computed falcon_computed[] = {{"num_kv_heads", "num_attention_heads", NULL}, {0}};
static const struct config_computed whisper_computed[] = {{"num_hidden_layers", "encoder_layers", NULL}, {0}};
static const struct config_computed t5_computed[] = {{"num_decoder_layers", "num_layers", NULL}, {0}};

static const struct config_alias gpt2_aliases[] = {{"hidden_size", "n_embd"},
                                                   {"max_position_embeddings", "n_positions"},
                                                   {"num_attention_heads", "n_head"},
                                                   {"num_hidden_layers", "n_layer"},
                                                   {0}};
static const struct config_alias falcon_aliases[] = {{"n_embed", "hidden_size"}, {0}};
static const struct config_alias bloom_aliases[] = {
    {"n_embed", "hidden_size"}, {"num_hidden_layers", "n_layer"}, {"num_attention_heads", "n_head"}, {0}};
static const struct config_alias mpt_aliases[] = {
    {"num_attention_heads", "n_heads"}, {"hidden_size", "d_model"}, {"num_hidden_layers", "n_layers"}, {0}};
static const struct config_alias dbrx_aliases[] = {{"num_attention_heads", "n_heads"},
                                                   {"hidden_size", "d_model"},
                                                   {"num_hidden_layers", "n_layers"},
                                                   {"max_position_embeddings", "max_seq_len"},
                                                   {0}};
static const struct config_alias distilbert_aliases[] = {
    {"hidden_size", "dim"}, {"num_attention_heads", "n_heads"}, {"num_hidden_layers", "n_layers"}, {0}};
static const struct config_alias t5_aliases[] = {{"hidden_size", "d_model"},
                                                 {"num_attention_heads", "num_heads"},
                                                 {"num_hidden_layers", "num_layers"},
                                                 {"head_dim", "d_kv"},
                                                 {0}};
static const struct config_alias lfm2_aliases[] = {{"block_ff_dim", "intermediate_size"}, {"theta", "rope_theta"}, {0}};

static const struct config_alias hunyuan_aliases[] = {{"eod_token_id", ""}, {0}};

static const struct config_alias mistral_moe_aliases[] = {{"dim", "hidden_size"},
                                                          {"norm_eps", "rms_norm_eps"},
                                                          {"n_kv_heads", "num_key_value_heads"},
                                                          {"n_layers", "num_hidden_layers"},
                                                          {"n_heads", "num_attention_heads"},
                                                          {"hidden_dim", "intermediate_size"},
                                                          {"tied_embeddings", "tie_word_embeddings"},
                                                          {"moe.first_k_dense_replace", "first_k_dense_replace"},
                                                          {"moe.num_experts_per_tok", "num_experts_per_tok"},
                                                          {"moe.num_experts", "n_routed_experts"},
                                                          {"moe.expert_hidden_dim", "moe_intermediate_size"},
                                                          {"moe.routed_scale", "routed_scaling_factor"},
                                                          {"moe.num_shared_experts", "n_shared_experts"},
                                                          {"moe.num_expert_groups", "n_group"},
                                                          {"moe.num_expert_groups_per_tok", "topk_group"},
                                                          {0}};

static const struct config_alias voxtral_encoder_aliases[] = {{"d_model", "hidden_size"},
                                                              {"encoder_layers", "num_hidden_layers"},
                                                              {"encoder_attention_heads", "num_attention_heads"},
                                                              {"encoder_ffn_dim", "intermediate_size"},
                                                              {0}};

/* Starts of defaults that several classes share. */
#define QWEN2_5_VISION_DEFAULTS                                                                                        \
    "{'depth': 32, 'hidden_size': 3584, 'hidden_act': 'silu', 'intermediate_size': 3420, 'num_heads': 16,"             \
    " 'patch_size': 14, 'spatial_merge_size': 2, 'temporal_patch_size': 2, 'fullatt_block_indexes': [7, 15, 23, 31]"

#define QWEN3_VISION_DEFAULTS                                                                                          \
    "{'depth': 27, 'hidden_size': 1152, 'hidden_act': 'gelu_pytorch_tanh', 'intermediate_size': 4304,"                 \
    " 'num_heads': 16, 'patch_size': 16, 'spatial_merge_size': 2, 'temporal_patch_size': 2,"                           \
    " 'num_position_embeddings': 2304, 'deepstack_visual_indexes': [8, 16, 24]"

#define SIGLIP_DEFAULTS                                                                                                \
    "{'hidden_size': 768, 'intermediate_size': 3072, 'num_hidden_layers': 12, 'num_attention_heads': 12,"              \
    " 'patch_size': 16, 'hidden_act': 'gelu_pytorch_tanh', 'layer_norm_eps': 1e-06"

#define BERT_DEFAULTS                                                                                                  \
    "{'num_hidden_layers': 12, 'max_position_embeddings': 512, 'hidden_size': 768, 'intermediate_size': 3072,"         \
    " 'num_attention_heads': 12, 'layer_norm_eps': 1e-12, 'type_vocab_size': 2"
#define ROBERTA_TOKENS ", 'pad_token_id': 1, 'bos_token_id': 0, 'eos_token_id': 2"

#define T5_DEFAULTS                                                                                                    \
    "{'d_model': 512, 'd_kv': 64, 'layer_norm_epsilon': 1e-06, 'relative_attention_num_buckets': 32,"                  \
    " 'pad_token_id': 0, 'eos_token_id': 1"

#define GRANITE_DEFAULTS                                                                                               \
    "{'num_hidden_layers': 32, 'max_position_embeddings': 2048, 'hidden_size': 4096, 'intermediate_size': 11008,"      \
    " 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06,"                  \
    " 'vocab_size': 32000, 'attention_multiplier': 1.0, 'embedding_multiplier': 1.0, 'residual_multiplier': 1.0,"      \
    " 'logits_scaling': 1.0, 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false"

#define OLMO_DEFAULTS                                                                                                  \
    "{'max_position_embeddings': 2048, 'hidden_size': 4096, 'intermediate_size': 11008, 'num_hidden_layers': 32,"      \
    " 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null, 'vocab_size': 50304, 'pad_token_id': 1," \
    " 'eos_token_id': 50279, 'tie_word_embeddings': false"

#define HUNYUAN_DEFAULTS                                                                                               \
    "{'num_hidden_layers': 32, 'max_position_embeddings': 2048, 'hidden_size': 4096, 'intermediate_size': 11008,"      \
    " 'num_attention_heads': 32, 'head_dim': null, 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': "      \
    "1e-05,"                                                                                                           \
    " 'vocab_size': 290943, 'pad_token_id': 0, 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false"

#define COHERE_DEFAULTS                                                                                                \
    "{'num_hidden_layers': 40, 'max_position_embeddings': 8192, 'hidden_size': 8192, 'intermediate_size': 22528,"      \
    " 'num_attention_heads': 64, 'rope_theta': 10000.0, 'rope_scaling': null, 'layer_norm_eps': 1e-05,"                \
    " 'vocab_size': 256000, 'logit_scale': 0.0625, 'pad_token_id': 0, 'bos_token_id': 5, 'eos_token_id': 255001"

#define GLM4_MOE_DEFAULTS                                                                                              \
    "{'num_hidden_layers': 46, 'hidden_size': 4096, 'intermediate_size': 10944, 'num_attention_heads': 96,"            \
    " 'num_key_value_heads': 8, 'rope_theta': 10000.0, 'rope_scaling': null, 'partial_rotary_factor': 0.5,"            \
    " 'rms_norm_eps': 1e-05, 'n_routed_experts': 128, 'num_experts_per_tok': 8, 'n_group': 1, 'topk_group': 1,"        \
    " 'moe_intermediate_size': 1408, 'n_shared_experts': 1, 'first_k_dense_replace': 1, 'routed_scaling_factor': 1.0," \
    " 'norm_topk_prob': true, 'tie_word_embeddings': false"

#define QWEN3_VL_DEFAULTS "{'vision_config': {'deepstack_visual_indexes': [8, 16, 24]}, 'tie_word_embeddings': false}"

#define SMOLVLM_DEFAULTS "{'pad_token_id': 128002, 'tie_word_embeddings': false}"

static const struct config_class classes[] = {
    {.model_type = "llama",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 2048, 'hidden_size': 4096,"
                 " 'intermediate_size': 11008, 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'rms_norm_eps': 1e-06, 'vocab_size': 32000, 'bos_token_id': 1, 'eos_token_id': 2,"
                 " 'tie_word_embeddings': false}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "mistral|ministral",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 131072, 'hidden_size': 4096,"
                 " 'intermediate_size': 14336, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rope_theta': 10000.0, 'rms_norm_eps': 1e-06, 'head_dim': null, 'vocab_size': 32000,"
                 " 'sliding_window': 4096, 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "mixtral",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 131072, 'hidden_size': 4096,"
                 " 'intermediate_size': 14336, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rope_theta': 1000000.0, 'rms_norm_eps': 1e-05, 'num_local_experts': 8, 'num_experts_per_tok': 2,"
                 " 'head_dim': null, 'vocab_size': 32000, 'sliding_window': null, 'bos_token_id': 1,"
                 " 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "smollm3",
     .defaults = "{'num_hidden_layers': 36, 'max_position_embeddings': 32768, 'hidden_size': 2048,"
                 " 'intermediate_size': 11008, 'num_attention_heads': 16, 'num_key_value_heads': 4,"
                 " 'rope_theta': 2000000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'vocab_size': 128256,"
                 " 'sliding_window': null, 'pad_token_id': 128004, 'bos_token_id': 128000, 'eos_token_id': 128001}",
     .computed = kv_heads},
    {.model_type = "arcee",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 4096, 'hidden_size': 2560,"
                 " 'intermediate_size': 18432, 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'rms_norm_eps': 1e-05, 'vocab_size': 32000, 'bos_token_id': 128000, 'eos_token_id': 128001,"
                 " 'tie_word_embeddings': false}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "qwen2",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 32768, 'hidden_size': 4096,"
                 " 'intermediate_size': 22016, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'vocab_size': 151936,"
                 " 'sliding_window': null, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "qwen2_moe",
     .defaults = "{'num_hidden_layers': 24, 'max_position_embeddings': 32768, 'hidden_size': 2048,"
                 " 'intermediate_size': 5632, 'num_attention_heads': 16, 'num_key_value_heads': 16,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'num_experts': 60,"
                 " 'num_experts_per_tok': 4, 'moe_intermediate_size': 1408, 'shared_expert_intermediate_size': 5632,"
                 " 'norm_topk_prob': false, 'vocab_size': 151936, 'sliding_window': null,"
                 " 'tie_word_embeddings': false}"},
    {.model_type = "qwen3",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 32768, 'hidden_size': 4096,"
                 " 'intermediate_size': 22016, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'head_dim': 128,"
                 " 'vocab_size': 151936, 'sliding_window': null, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "qwen3_moe",
     .defaults = "{'num_hidden_layers': 24, 'max_position_embeddings': 32768, 'hidden_size': 2048,"
                 " 'intermediate_size': 6144, 'num_attention_heads': 32, 'num_key_value_heads': 4,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'num_experts': 128,"
                 " 'num_experts_per_tok': 8, 'moe_intermediate_size': 768, 'norm_topk_prob': false,"
                 " 'vocab_size': 151936, 'sliding_window': null, 'tie_word_embeddings': false}"},
    {.model_type = "qwen2_vl",
     .defaults = "{}",
     .text_class = "qwen2_vl_text",
     .text_may_be_flat = true,
     .vision_class = "qwen2_vl_vision"},
    {.model_type = "qwen2_5_vl",
     .defaults = "{}",
     .text_class = "qwen2_5_vl_text",
     .text_may_be_flat = true,
     .vision_class = "qwen2_5_vl_vision"},
    {.model_type = "qwen2_vl_text|qwen2_5_vl_text",
     .defaults =
         "{'num_hidden_layers': 80, 'max_position_embeddings': 32768, 'hidden_size': 8192, 'intermediate_size': 29568,"
         " 'num_attention_heads': 64, 'num_key_value_heads': 8, 'rope_theta': 1000000.0, 'rope_scaling': null,"
         " 'rms_norm_eps': 1e-05, 'vocab_size': 152064, 'sliding_window': null, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "qwen2_5_omni",
     .defaults = "{}",
     .text_class = "qwen2_5_omni_text",
     .vision_class = "qwen2_5_omni_vision_encoder",
     .audio_class = "qwen2_5_omni_audio_encoder"},
    {.model_type = "qwen2_5_omni_text",
     .defaults = "{'num_hidden_layers': 28, 'max_position_embeddings': 32768, 'hidden_size': 3584,"
                 " 'intermediate_size': 18944, 'num_attention_heads': 28, 'num_key_value_heads': 4,"
                 " 'rope_theta': 1000000.0, 'rope_scaling': {'mrope_section': [16, 24, 24], 'rope_type': 'default',"
                 " 'type': 'default'}, 'rms_norm_eps': 1e-06, 'vocab_size': 152064, 'sliding_window': null,"
                 " 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "qwen3_vl",
     .defaults = QWEN3_VL_DEFAULTS,
     .text_class = "qwen3_vl_text",
     .vision_class = "qwen3_vl_vision"},
    {.model_type = "qwen3_vl_moe",
     .defaults = QWEN3_VL_DEFAULTS,
     .text_class = "qwen3_vl_moe_text",
     .vision_class = "qwen3_vl_vision"},
    {.model_type = "qwen3_vl_text",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 128000, 'hidden_size': 4096,"
                 " 'intermediate_size': 22016, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 5000000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'head_dim': 128,"
                 " 'vocab_size': 151936, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "qwen3_vl_moe_text",
     .defaults = "{'num_hidden_layers': 24, 'max_position_embeddings': 128000, 'hidden_size': 2048,"
                 " 'intermediate_size': 5632, 'num_attention_heads': 16, 'num_key_value_heads': 16,"
                 " 'rope_theta': 5000000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'num_experts': 60,"
                 " 'num_experts_per_tok': 4, 'moe_intermediate_size': 1408, 'norm_topk_prob': true,"
                 " 'vocab_size': 151936, 'tie_word_embeddings': false}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "qwen3_omni_moe",
     .defaults = "{}",
     .text_class = "qwen3_omni_moe_text",
     .vision_class = "qwen3_omni_moe_vision_encoder",
     .audio_class = "qwen3_omni_moe_audio_encoder"},
    {.model_type = "qwen3_omni_moe_text",
     .defaults = "{'num_hidden_layers': 28, 'max_position_embeddings': 32768, 'hidden_size': 2048,"
                 " 'intermediate_size': 18944, 'num_attention_heads': 28, 'num_key_value_heads': 4,"
                 " 'rope_theta': 1000000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'num_experts': 128,"
                 " 'num_experts_per_tok': 8, 'moe_intermediate_size': 768, 'norm_topk_prob': true, 'vocab_size': 3584,"
                 " 'sliding_window': null, 'tie_word_embeddings': false}"},
    {.model_type = "mistral3",
     .defaults = "{'spatial_merge_size': 2}",
     .text_class = "mistral",
     .vision_class = "pixtral"},
    {/* the model type of the published Grok 2 */
     .model_type = "git",
     .defaults = "{'num_hidden_layers': 6, 'max_position_embeddings': 1024, 'hidden_size': 768,"
                 " 'intermediate_size': 3072, 'num_attention_heads': 12, 'layer_norm_eps': 1e-12, 'vocab_size': 30522,"
                 " 'pad_token_id': 0, 'bos_token_id': 101, 'eos_token_id': 102}"},
    {.model_type = "glm4_moe",
     .defaults = GLM4_MOE_DEFAULTS ", 'max_position_embeddings': 131072, 'vocab_size': 151552}"},
    {.model_type = "glm4v_moe_text|Glm4vMoe_text",
     .defaults = GLM4_MOE_DEFAULTS ", 'max_position_embeddings': 65536, 'vocab_size': 151424}"},
    {.model_type = "glm4v_moe", .defaults = "{}", .text_class = "glm4v_moe_text", .vision_class = "glm4v_vision"},
    {.model_type = "qwen3_next",
     .defaults = "{'num_hidden_layers': 48, 'max_position_embeddings': 32768, 'hidden_size': 2048,"
                 " 'intermediate_size': 5632, 'num_attention_heads': 16, 'num_key_value_heads': 2,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'partial_rotary_factor': 0.25, 'rms_norm_eps': 1e-06,"
                 " 'head_dim': 256, 'num_experts': 512, 'num_experts_per_tok': 10, 'moe_intermediate_size': 512,"
                 " 'shared_expert_intermediate_size': 512, 'norm_topk_prob': true, 'linear_conv_kernel_dim': 4,"
                 " 'linear_key_head_dim': 128, 'linear_num_key_heads': 16, 'linear_num_value_heads': 32,"
                 " 'linear_value_head_dim': 128, 'vocab_size': 151936, 'tie_word_embeddings': false}"},
    {.model_type = "gemma",
     .defaults = "{'num_hidden_layers': 28, 'max_position_embeddings': 8192, 'hidden_size': 3072,"
                 " 'intermediate_size': 24576, 'num_attention_heads': 16, 'num_key_value_heads': 16,"
                 " 'rope_theta': 10000.0, 'rms_norm_eps': 1e-06, 'head_dim': 256, 'vocab_size': 256000,"
                 " 'pad_token_id': 0, 'bos_token_id': 2, 'eos_token_id': 1}"},
    {.model_type = "gemma2",
     .defaults = "{'num_hidden_layers': 26, 'max_position_embeddings': 8192, 'hidden_size': 2304,"
                 " 'intermediate_size': 9216, 'num_attention_heads': 8, 'num_key_value_heads': 4,"
                 " 'rope_theta': 10000.0, 'rms_norm_eps': 1e-06, 'head_dim': 256, 'vocab_size': 256000,"
                 " 'sliding_window': 4096, 'attn_logit_softcapping': 50.0, 'final_logit_softcapping': 30.0,"
                 " 'pad_token_id': 0, 'bos_token_id': 2, 'eos_token_id': 1}"},
    {.model_type = "gemma3_text",
     .defaults = "{'num_hidden_layers': 26, 'max_position_embeddings': 131072, 'hidden_size': 2304,"
                 " 'intermediate_size': 9216, 'num_attention_heads': 8, 'num_key_value_heads': 4,"
                 " 'rope_theta': 1000000.0, 'rope_scaling': null, 'rope_local_base_freq': 10000.0,"
                 " 'rms_norm_eps': 1e-06, 'head_dim': 256, 'vocab_size': 262208, 'sliding_window': 4096,"
                 " 'attn_logit_softcapping': null, 'final_logit_softcapping': null, 'pad_token_id': 0,"
                 " 'bos_token_id': 2, 'eos_token_id': 1}"},
    {.model_type = "gemma3", .defaults = "{}", .text_class = "gemma3_text", .vision_class = "siglip_vision_model"},
    {.model_type = "lfm2",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 128000, 'hidden_size': 2560,"
                 " 'intermediate_size': 12288, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rope_theta': 1000000.0, 'norm_eps': 1e-05, 'conv_L_cache': 3, 'block_auto_adjust_ff_dim': true,"
                 " 'block_ffn_dim_multiplier': 1.0, 'block_multiple_of': 256, 'vocab_size': 65536, 'pad_token_id': 0,"
                 " 'bos_token_id': 1, 'eos_token_id': 2}",
     .aliases = lfm2_aliases},
    {.model_type = "gemma3n_text",
     .defaults = "{'num_hidden_layers': 35, 'max_position_embeddings': 32768, 'hidden_size': 2048,"
                 " 'intermediate_size': 16384, 'num_attention_heads': 8, 'num_key_value_heads': 2,"
                 " 'rope_theta': 1000000.0, 'rope_scaling': null, 'rope_local_base_freq': 10000.0,"
                 " 'rms_norm_eps': 1e-06, 'head_dim': 256, 'vocab_size': 262400, 'vocab_size_per_layer_input': 262144,"
                 " 'hidden_size_per_layer_input': 256, 'altup_active_idx': 0, 'altup_num_inputs': 4,"
                 " 'num_kv_shared_layers': 15, 'sliding_window': 512, 'layer_types': null,"
                 " 'activation_sparsity_pattern': null, 'final_logit_softcapping': 30.0, 'pad_token_id': 0,"
                 " 'bos_token_id': 2, 'eos_token_id': 1}"},
    {.model_type = "gemma3n",
     .defaults = "{}",
     .text_class = "gemma3n_text",
     .vision_class = "gemma3n_vision",
     .audio_class = "gemma3n_audio"},
    {.model_type = "llama4_text",
     .defaults = "{'num_hidden_layers': 48, 'max_position_embeddings': 131072, 'hidden_size': 5120,"
                 " 'intermediate_size': 8192, 'intermediate_size_mlp': 16384, 'num_attention_heads': 40,"
                 " 'num_key_value_heads': 8, 'head_dim': 128, 'rope_theta': 500000.0, 'rope_scaling': null,"
                 " 'rms_norm_eps': 1e-05, 'num_local_experts': 16, 'num_experts_per_tok': 1,"
                 " 'interleave_moe_layer_step': 1, 'no_rope_layers': null, 'no_rope_layer_interval': 4,"
                 " 'layer_types': null, 'vocab_size': 202048, 'pad_token_id': null, 'bos_token_id': 1,"
                 " 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "llama4",
     .defaults = "{'tie_word_embeddings': false}",
     .text_class = "llama4_text",
     .vision_class = "llama4_vision_model"},
    {.model_type = "glm|glm4",
     .defaults =
         "{'num_hidden_layers': 40, 'max_position_embeddings': 131072, 'hidden_size': 4096, 'intermediate_size': 13696,"
         " 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1.5625e-07,"
         " 'vocab_size': 151552, 'pad_token_id': 151329, 'eos_token_id': [151329, 151336, 151338],"
         " 'tie_word_embeddings': false, 'num_key_value_heads': 2, 'head_dim': 128, 'partial_rotary_factor': 0.5}"},
    {.model_type = "glm4v_text",
     .defaults = "{'num_hidden_layers': 40, 'max_position_embeddings': 32768, 'hidden_size': 4096,"
                 " 'intermediate_size': 13696, 'num_attention_heads': 32, 'num_key_value_heads': 2,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'vocab_size': 151552,"
                 " 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "glm4v", .defaults = "{}", .text_class = "glm4v_text", .vision_class = "glm4v_vision"},
    {.model_type = "hunyuan_v1_dense",
     .defaults = HUNYUAN_DEFAULTS "}",
     .aliases = hunyuan_aliases,
     .computed = kv_heads},
    {.model_type = "hunyuan_v1_moe",
     .defaults = HUNYUAN_DEFAULTS ", 'num_experts': 1, 'moe_topk': 1}",
     .aliases = hunyuan_aliases,
     .computed = kv_heads},
    {.model_type = "ernie4_5",
     .defaults = "{'num_hidden_layers': 18, 'max_position_embeddings': 131072, 'hidden_size': 1024,"
                 " 'intermediate_size': 3072, 'num_attention_heads': 16, 'num_key_value_heads': 2, 'head_dim': 128,"
                 " 'rope_theta': 500000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'vocab_size': 103424,"
                 " 'pad_token_id': 0, 'bos_token_id': 1, 'eos_token_id': 2}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "ernie4_5_moe",
     .defaults = "{'num_hidden_layers': 28, 'max_position_embeddings': 131072, 'hidden_size': 2560,"
                 " 'intermediate_size': 12288, 'num_attention_heads': 20, 'num_key_value_heads': 4,"
                 " 'rope_theta': 500000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'moe_num_experts': 64,"
                 " 'moe_k': 6, 'moe_layer_interval': 1, 'moe_layer_start_index': 1, 'moe_num_shared_experts': 2,"
                 " 'moe_intermediate_size': 1536, 'vocab_size': 103424, 'pad_token_id': 0, 'bos_token_id': 1,"
                 " 'eos_token_id': 2}"},
    {.model_type = "exaone4",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 2048, 'hidden_size': 4096,"
                 " 'intermediate_size': 16384, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'sliding_window': 4096,"
                 " 'sliding_window_pattern': 4, 'layer_types': null, 'vocab_size': 102400, 'bos_token_id': 0,"
                 " 'eos_token_id': 2, 'tie_word_embeddings': false}"},
    {.model_type = "seed_oss",
     .defaults = "{'num_hidden_layers': 64, 'max_position_embeddings': 524288, 'hidden_size': 4096,"
                 " 'intermediate_size': 27648, 'num_attention_heads': 80, 'num_key_value_heads': 8, 'head_dim': 128,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'vocab_size': 155136,"
                 " 'pad_token_id': 1, 'bos_token_id': 0, 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "phimoe",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 131072, 'hidden_size': 4096,"
                 " 'intermediate_size': 6400, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rope_theta': 1000000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'num_local_experts': 16,"
                 " 'num_experts_per_tok': 2, 'sliding_window': null, 'vocab_size': 32064, 'bos_token_id': 1,"
                 " 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "modernbert",
     .defaults = "{'num_hidden_layers': 22, 'max_position_embeddings': 8192, 'hidden_size': 768,"
                 " 'intermediate_size': 1152, 'num_attention_heads': 12, 'norm_eps': 1e-05, 'local_attention': 128,"
                 " 'global_attn_every_n_layers': 3, 'global_rope_theta': 160000.0, 'local_rope_theta': 10000.0,"
                 " 'hidden_activation': 'gelu', 'vocab_size': 50368, 'pad_token_id': 50283, 'bos_token_id': 50281,"
                 " 'eos_token_id': 50282, 'cls_token_id': 50281, 'sep_token_id': 50282,"
                 " 'classifier_pooling': 'cls', 'classifier_activation': 'gelu'}"},
    {.model_type = "apertus",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 65536, 'hidden_size': 4096,"
                 " 'intermediate_size': 14336, 'num_attention_heads': 32, 'rope_theta': 12000000.0,"
                 " 'rope_scaling': {'rope_type': 'llama3', 'factor': 8.0, 'original_max_position_embeddings': 8192,"
                 " 'low_freq_factor': 1.0, 'high_freq_factor': 4.0}, 'rms_norm_eps': 1e-05, 'vocab_size': 131072,"
                 " 'pad_token_id': 3, 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "dots1",
     .defaults = "{'num_hidden_layers': 62, 'max_position_embeddings': 2048, 'hidden_size': 4608,"
                 " 'intermediate_size': 10944, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'n_group': 1, 'topk_group': 1,"
                 " 'first_k_dense_replace': 0, 'routed_scaling_factor': 1.0, 'norm_topk_prob': false,"
                 " 'n_shared_experts': null, 'n_routed_experts': null, 'num_experts_per_tok': null,"
                 " 'moe_intermediate_size': 1408, 'sliding_window': 4096, 'vocab_size': 152064,"
                 " 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "nemotron",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 4096, 'hidden_size': 6144,"
                 " 'intermediate_size': 24576, 'num_attention_heads': 48, 'rope_theta': 10000.0, 'norm_eps': 1e-05,"
                 " 'num_key_value_heads': null, 'partial_rotary_factor': 0.5, 'vocab_size': 256000, 'bos_token_id': 2,"
                 " 'eos_token_id': 3, 'tie_word_embeddings': false}",
     .computed = head_dim},
    {.model_type = "llava",
     .defaults = "{'tie_word_embeddings': false}",
     .text_class = "llama",
     .vision_class = "clip_vision_model"},
    {.model_type = "lfm2_vl", .defaults = "{}", .text_class = "lfm2", .vision_class = "siglip2_vision_model"},
    {.model_type = "voxtral",
     .defaults = "{}",
     .text_class = "llama",
     .text_defaults = "{'vocab_size': 131072, 'hidden_size': 3072, 'intermediate_size': 8192, 'num_hidden_layers': 30,"
                      " 'num_key_value_heads': 8, 'max_position_embeddings': 131072, 'rms_norm_eps': 1e-05,"
                      " 'rope_theta': 100000000.0, 'head_dim': 128}",
     .audio_class = "voxtral_encoder"},
    {.model_type = "granite_speech",
     .defaults = "{'downsample_rate': 5, 'window_size': 15}",
     .text_class = "granite",
     .audio_class = "granite_speech_encoder"},
    {.model_type = "janus", .defaults = "{}", .text_class = "llama", .vision_class = "janus_vision_model"},
    {.model_type = "smolvlm", .defaults = SMOLVLM_DEFAULTS, .text_class = "llama", .vision_class = "smolvlm_vision"},
    {.model_type = "idefics3", .defaults = SMOLVLM_DEFAULTS, .text_class = "llama", .vision_class = "idefics3_vision"},
    {.model_type = "internvl",
     .defaults = "{'downsample_ratio': 0.5}",
     .text_class = "qwen2",
     .vision_class = "internvl_vision"},
    {.model_type = "qwen2_audio", .defaults = "{}", .text_class = "qwen2", .audio_class = "qwen2_audio_encoder"},
    {.model_type = "phi3",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 4096, 'hidden_size': 3072,"
                 " 'intermediate_size': 8192, 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'partial_rotary_factor': 1.0, 'original_max_position_embeddings': 4096, 'rms_norm_eps': 1e-05,"
                 " 'vocab_size': 32064, 'sliding_window': null, 'pad_token_id': 32000, 'bos_token_id': 1,"
                 " 'eos_token_id': 32000, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "phi",
     .defaults = "{'num_hidden_layers': 24, 'max_position_embeddings': 2048, 'hidden_size': 2048,"
                 " 'intermediate_size': 8192, 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'partial_rotary_factor': 0.5, 'layer_norm_eps': 1e-05, 'vocab_size': 51200, 'bos_token_id': 1,"
                 " 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "gpt2|gpt_bigcode",
     .defaults = "{'n_layer': 12, 'n_positions': 1024, 'n_embd': 768, 'n_inner': null, 'n_head': 12,"
                 " 'layer_norm_epsilon': 1e-05, 'vocab_size': 50257, 'bos_token_id': 50256, 'eos_token_id': 50256}",
     .aliases = gpt2_aliases},
    {.model_type = "gpt_neox",
     .defaults = "{'num_hidden_layers': 44, 'max_position_embeddings': 2048, 'hidden_size': 6144,"
                 " 'intermediate_size': 24576, 'num_attention_heads': 64, 'rotary_emb_base': 10000,"
                 " 'rotary_pct': 0.25, 'rope_scaling': null, 'layer_norm_eps': 1e-05, 'vocab_size': 50432,"
                 " 'use_parallel_residual': true, 'bos_token_id': 0, 'eos_token_id': 2, 'tie_word_embeddings': false}"},
    {.model_type = "falcon",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 2048, 'hidden_size': 4544,"
                 " 'num_attention_heads': 71, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'layer_norm_epsilon': 1e-05, 'vocab_size': 65024, 'new_decoder_architecture': false,"
                 " 'multi_query': true, 'bos_token_id': 11, 'eos_token_id': 11}",
     .aliases = falcon_aliases,
     .computed = falcon_computed},
    {.model_type = "bloom",
     .defaults = "{'n_layer': 2, 'hidden_size': 64, 'n_head': 8, 'layer_norm_epsilon': 1e-05, 'vocab_size': 250880,"
                 " 'bos_token_id': 1, 'eos_token_id': 2}",
     .aliases = bloom_aliases},
    {.model_type = "mpt",
     .defaults = "{'n_layers': 24, 'd_model': 2048, 'n_heads': 16, 'layer_norm_epsilon': 1e-05, 'vocab_size': 50368,"
                 " 'max_seq_len': 2048, 'attn_config': {'clip_qkv': null, 'alibi': true, 'alibi_bias_max': 8},"
                 " 'logit_scale': null}",
     .aliases = mpt_aliases},
    {.model_type = "dbrx",
     .defaults = "{'n_layers': 24, 'd_model': 2048, 'n_heads': 16, 'max_seq_len': 2048, 'vocab_size': 32000,"
                 " 'attn_config': {'clip_qkv': null, 'kv_n_heads': 1, 'rope_theta': 10000.0},"
                 " 'ffn_config': {'ffn_hidden_size': 3584, 'moe_num_experts': 4, 'moe_top_k': 1},"
                 " 'tie_word_embeddings': false}",
     .aliases = dbrx_aliases},
    {.model_type = "bitnet",
     .defaults = "{'num_hidden_layers': 30, 'max_position_embeddings': 2048, 'hidden_size': 2560,"
                 " 'intermediate_size': 6912, 'num_attention_heads': 20, 'num_key_value_heads': 5,"
                 " 'hidden_act': 'relu2', 'rope_theta': 500000.0, 'rms_norm_eps': 1e-05, 'vocab_size': 128256,"
                 " 'bos_token_id': 128000, 'eos_token_id': 128001, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "chameleon",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 4096, 'hidden_size': 4096,"
                 " 'intermediate_size': 11008, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'vocab_size': 65536,"
                 " 'swin_norm': false, 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false}"},
    {.model_type = "stablelm",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 4096, 'hidden_size': 2560,"
                 " 'intermediate_size': 6912, 'num_attention_heads': 32, 'num_key_value_heads': 32,"
                 " 'rope_theta': 10000, 'rope_scaling': null, 'partial_rotary_factor': 0.25, 'layer_norm_eps': 1e-05,"
                 " 'vocab_size': 50304, 'use_parallel_residual': false, 'bos_token_id': 0, 'eos_token_id': 0,"
                 " 'tie_word_embeddings': false}"},
    {.model_type = "starcoder2",
     .defaults = "{'num_hidden_layers': 30, 'max_position_embeddings': 4096, 'hidden_size': 3072,"
                 " 'intermediate_size': 12288, 'num_attention_heads': 24, 'num_key_value_heads': 2,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'norm_epsilon': 1e-05, 'vocab_size': 49152,"
                 " 'sliding_window': null, 'bos_token_id': 50256, 'eos_token_id': 50256}"},
    {.model_type = "olmo", .defaults = OLMO_DEFAULTS ", 'clip_qkv': null}", .computed = kv_heads},
    {.model_type = "olmo2", .defaults = OLMO_DEFAULTS ", 'rms_norm_eps': 1e-05}", .computed = kv_heads},
    {.model_type = "olmo3",
     .defaults = OLMO_DEFAULTS ", 'rms_norm_eps': 1e-05, 'sliding_window': 4096, 'layer_types': null}",
     .computed = kv_heads},
    {.model_type = "olmoe",
     .defaults = "{'num_hidden_layers': 16, 'max_position_embeddings': 4096, 'hidden_size': 2048,"
                 " 'intermediate_size': 2048, 'num_attention_heads': 16, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'rms_norm_eps': 1e-05, 'num_experts': 64, 'num_experts_per_tok': 8, 'norm_topk_prob': false,"
                 " 'clip_qkv': null, 'vocab_size': 50304, 'pad_token_id': 1, 'eos_token_id': 50279,"
                 " 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "granite", .defaults = GRANITE_DEFAULTS "}", .computed = kv_heads},
    {.model_type = "granitemoe",
     .defaults = GRANITE_DEFAULTS ", 'num_local_experts': 8, 'num_experts_per_tok': 2}",
     .computed = kv_heads},
    {.model_type = "granitemoeshared",
     .defaults = GRANITE_DEFAULTS ", 'num_local_experts': 8, 'num_experts_per_tok': 2, 'shared_intermediate_size': 0}",
     .computed = kv_heads},
    {.model_type = "falcon_h1",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 8192, 'hidden_size': 4096,"
                 " 'intermediate_size': 14336, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rope_theta': 100000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-05, 'mamba_d_ssm': 1024,"
                 " 'mamba_n_heads': 128, 'mamba_d_state': 256, 'mamba_n_groups': 1, 'mamba_d_conv': 4,"
                 " 'key_multiplier': 1.0, 'attention_in_multiplier': 1.0, 'attention_out_multiplier': 1.0,"
                 " 'ssm_in_multiplier': 1.0, 'ssm_out_multiplier': 1.0, 'lm_head_multiplier': 1.0,"
                 " 'embedding_multiplier': 1.0, 'mlp_multipliers': [1.0, 1.0],"
                 " 'ssm_multipliers': [1.0, 1.0, 1.0, 1.0, 1.0], 'vocab_size': 128000, 'pad_token_id': 0,"
                 " 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads,
     .is_raw = true},
    {.model_type = "jamba",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 262144, 'hidden_size': 4096,"
                 " 'intermediate_size': 14336, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rms_norm_eps': 1e-06, 'num_experts': 16, 'num_experts_per_tok': 2, 'expert_layer_period': 2,"
                 " 'expert_layer_offset': 1, 'attn_layer_period': 8, 'attn_layer_offset': 4, 'mamba_expand': 2,"
                 " 'mamba_d_conv': 4, 'mamba_d_state': 16, 'sliding_window': null, 'vocab_size': 65536,"
                 " 'pad_token_id': 0, 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads},
    {.model_type = "granitemoehybrid",
     .defaults = GRANITE_DEFAULTS
     ", 'num_local_experts': 8, 'num_experts_per_tok': 2,"
     " 'shared_intermediate_size': 1024, 'layer_types': null, 'mamba_n_heads': 128, 'mamba_n_groups': 1,"
     " 'mamba_d_state': 256, 'mamba_d_conv': 4, 'mamba_expand': 2}",
     .computed = kv_heads,
     .is_raw = true},
    {.model_type = "bamba",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 262144, 'hidden_size': 4096,"
                 " 'intermediate_size': 14336, 'num_attention_heads': 32, 'num_key_value_heads': 8,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'partial_rotary_factor': 0.5, 'rms_norm_eps': 1e-05,"
                 " 'attn_layer_indices': null, 'mamba_n_heads': 128, 'mamba_n_groups': 1, 'mamba_d_state': 256,"
                 " 'mamba_d_conv': 4, 'mamba_expand': 2, 'vocab_size': 128000, 'pad_token_id': 0, 'bos_token_id': 1,"
                 " 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads,
     .is_raw = true},
    {.model_type = "deepseek_v2",
     .defaults = "{'num_hidden_layers': 32, 'max_position_embeddings': 2048, 'hidden_size': 4096,"
                 " 'intermediate_size': 11008, 'num_attention_heads': 32, 'rope_theta': 10000.0, 'rope_scaling': null,"
                 " 'rms_norm_eps': 1e-06, 'n_routed_experts': 64, 'n_shared_experts': 2, 'num_experts_per_tok': null,"
                 " 'n_group': null, 'topk_group': null, 'moe_intermediate_size': 1407, 'first_k_dense_replace': 0,"
                 " 'routed_scaling_factor': 1.0, 'norm_topk_prob': false, 'q_lora_rank': 1536, 'kv_lora_rank': 512,"
                 " 'qk_rope_head_dim': 64, 'qk_nope_head_dim': 128, 'v_head_dim': 128, 'vocab_size': 32000,"
                 " 'bos_token_id': 1, 'eos_token_id': 2, 'tie_word_embeddings': false}",
     .computed = kv_heads_and_rope_head_dim},
    {.model_type = "deepseek_v3",
     .defaults = "{'num_hidden_layers': 61, 'max_position_embeddings': 4096, 'hidden_size': 7168,"
                 " 'intermediate_size': 18432, 'num_attention_heads': 128, 'num_key_value_heads': 128,"
                 " 'rope_theta': 10000.0, 'rope_scaling': null, 'rms_norm_eps': 1e-06, 'n_routed_experts': 256,"
                 " 'n_shared_experts': 1, 'num_experts_per_tok': 8, 'n_group': 8, 'topk_group': 4,"
                 " 'moe_intermediate_size': 2048, 'first_k_dense_replace': 3, 'routed_scaling_factor': 2.5,"
                 " 'norm_topk_prob': true, 'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_rope_head_dim': 64,"
                 " 'qk_nope_head_dim': 128, 'v_head_dim': 128, 'vocab_size': 129280, 'bos_token_id': 0,"
                 " 'eos_token_id': 1, 'tie_word_embeddings': false}",
     .computed = kv_heads_and_rope_head_dim},
    {.model_type = "bert", .defaults = BERT_DEFAULTS ", 'vocab_size': 30522, 'pad_token_id': 0}"},
    {.model_type = "roberta", .defaults = BERT_DEFAULTS ", 'vocab_size': 50265" ROBERTA_TOKENS "}"},
    {.model_type = "xlm-roberta|camembert", .defaults = BERT_DEFAULTS ", 'vocab_size': 30522" ROBERTA_TOKENS "}"},
    {.model_type = "distilbert",
     .defaults = "{'n_layers': 6, 'max_position_embeddings': 512, 'dim': 768, 'hidden_dim': 3072, 'n_heads': 12,"
                 " 'vocab_size': 30522, 'pad_token_id': 0}",
     .aliases = distilbert_aliases},
    {.model_type = "t5",
     .defaults = T5_DEFAULTS ", 'num_layers': 6, 'd_ff': 2048, 'num_heads': 8, 'vocab_size': 32128}",
     .aliases = t5_aliases,
     .computed = t5_computed},
    {.model_type = "mt5",
     .defaults = T5_DEFAULTS ", 'num_layers': 8, 'd_ff': 1024, 'num_heads': 6, 'vocab_size': 250112,"
                             " 'decoder_start_token_id': 0, 'tie_word_embeddings': false}",
     .aliases = t5_aliases,
     .computed = t5_computed},
    {.model_type = "umt5",
     .defaults = T5_DEFAULTS ", 'num_layers': 8, 'd_ff': 1024, 'num_heads': 6, 'vocab_size': 250112,"
                             " 'decoder_start_token_id': 0}",
     .aliases = t5_aliases,
     .computed = t5_computed},
    {.model_type = "cohere", .defaults = COHERE_DEFAULTS "}", .computed = kv_heads},
    {.model_type = "cohere2",
     .defaults = COHERE_DEFAULTS ", 'sliding_window': 4096}",
     .computed = kv_heads_and_head_dim},
    {.model_type = "gpt_oss",
     .defaults = "{'num_hidden_layers': 36, 'max_position_embeddings': 131072, 'hidden_size': 2880,"
                 " 'intermediate_size': 2880, 'num_attention_heads': 64, 'num_key_value_heads': 8,"
                 " 'rope_theta': 150000.0, 'rope_scaling': {'rope_type': 'yarn', 'factor': 32.0, 'beta_fast': 32.0,"
                 " 'beta_slow': 1.0, 'truncate': false, 'original_max_position_embeddings': 4096},"
                 " 'rms_norm_eps': 1e-05, 'num_local_experts': 128, 'num_experts_per_tok': 4, 'head_dim': 64,"
                 " 'vocab_size': 201088, 'sliding_window': 128, 'tie_word_embeddings': false}",
     .computed = kv_heads_and_head_dim},
    /* Vision and audio encoders. */
    {.model_type = "qwen2_vl_vision",
     .defaults = "{'depth': 32, 'embed_dim': 1280, 'hidden_size': 3584, 'num_heads': 16, 'patch_size': 14,"
                 " 'spatial_merge_size': 2, 'temporal_patch_size': 2}"},
    {.model_type = "qwen2_5_vl_vision", .defaults = QWEN2_5_VISION_DEFAULTS "}"},
    {.model_type = "qwen2_5_omni_vision_encoder", .defaults = QWEN2_5_VISION_DEFAULTS "}", .is_tower = true},
    {.model_type = "qwen3_vl_vision", .defaults = QWEN3_VISION_DEFAULTS "}"},
    {.model_type = "qwen3_omni_moe_vision_encoder", .defaults = QWEN3_VISION_DEFAULTS "}", .is_tower = true},
    {.model_type = "glm4v_vision",
     .defaults = "{'depth': 24, 'hidden_size': 1536, 'hidden_act': 'silu', 'num_heads': 12, 'image_size': 336,"
                 " 'patch_size': 14, 'rms_norm_eps': 1e-05, 'spatial_merge_size': 2, 'temporal_patch_size': 2,"
                 " 'intermediate_size': 13696}"},
    {.model_type = "pixtral",
     .defaults = "{'hidden_size': 1024, 'intermediate_size': 4096, 'num_hidden_layers': 24, 'num_attention_heads': 16,"
                 " 'image_size': 1024, 'patch_size': 16, 'hidden_act': 'gelu'}",
     .is_tower = true},
    {.model_type = "clip_vision_model",
     .defaults = "{'hidden_size': 768, 'intermediate_size': 3072, 'num_hidden_layers': 12, 'num_attention_heads': 12,"
                 " 'image_size': 224, 'patch_size': 32, 'hidden_act': 'quick_gelu', 'layer_norm_eps': 1e-05}",
     .is_tower = true},
    {.model_type = "siglip_vision_model", .defaults = SIGLIP_DEFAULTS ", 'image_size': 224}", .is_tower = true},
    {.model_type = "siglip2_vision_model", .defaults = SIGLIP_DEFAULTS "}", .is_tower = true},
    {.model_type = "idefics3_vision|smolvlm_vision",
     .defaults = "{'hidden_size': 1152, 'intermediate_size': 3072, 'num_hidden_layers': 12, 'num_attention_heads': 16,"
                 " 'image_size': 224, 'patch_size': 32, 'hidden_act': 'gelu_pytorch_tanh', 'layer_norm_eps': 1e-06}",
     .is_tower = true},
    {.model_type = "janus_vision_model",
     .defaults = "{'hidden_size': 1024, 'num_hidden_layers': 24, 'num_attention_heads': 16, 'patch_size': 16,"
                 " 'image_size': 384, 'layer_norm_eps': 1e-06, 'hidden_act': 'gelu', 'mlp_ratio': 4.0}"},
    {.model_type = "internvl_vision",
     .defaults = "{'hidden_size': 1024, 'intermediate_size': 4096, 'num_hidden_layers': 24, 'num_attention_heads': 16,"
                 " 'image_size': [448, 448], 'patch_size': [14, 14], 'hidden_act': 'gelu', 'layer_norm_eps': 1e-06}",
     .is_tower = true},
    {.model_type = "llama4_vision_model",
     .defaults = "{'hidden_size': 768, 'intermediate_size': 5632, 'num_hidden_layers': 34, 'num_attention_heads': 16,"
                 " 'image_size': 448, 'patch_size': 14, 'hidden_act': 'gelu', 'norm_eps': 1e-05,"
                 " 'pixel_shuffle_ratio': 0.5}",
     .is_tower = true},
    {.model_type = "gemma3n_vision", .defaults = "{'hidden_size': 2048, 'rms_norm_eps': 1e-06}", .is_tower = true},
    {.model_type = "gemma3n_audio",
     .defaults = "{'hidden_size': 1536, 'conf_num_hidden_layers': 12, 'conf_num_attention_heads': 8,"
                 " 'input_feat_size': 128, 'rms_norm_eps': 1e-06}",
     .is_tower = true},
    {.model_type = "qwen2_audio_encoder|qwen2_5_omni_audio_encoder|qwen3_omni_moe_audio_encoder",
     .defaults = "{'d_model': 1280, 'encoder_ffn_dim': 5120, 'encoder_layers': 32,"
                 " 'encoder_attention_heads': 20, 'num_mel_bins': 128}",
     .computed = whisper_computed,
     .is_tower = true},
    {.model_type = "voxtral_encoder",
     .defaults = "{'hidden_size': 1280, 'intermediate_size': 5120, 'num_hidden_layers': 32, 'num_attention_heads': 20,"
                 " 'num_mel_bins': 128}",
     .aliases = voxtral_encoder_aliases,
     .is_tower = true},
    {.model_type = "granite_speech_encoder",
     .defaults = "{'input_dim': 160, 'num_layers': 10, 'hidden_dim': 1024, 'feedforward_mult': 4, 'num_heads': 8,"
                 " 'context_size': 200, 'max_pos_emb': 512, 'conv_kernel_size': 15}",
     .is_tower = true},
    /* Not in transformers: the converter's values for Mistral's params.json. */
    {.model_type = "MistralMoeModel",
     .defaults = "{'tie_word_embeddings': false, 'max_position_embeddings': 128000, 'norm_topk_prob': true,"
                 " 'scoring_func': 'softmax'}",
     .aliases = mistral_moe_aliases},
};

/* Reports whether `names`, "gpt2|gpt_bigcode", contains `name`. */
static bool lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; *at != '\0'; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

const struct config_class *config_class_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (lists(classes[i].model_type, model_type))
            return &classes[i];
    return NULL;
}
