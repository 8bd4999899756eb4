/* Values of keys that config.json does not have as they are: what convert_hf_to_gguf.py of llama.cpp writes
 * for such configurations. */
#include "base/checked.h"
#include "models/convert/model.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/write_safetensors.h"

#include <string.h>
#include <unistd.h>

enum { ABSENT = -1 };

#define SIZES                                                                                                          \
    "\"vocab_size\":8,\"hidden_size\":4,\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,"  \
    "\"intermediate_size\":4,\"head_dim\":2,\"rms_norm_eps\":1e-6,\"rope_theta\":1e4,\"max_position_embeddings\":8,"

#define GEMMA3 "{\"architectures\":[\"Gemma3ForCausalLM\"],\"model_type\":\"gemma3_text\"," SIZES
#define WORDS  "embeddings.word_embeddings"
#define ENCODER(name, head)                                                                                            \
    "{\"architectures\":[\"" name head "\"],\"model_type\":\"unheard_of\"," SIZES                                      \
    "\"layer_norm_eps\":1e-5,\"type_vocab_size\":1,"
#define MODERN_BERT ENCODER("ModernBert", "Model") "\"local_attention\":4,"
#define EMBEDDING3                                                                                                     \
    "{\"architectures\":[\"Gemma3TextModel\"],\"model_type\":\"gemma3_text\"," SIZES "\"sliding_window\":4,"
#define EXAONE                                                                                                         \
    "{\"architectures\":[\"ExaoneMoeForCausalLM\"],\"model_type\":\"exaone_moe\"," SIZES                               \
    "\"moe_intermediate_size\":4,\"num_shared_experts\":1,\"routed_scaling_factor\":1.0,\"norm_topk_prob\":true,"      \
    "\"layer_types\":[\"full_attention\"]"
#define HY3                                                                                                            \
    "{\"architectures\":[\"HYV3ForCausalLM\"],\"model_type\":\"hy_v3\"," SIZES                                         \
    "\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4"
#define GRANITE                                                                                                        \
    "{\"architectures\":[\"GraniteMoeHybridForCausalLM\"],\"model_type\":\"granitemoehybrid\"," SIZES                  \
    "\"mamba_n_heads\":2,\"mamba_n_groups\":1,\"mamba_d_state\":2,\"mamba_d_conv\":4,\"mamba_expand\":2,"              \
    "\"num_local_experts\":0,\"num_experts_per_tok\":0,"
#define EXAONE4 "{\"architectures\":[\"Exaone4ForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES
#define MELLUM                                                                                                         \
    "{\"architectures\":[\"MellumForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES "\"sliding_window\":6,"          \
    "\"num_experts\":2,\"num_experts_per_tok\":1,\"layer_types\":"
#define OLMO2                                                                                                          \
    "{\"architectures\":[\"Olmo2ForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES "\"sliding_window\":6,"           \
    "\"layer_types\":"
#define LFM2                                                                                                           \
    "{\"architectures\":[\"Lfm2ForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES "\"conv_L_cache\":3,"              \
    "\"norm_eps\":1e-5,\"block_ff_dim\":4,\"layer_types\":"
#define PLAIN                                                                                                          \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"unheard_of\",\"vocab_size\":8,"                        \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"head_dim\":2,\"rms_norm_eps\":1e-6,"
#define GEMMA4                                                                                                         \
    "{\"architectures\":[\"Gemma4ForCausalLM\"],\"model_type\":\"gemma4_text\"," SIZES "\"sliding_window\":6,"         \
    "\"global_head_dim\":2,\"num_kv_shared_layers\":0,\"hidden_size_per_layer_input\":0,"                              \
    "\"layer_types\":[\"full_attention\"],\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6,"                \
    "\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25},\"sliding_attention\":{\"rope_theta\":1e4}},"      \
    "\"final_logit_softcapping\":"
#define DBRX                                                                                                           \
    "{\"architectures\":[\"DbrxForCausalLM\"],\"model_type\":\"dbrx\",\"d_model\":4,\"n_heads\":2,\"n_layers\":1,"     \
    "\"max_seq_len\":8,\"vocab_size\":8,\"attn_config\":{\"clip_qkv\":8,\"kv_n_heads\":1,\"rope_theta\":5e5},"         \
    "\"ffn_config\":{\"ffn_hidden_size\":4,\"moe_num_experts\":2,\"moe_top_k\":1},"                                    \
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":"
#define LAGUNA                                                                                                         \
    "{\"architectures\":[\"LagunaForCausalLM\"],\"model_type\":\"laguna\"," SIZES "\"sliding_window\":6,"              \
    "\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,\"shared_expert_intermediate_size\":4,"   \
    "\"gating\":true,\"moe_routed_scaling_factor\":1.0,\"mlp_layer_types\":[\"sparse\"],\"rope_parameters\":{\"full_"  \
    "attention\":{\"rope_theta\":1e4,"                                                                                 \
    "\"rope_type\":\"default\"},\"sliding_attention\":{\"rope_theta\":1e4}},\"layer_types\":"
#define MINISTRAL                                                                                                      \
    "{\"architectures\":[\"Ministral3ForCausalLM\"],\"model_type\":\"ministral3\"," SIZES                              \
    "\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":2.0,\"rope_theta\":1e4,\"mscale_all_dim\":1.0,"            \
    "\"llama_4_scaling_beta\":0.1,\"original_max_position_embeddings\":8},"
#define LATENT                                                                                                         \
    "\"kv_lora_rank\":4,\"q_lora_rank\":null,\"qk_nope_head_dim\":2,\"qk_rope_head_dim\":2,\"v_head_dim\":2,"          \
    "\"moe_intermediate_size\":4,\"routed_scaling_factor\":1.0,"
#define DEEPSEEK2                                                                                                      \
    "{\"architectures\":[\"DeepseekV2ForCausalLM\"],\"model_type\":\"deepseek_v2\"," SIZES LATENT                      \
    "\"n_routed_experts\":2,\"num_experts_per_tok\":1,\"n_shared_experts\":1,\"first_k_dense_replace\":0,"             \
    "\"topk_method\":"
#define LITE                                                                                                           \
    "{\"architectures\":[\"Glm4MoeLiteForCausalLM\"],\"model_type\":\"glm4_moe_lite\"," SIZES LATENT                   \
    "\"n_routed_experts\":2,\"num_experts_per_tok\":1,\"n_shared_experts\":1,\"mlp_layer_types\":"
/* As KimiLinearConfig of transformers 5.24 saves itself. */
#define KIMI                                                                                                           \
    "{\"architectures\":[\"KimiLinearForCausalLM\"],\"model_type\":\"kimi_linear\"," SIZES LATENT                      \
    "\"num_experts\":2,\"num_experts_per_token\":1,\"num_shared_experts\":1,\"linear_head_dim\":2,"                    \
    "\"linear_num_heads\":2,\"linear_conv_kernel_dim\":3,\"layer_types\":[\"linear_attention\"],"                      \
    "\"mlp_layer_types\":[\"dense\"]}"
#define HUNYUAN_VL                                                                                                     \
    "{\"architectures\":[\"HunYuanVLForConditionalGeneration\"],\"model_type\":\"hunyuan_vl\"," SIZES                  \
    "\"rope_scaling\":{\"type\":\"xdrope\",\"alpha\":1000.0,\"factor\":1.0,\"xdrope_section\":"
/* As Step3p7TextConfig of transformers 5.24 saves itself. */
#define STEP(share)                                                                                                    \
    "{\"architectures\":[\"Step3p7ForConditionalGeneration\"],\"model_type\":\"step3p7\",\"text_config\":{"            \
    "\"model_type\":\"step3p5\"," SIZES "\"sliding_window\":4,\"n_routed_experts\":6,\"num_experts_per_tok\":3,"       \
    "\"moe_intermediate_size\":2,\"share_expert_dim\":2,\"num_sliding_attention_heads\":2,\"layer_types\":["           \
    "\"full_attention\"],\"mlp_layer_types\":[\"dense\"],\"rope_parameters\":{\"full_attention\":{\"rope_theta\":"     \
    "1e4,\"partial_rotary_factor\":" share "}},"
#define XVERSE                                                                                                         \
    "{\"architectures\":[\"XverseForCausalLM\"],\"model_type\":\"xverse\",\"vocab_size\":8,\"hidden_size\":4,"         \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2"
#define NEMOTRON                                                                                                       \
    "{\"architectures\":[\"NemotronForCausalLM\"],\"model_type\":\"nemotron\",\"vocab_size\":8,\"hidden_size\":4,"     \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"intermediate_size\":4"
#define BITNET                                                                                                         \
    "{\"architectures\":[\"BitNetForCausalLM\"],\"model_type\":\"bitnet\",\"vocab_size\":8,\"hidden_size\":4,"         \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"hidden_act\":\"silu\",\"num_key_value_heads\":"
#define LLADA                                                                                                          \
    "{\"architectures\":[\"LLaDAModelLM\"],\"model_type\":\"llada\",\"vocab_size\":8,\"d_model\":4,\"n_heads\":2,"     \
    "\"n_layers\":1,\"mlp_hidden_size\":4"
#define JAMBA                                                                                                          \
    "{\"architectures\":[\"JambaForCausalLM\"],\"model_type\":\"jamba\"," SIZES                                        \
    "\"attn_layer_period\":1,\"attn_layer_offset\":0,\"mamba_expand\":2"
#define AFMOE                                                                                                          \
    "{\"architectures\":[\"AfmoeForCausalLM\"],\"model_type\":\"afmoe\"," SIZES "\"num_experts\":2,"                   \
    "\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,\"num_dense_layers\":1"
#define MPT                                                                                                            \
    "{\"architectures\":[\"MPTForCausalLM\"],\"model_type\":\"unheard_of\",\"d_model\":4,\"n_layers\":1,\"n_heads\":"  \
    "2,"                                                                                                               \
    "\"max_seq_len\":8,\"vocab_size\":8,\"attn_config\":{\"alibi\":false,\"clip_qkv\":null}"
#define FALCON(type)                                                                                                   \
    "{\"architectures\":[\"FalconForCausalLM\"],\"model_type\":\"" type "\",\"vocab_size\":8,\"hidden_size\":4,"       \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"layer_norm_epsilon\":1e-5,"
#define KEY_HEADS "falcon.attention.head_count_kv"
#define DOTS                                                                                                           \
    "{\"architectures\":[\"Dots1ForCausalLM\"],\"model_type\":\"dots1\"," SIZES                                        \
    "\"n_routed_experts\":2,\"n_shared_experts\":1,\"first_k_dense_replace\":0,\"routed_scaling_factor\":1.0,"         \
    "\"norm_topk_prob\":true,\"moe_intermediate_size\":4"
#define NEOX                                                                                                           \
    "{\"architectures\":[\"GPTNeoXForCausalLM\"],\"model_type\":\"gpt_neox\",\"vocab_size\":8,\"hidden_size\":16,"     \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"intermediate_size\":4,\"layer_norm_eps\":1e-5,"               \
    "\"max_position_embeddings\":8"
#define NGRAMS                                                                                                         \
    "{\"architectures\":[\"Qwen4ExpForCausalLM\"],\"model_type\":\"qwen4_exp_text\"," SIZES                            \
    "\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":2,\"linear_num_key_heads\":1,\"linear_num_value_heads\":2,"  \
    "\"linear_value_head_dim\":2,\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,"             \
    "\"shared_expert_intermediate_size\":4,\"hc_count\":2,\"hc_lowrank\":2,\"indexer_n_heads\":1,"                     \
    "\"indexer_head_dim\":2,\"indexer_budget\":8,\"indexer_compress_ratio\":4,\"layer_types\":[\"linear_attention\"]," \
    "\"split_ngram_parts\":1,\"hidden_act\":\"silu\",\"ple_layer_ids\":"
#define QWEN4 NGRAMS "[]"
#define T5                                                                                                             \
    "{\"architectures\":[\"T5ForConditionalGeneration\"],\"model_type\":\"t5\",\"vocab_size\":8,\"d_model\":4,"        \
    "\"d_ff\":4,\"num_layers\":1,\"num_heads\":2,\"d_kv\":2,\"layer_norm_epsilon\":1e-6,"                              \
    "\"relative_attention_num_buckets\":8,\"decoder_start_token_id\":0"
#define GEMMA3N                                                                                                        \
    "{\"architectures\":[\"Gemma3nForCausalLM\"],\"model_type\":\"gemma3n_text\"," SIZES                               \
    "\"sliding_window\":4,\"altup_active_idx\":0,\"altup_num_inputs\":4,\"hidden_size_per_layer_input\":2,"            \
    "\"num_kv_shared_layers\":0,\"activation_sparsity_pattern\":[0.0],\"layer_types\":[\"full_attention\"],"           \
    "\"final_logit_softcapping\":"
/* As Glm5NextTextConfig of transformers 5.24 saves itself. */
#define GLM5                                                                                                           \
    "{\"architectures\":[\"Glm5NextForConditionalGeneration\"],\"model_type\":\"glm5_next\",\"text_config\":{"         \
    "\"model_type\":\"glm5_next_text\"," SIZES "\"kv_lora_rank\":4,\"q_lora_rank\":4,\"qk_nope_head_dim\":2,"          \
    "\"qk_rope_head_dim\":0,\"v_head_dim\":2,\"moe_intermediate_size\":4,\"routed_scaling_factor\":1.0,"               \
    "\"n_routed_experts\":2,\"n_shared_experts\":1,\"num_experts_per_tok\":1,\"norm_topk_prob\":true,\"hc_mult\":2,"   \
    "\"hc_eps\":1e-6,\"hc_sinkhorn_iters\":2,\"index_n_heads\":1,\"index_head_dim\":2,\"index_topk\":4,"               \
    "\"index_kpool\":2,\"linear_head_dim\":2,\"linear_num_heads\":2,\"linear_conv_kernel_dim\":3,"                     \
    "\"linear_lower_bound\":-5.0,\"layer_types\":[\"linear_attention\"],\"mlp_layer_types\":[\"dense\"]}}"
/* A multimodal model whose text model names no class. */
#define WHOLE(class, model_type, text_type)                                                                            \
    "{\"architectures\":[\"" class "ForConditionalGeneration\"],\"model_type\":\"" model_type                          \
                                   "\",\"text_config\":{\"model_type\":\"" text_type "\"," SIZES
#define SAVED ",\"transformers_version\":\"5.24.0\""
#define SOLAR                                                                                                          \
    "{\"architectures\":[\"SolarOpenForCausalLM\"],\"model_type\":\"solar_open\"," SIZES                               \
    "\"n_routed_experts\":2,\"num_experts_per_tok\":1,\"n_shared_experts\":1,\"moe_intermediate_size\":4,"             \
    "\"routed_scaling_factor\":1.0,\"norm_topk_prob\":true,\"n_group\":1,\"topk_group\":1"
#define COHERE2                                                                                                        \
    "{\"architectures\":[\"Cohere2ForCausalLM\"],\"model_type\":\"cohere2\"," SIZES                                    \
    "\"layer_norm_eps\":1e-5,\"logit_scale\":1.0,\"sliding_window\":4"
#define NEMOTRON_H                                                                                                     \
    "{\"architectures\":[\"NemotronHForCausalLM\"],\"model_type\":\"nemotron_h\"," SIZES                               \
    "\"conv_kernel\":4,\"ssm_state_size\":2,\"n_groups\":1,\"mamba_num_heads\":2,\"mamba_head_dim\":2,"                \
    "\"layer_norm_epsilon\":1e-5,\"num_experts_per_tok\":2,\"moe_intermediate_size\":2,\"n_routed_experts\":2,"        \
    "\"moe_shared_expert_intermediate_size\":2,\"n_shared_experts\":1,\"norm_topk_prob\":true,"                        \
    "\"routed_scaling_factor\":1.0,\"n_group\":1,\"layers_block_type\":["
#define QWEN(name, type) "{\"architectures\":[\"" name "ForCausalLM\"],\"model_type\":\"" type "\"," SIZES
#define DEEPSEEK4(rate)                                                                                                \
    "{\"architectures\":[\"DeepseekV4ForCausalLM\"],\"model_type\":\"deepseek_v4\"," SIZES                             \
    "\"qk_rope_head_dim\":2,\"q_lora_rank\":4,\"o_lora_rank\":4,\"o_groups\":1,\"sliding_window\":4,"                  \
    "\"n_routed_experts\":2,\"n_shared_experts\":1,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,"             \
    "\"norm_topk_prob\":true,\"routed_scaling_factor\":1.5,\"swiglu_limit\":10.0,\"scoring_func\":\"sqrtsoftplus\","   \
    "\"index_n_heads\":1,\"index_head_dim\":2,\"index_topk\":4,\"compress_rope_theta\":160000,\"hc_mult\":2,"          \
    "\"hc_sinkhorn_iters\":20,\"hc_eps\":1e-6,\"num_nextn_predict_layers\":1,"                                         \
    "\"layer_types\":[\"compressed_sparse_attention\"],\"mlp_layer_types\":[\"hash_moe\"],"                            \
    "\"compress_rates\":{\"compressed_sparse_attention\":" rate ",\"heavily_compressed_attention\":128},"              \
    "\"rope_parameters\":{\"main\":{\"rope_theta\":1e4,\"rope_type\":\"default\"},\"compress\":{\"rope_theta\":"       \
    "160000,"                                                                                                          \
    "\"rope_type\":\"yarn\",\"factor\":16.0,\"original_max_position_embeddings\":4}}}"
#define LLAMA4(experts)                                                                                                \
    "{\"architectures\":[\"Llama4ForCausalLM\"],\"model_type\":\"llama4_text\"," SIZES                                 \
    "\"num_local_experts\":" #experts                                                                                  \
    ",\"num_experts_per_tok\":1,\"intermediate_size_mlp\":4,\"interleave_moe_layer_step\":1,"
#define MINIMAX                                                                                                        \
    "{\"architectures\":[\"MiniMaxM2ForCausalLM\"],\"model_type\":\"minimax_m2\"," SIZES                               \
    "\"num_local_experts\":2,\"num_experts_per_tok\":1,\"scoring_func\":\"sigmoid\""
#define DEEPSEEK3                                                                                                      \
    "{\"architectures\":[\"DeepseekV3ForCausalLM\"],\"model_type\":\"deepseek_v3\"," SIZES                             \
    "\"n_routed_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,\"kv_lora_rank\":4,"                 \
    "\"qk_nope_head_dim\":2,\"qk_rope_head_dim\":2,\"v_head_dim\":2,\"first_k_dense_replace\":0"
#define MIMO2                                                                                                          \
    "{\"architectures\":[\"MiMoV2FlashForCausalLM\"],\"model_type\":\"mimo_v2_flash\"," SIZES                          \
    "\"n_routed_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":4,\"v_head_dim\":2,"                   \
    "\"sliding_window\":6,\"layer_types\":[\"sliding_attention\"]" SHARE("1.0") "}"
#define MINIMAX3                                                                                                       \
    "{\"architectures\":[\"MiniMaxM3VLForCausalLM\"],\"model_type\":\"minimax_m3_vl_text\"," SIZES                     \
    "\"num_local_experts\":2,\"num_experts_per_tok\":1,\"dense_intermediate_size\":4,\"shared_intermediate_size\":4,"  \
    "\"index_n_heads\":3,\"index_head_dim\":2,\"index_topk_blocks\":4,\"index_block_size\":8,\"index_local_blocks\":"  \
    "1,"                                                                                                               \
    "\"mlp_layer_types\":[\"dense\"],\"rotary_dim\":1"
#define PHIMOE                                                                                                         \
    "{\"architectures\":[\"PhimoeForCausalLM\"],\"model_type\":\"phimoe\"," SIZES                                      \
    "\"num_local_experts\":2,\"num_experts_per_tok\":1,\"rope_parameters\":{\"rope_theta\":1e4,\"rope_type\":"         \
    "\"default\"}"
#define BIGCODE                                                                                                        \
    "{\"architectures\":[\"GPTBigCodeForCausalLM\"],\"model_type\":\"gpt_bigcode\",\"vocab_size\":8,\"n_embd\":4,"     \
    "\"n_layer\":1,\"n_head\":2,\"n_positions\":8,\"layer_norm_epsilon\":1e-5,\"multi_query\":"
#define SHARE(number) ",\"rope_parameters\":{\"partial_rotary_factor\":" number ",\"rope_theta\":1e4}"
#define GEMMA2                                                                                                         \
    "{\"architectures\":[\"Gemma2ForCausalLM\"],\"model_type\":\"gemma2\",\"vocab_size\":8,\"hidden_size\":4,"         \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":4,"             \
    "\"head_dim\":2,\"rms_norm_eps\":1e-6,\"max_position_embeddings\":8,"                                              \
    "\"attn_logit_softcapping\":5.0,\"final_logit_softcapping\":3.0,\"sliding_window\":4,"

#define PHI3(original)                                                                                                 \
    "{\"architectures\":[\"Phi3ForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES                                    \
    "\"original_max_position_embeddings\":" original ",\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[1.5]," \
    "\"short_factor\":[1.0]}}"
#define BAMBA                                                                                                          \
    "{\"architectures\":[\"BambaForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES                                   \
    "\"mamba_n_heads\":2,\"mamba_n_groups\":1,\"mamba_d_state\":2,\"mamba_d_conv\":4,\"mamba_expand\":2,"              \
    "\"attn_layer_indices\":[1],"

#define TWO_ROPES                                                                                                      \
    "\"rope_scaling\":{\"rope_type\":\"linear\",\"type\":\"yarn\",\"factor\":2.0,\"original_max_position_"             \
    "embeddings\":4}"
#define EXAONE4_LAYERS(name)                                                                                           \
    "{\"architectures\":[\"Exaone4ForCausalLM\"],\"model_type\":\"exaone4\",\"vocab_size\":8,\"hidden_size\":4,"       \
    "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":4,\"head_dim\":2,"                      \
    "\"layer_types\":[\"full_attention\"],\"" name "\":1}"
#define GEMMA1                                                                                                         \
    "{\"architectures\":[\"GemmaForCausalLM\"],\"model_type\":\"gemma\",\"vocab_size\":8,\"hidden_size\":4,"           \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":4,"             \
    "\"head_dim\":2,\"rms_norm_eps\":1e-6,\"max_position_embeddings\":8"

static const char tokenizer[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
                                "tokenizer\":{\"type\":\"ByteLevel\"}}";
static const char special_tokenizer[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
    ","
    "\"added_tokens\":[{\"id\":2,\"content\":\"<|endoftext|>\",\"special\":true},{\"id\":3,\"content\":\"<unk>\","
    "\"special\":true},{\"id\":4,\"content\":\"<|startoftext|>\",\"special\":true},{\"id\":5,\"content\":\"[gMASK]\","
    "\"special\":true},{\"id\":6,\"content\":\"<|user|>\",\"special\":true},{\"id\":7,\"content\":\"<|observation|>\","
    "\"special\":true}]}";
static const char dots3_tokenizer[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
    ",\"added_tokens\":[{\"id\":2,\"content\":\"<|endofassistant|>\",\"special\":true}]}";
static const char byte_fallback_tokenizer[] =
    "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[]},\"added_tokens\":[]}";

static const char pieces[] = "\x0a\x09\x0a\x02zz\x15\x00\x00\x80\x3f\x0a\x09\x0a\x02yy\x15\x00\x00\x80\x3f";

/* Keys of numbers, or of arrays, of which it is the number of elements. */
static const struct {
    const char *config, *key;
    int64_t value;
    const char *embedding; /* NULL: model.embed_tokens */
    const char *tokenizer; /* NULL: a byte-level one */
    bool has_pieces;       /* in tokenizer.model, and no tokenizer.json */
    const char *note;      /* part of a note; NULL: no note names the rope or MTP */
    enum gguf_type of;     /* an array's elements; 0: any */
} rows[] = {
    {GEMMA3 "\"sliding_window\":512}", "gemma3.attention.sliding_window", 512},
    {GEMMA3 "\"sliding_window\":512,\"use_bidirectional_attention\":true}", "gemma3.attention.sliding_window", 257},
    {GEMMA3 "\"sliding_window\":511,\"use_bidirectional_attention\":true}", "gemma3.attention.sliding_window", 256},
    /* which is what the class of that model type does, and no other */
    {"{\"architectures\":[\"Gemma3ForCausalLM\"],\"model_type\":\"unheard_of\"," SIZES
     "\"sliding_window\":512,\"use_bidirectional_attention\":true}",
     "gemma3.attention.sliding_window", 512},
    {JAMBA "}", "jamba.ssm.inner_size", 8, .has_pieces = true},
    {EXAONE "}", "exaone-moe.expert_shared_feed_forward_length", 4},
    {EXAONE "}", "exaone-moe.nextn_predict_layers", 0},
    /* Layers that predict are those that the checkpoint has. */
    {EXAONE ",\"num_nextn_predict_layers\":1}", "exaone-moe.nextn_predict_layers", 1, "mtp.layers.0.enorm"},
    {EXAONE ",\"num_nextn_predict_layers\":1}", "exaone-moe.block_count", 2, "mtp.fc"},
    {EXAONE ",\"num_nextn_predict_layers\":1}", "exaone-moe.nextn_predict_layers", 0,
     .note = "promises 1 layer of multi-token prediction"},
    {EXAONE ",\"num_nextn_predict_layers\":1}", "exaone-moe.block_count", 1, .note = "the checkpoint has 0"},
    {EXAONE ",\"num_nextn_predict_layers\":3}", "exaone-moe.nextn_predict_layers", 2, "model.layers.2.enorm",
     .note = "the checkpoint has 2"},
    {EXAONE ",\"num_nextn_predict_layers\":3}", "exaone-moe.block_count", 3, "model.layers.2.enorm",
     .note = "the checkpoint has 2"},
    {HY3 ",\"num_nextn_predict_layers\":1}", "hy_v3.nextn_predict_layers", ABSENT, .note = "the checkpoint has 0"},
    {HY3 ",\"num_nextn_predict_layers\":1}", "hy_v3.block_count", 1, .note = "the checkpoint has 0"},
    {EXAONE "}", "exaone-moe.expert_count", ABSENT},
    /* Without a layer of Mamba the architecture is another. */
    {GRANITE "\"layer_types\":[\"attention\"]}", "granite.block_count", 1},
    {GRANITE "\"layer_types\":[\"full_attention\"]}", "granite.block_count", 1},
    {GRANITE "\"layer_types\":[\"linear_attention\"]}", "granitehybrid.block_count", 1},
    {HY3 "}", "hy_v3.expert_shared_feed_forward_length", 4},
    {HY3 ",\"num_shared_experts\":2}", "hy_v3.expert_shared_feed_forward_length", 8},
    {HY3 ",\"expert_hidden_dim\":5}", "hy_v3.expert_feed_forward_length", 4},
    {AFMOE "}", "afmoe.expert_shared_count", ABSENT},
    {AFMOE ",\"num_shared_experts\":1}", "afmoe.expert_shared_count", 1},
    {MPT "}", "tokenizer.ggml.padding_token_id", 3, "transformer.wte", .has_pieces = true},
    {MPT ",\"eos_token_id\":2}", "tokenizer.ggml.eos_token_id", 1, "transformer.wte", .has_pieces = true},
    {MPT ",\"eos_token_id\":2}", "tokenizer.ggml.eos_token_id", 2, "transformer.wte"},
    /* Of a pattern there are the layers that do not predict. */
    {EXAONE4 "\"sliding_window\":6,\"sliding_window_pattern\":2,\"num_nextn_predict_layers\":1}",
     "exaone4.attention.sliding_window_pattern", 1, "mtp.fc"},
    {EXAONE4 "\"rope_scaling\":{\"rope_type\":\"default\",\"mrope_section\":[]}}", "exaone4.rope.dimension_sections",
     4},
    /* There may be a window and no layers that look at it. */
    {EXAONE4 "\"sliding_window\":6}", "exaone4.attention.sliding_window", 6},
    /* A list of layers has as many as are listed, whatever the number of layers. */
    {EXAONE4 "\"sliding_window\":6,\"layer_types\":[\"sliding_attention\",\"full_attention\"]}",
     "exaone4.attention.sliding_window_pattern", 2},
    {MELLUM "[\"sliding_attention\",\"full_attention\"]}", "mellum.attention.sliding_window_pattern", 2},
    {MELLUM "[]}", "mellum.attention.sliding_window_pattern", ABSENT},
    {OLMO2 "[]}", "olmo2.attention.sliding_window_pattern", ABSENT},
    {LFM2 "[\"conv\",\"full_attention\",\"conv\"]}", "lfm2.attention.head_count_kv", 3},
    {LFM2 "[]}", "lfm2.attention.head_count_kv", ABSENT},
    {PLAIN "\"intermediate_size\":[4.0]}", "llama.feed_forward_length", 1, .of = GGUF_F32},
    {PLAIN "\"intermediate_size\":[4]}", "llama.feed_forward_length", 1, .of = GGUF_I32},
    {PLAIN "\"intermediate_size\":4}", "llama.rope.dimension_count", 2}, /* head_dim, without hidden_size */
    /* Names of two classes for one number: keys have that of most classes. */
    {XVERSE ",\"n_heads\":4}", "xverse.rope.dimension_count", 2, .tokenizer = byte_fallback_tokenizer},
    {XVERSE ",\"n_heads\":null}", "xverse.rope.dimension_count", 2, .tokenizer = byte_fallback_tokenizer},
    /* true is a 1. */
    {PLAIN "\"intermediate_size\":4,\"max_position_embeddings\":true}", "llama.context_length", 1},
    {PLAIN "\"intermediate_size\":4,\"max_position_embeddings\":false}", "llama.context_length", 0},
    /* Some classes rename `type`, whatever rope_type is. */
    {QWEN("Qwen2", "qwen2") TWO_ROPES "}", "qwen2.rope.scaling.original_context_length", 4},
    {QWEN("Qwen2", "unheard_of") TWO_ROPES "}", "qwen2.rope.scaling.original_context_length", ABSENT},
    /* layer_types has more names than the class has layers by default, so the class does not count. */
    {EXAONE4_LAYERS("n_layer"), "exaone4.block_count", 1},
    {EXAONE4_LAYERS("num_hidden_layers"), "exaone4.block_count", 1},
    {GEMMA1 "}", "tokenizer.ggml.eot_token_id", 107, .has_pieces = true},
    {GEMMA1 ",\"eot_token_id\":1}", "tokenizer.ggml.eot_token_id", 1, .has_pieces = true},
    {XVERSE SHARE("0.5") "}", "xverse.rope.dimension_count", 2, .tokenizer = byte_fallback_tokenizer},
    {LLADA "}", "llada.context_length", 4096, "model.transformer.wte"},
    {LLADA ",\"n_positions\":16,\"max_sequence_length\":64}", "llada.context_length", 64, "model.transformer.wte"},
    {LLADA ",\"hidden_size\":8}", "llada.embedding_length", 4, "model.transformer.wte"},
    /* An id spelled as a float is none. */
    {PLAIN "\"pad_token_id\":2.0}", "tokenizer.ggml.padding_token_id", ABSENT},
    {PLAIN "\"pad_token_id\":2}", "tokenizer.ggml.padding_token_id", 2},
    {NEMOTRON "}", "nemotron.attention.head_count_kv", ABSENT},
    {NEMOTRON ",\"num_key_value_heads\":1}", "nemotron.attention.head_count_kv", 1},
    {BITNET "null}", "bitnet.attention.head_count_kv", 2, .has_pieces = true},
    {GRANITE "\"layer_types\":[\"mamba\"],\"state_dim\":3}", "granitehybrid.ssm.state_size", 3},
    {JAMBA "}", "jamba.ssm.time_step_rank", 1, .tokenizer = byte_fallback_tokenizer},
    {JAMBA ",\"mamba_dt_rank\":\"auto\"}", "jamba.ssm.time_step_rank", 1, .tokenizer = byte_fallback_tokenizer},
    {JAMBA ",\"mamba_dt_rank\":3}", "jamba.ssm.time_step_rank", 3, .tokenizer = byte_fallback_tokenizer},
    /* All queries share one: the class fills in as many as there are queries, on which the converter fails. */
    {FALCON("falcon") "\"multi_query\":true}", KEY_HEADS, 1, "transformer.word_embeddings"},
    {FALCON("falcon") "\"multi_query\":true,\"num_kv_heads\":2}", KEY_HEADS, 1, "transformer.word_embeddings"},
    {FALCON("falcon") "\"multi_query\":true,\"num_kv_heads\":1}", KEY_HEADS, 1, "transformer.word_embeddings"},
    {FALCON("falcon") "\"multi_query\":true,\"new_decoder_architecture\":true,\"num_kv_heads\":2}", KEY_HEADS, 2,
     "transformer.word_embeddings"},
    {FALCON("falcon") "\"multi_query\":false}", KEY_HEADS, 2, "transformer.word_embeddings"},
    {FALCON("unheard_of") "\"multi_query\":true}", KEY_HEADS, 1, "transformer.word_embeddings"},
    {FALCON("unheard_of") "\"multi_query\":false}", KEY_HEADS, 2, "transformer.word_embeddings"},
    {MINIMAX ",\"rotary_dim\":1}", "minimax-m2.rope.dimension_count", 1},
    {MINIMAX ",\"rotary_dim\":1" SHARE("0.5") "}", "minimax-m2.rope.dimension_count", 1},
    {MINIMAX SHARE("0.5") "}", "minimax-m2.rope.dimension_count", 1,
     .note = "instead of rotary_dim; the converter refuses it, wfs writes rope.dimension_count 1"},
    {MINIMAX ",\"rotary_dim\":1" SHARE("1.0") "}", "minimax-m2.rope.dimension_count", 1,
     .note = "-o override-kv=minimax-m2.rope.dimension_count=int:2"},
    /* The class in transformers has a sigmoid without saying so. */
    {DEEPSEEK3 "}", "deepseek2.expert_gating_func", ABSENT,
     .note = "-o override-kv=deepseek2.expert_gating_func=int:2"},
    {DEEPSEEK3 ",\"scoring_func\":\"sigmoid\"}", "deepseek2.expert_gating_func", 2},
    /* What transformers 5 does not save: without it llama.cpp refuses the file, or weighs experts otherwise. */
    {DEEPSEEK3 SAVED "}", "deepseek2.expert_gating_func", 2, .note = "reads it with {'scoring_func': 'sigmoid'}"},
    {DEEPSEEK3 SAVED ",\"scoring_func\":\"softmax\"}", "deepseek2.expert_gating_func", 1},
    {DOTS SAVED "}", "dots1.expert_gating_func", 2, .note = "of transformers 5 lacks"},
    {EXAONE SAVED "}", "exaone-moe.expert_gating_func", 2, .note = "of transformers 5 lacks"},
    {AFMOE "}", "afmoe.block_count", 1},
    {AFMOE SAVED "}", "afmoe.block_count", 1, .note = "wfs reads it with {'route_norm': true}"},
    {SOLAR SAVED "}", "glm4moe.rope.dimension_count", 2, .tokenizer = special_tokenizer,
     .note = "wfs reads it with {'partial_rotary_factor': 1.0}"},
    {SOLAR SAVED SHARE("0.5") "}", "glm4moe.rope.dimension_count", 1, .tokenizer = special_tokenizer},
    {COHERE2 SAVED "}", "cohere2.rope.dimension_count", 2, .note = "of transformers 5 lacks"},
    /* It saves numbers of experts for a Nemotron-H without experts, too. */
    {NEMOTRON_H "\"mlp\"]}", "nemotron_h.feed_forward_length", 1},
    {NEMOTRON_H "\"mlp\"]}", "nemotron_h.expert_count", ABSENT},
    {NEMOTRON_H "\"moe\"]}", "nemotron_h_moe.expert_count", 2},
    {NEOX "}", "gptneox.rope.dimension_count", 2, "gpt_neox.embed_in"},
    {NEOX ",\"rotary_pct\":1.0}", "gptneox.rope.dimension_count", 8, "gpt_neox.embed_in"},
    /* As transformers 5 saves the share: transformers computes by it, the converter does not see it. */
    {NEOX ",\"rope_parameters\":{\"partial_rotary_factor\":0.5,\"rope_theta\":1e4,\"rope_type\":\"default\"}}",
     "gptneox.rope.dimension_count", 4, "gpt_neox.embed_in", .note = "writes rope.dimension_count 2, wfs writes 4"},
    {NEOX ",\"rope_parameters\":{\"partial_rotary_factor\":0.25,\"rope_type\":\"default\"}}",
     "gptneox.rope.dimension_count", 2, "gpt_neox.embed_in"},
    /* llama.cpp chooses factors by the size of the context, transformers by the number of tokens. */
    {PHI3("4"), "phi3.rope.scaling.original_context_length", 4, .note = "for short prompts use -c 4"},
    {PHI3("8"), "phi3.rope.scaling.original_context_length", 8},
    {BAMBA "\"attn_rotary_emb\":1}", "granitehybrid.rope.dimension_count", 1,
     .note = "Bamba's rope turns the first half"},
    /* Bases and scalings that the converter loses. */
    {NEOX ",\"rotary_emb_base\":50000}", "gptneox.rope.freq_base", ABSENT, "gpt_neox.embed_in",
     .note = "rope_theta 50000"},
    {NEOX ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", "gptneox.rope.freq_base", ABSENT,
     "gpt_neox.embed_in", .note = "scales the rope (linear)"},
    /* What transformers 5 names otherwise, and the converter does not know. */
    {MIMO2, "mimo2.attention.sliding_window", 6, .note = "3 layers of multi-token prediction"},
    {MINIMAX3 "}", "minimax-m3.attention.indexer.head_count", 3},
    {MINIMAX3 "}", "minimax-m3.leading_dense_block_count", 1},
    {MINIMAX3 "}", "minimax-m3.expert_gating_func", 2},
    {MINIMAX3 "}", "minimax-m3.rope.dimension_count", 2},
    {MINIMAX3 SHARE("0.5") "}", "minimax-m3.rope.dimension_count", 1},
    {MINIMAX3 ",\"moe_layer_freq\":[0]}", "minimax-m3.leading_dense_block_count", 1},
    {MINIMAX3 "}", "minimax-m3.expert_shared_count", 1},
    {MINIMAX3 "}", "minimax-m3.attention.indexer.block_size", 8,
     .note = "4 blocks of 8, only with flash attention, and with -np 1 or --no-kv-unified"},
    {MINIMAX3 "}", "minimax-m3.block_count", 1, "model.layers.0.self_attn.indexer.q_proj",
     .note = "1 of 1 layers have sparse attention, and llama.cpp expects it in the 0 with experts"},
    {PHIMOE "}", "phimoe.rope.scaling.original_context_length", 8, .note = "layer norms and masks experts"},
    {PHIMOE ",\"original_max_position_embeddings\":4}", "phimoe.rope.scaling.original_context_length", 4},
    /* What llama.cpp refuses. */
    {DEEPSEEK3 ",\"q_lora_rank\":null}", "deepseek2.attention.q_lora_rank", ABSENT,
     .note = "q_lora_rank is missing, which"},
    {MELLUM "[\"full_attention\"]}", "mellum.attention.sliding_window", 6, .note = "no layer has a sliding window"},
    {BIGCODE "false}", "starcoder.attention.head_count_kv", 1, "transformer.wte",
     .note = "one head of keys and values"},
    {FALCON("falcon") "\"rope_theta\":5e5}", "falcon.rope.freq_base", ABSENT, "transformer.word_embeddings",
     .note = "falcon.rope.freq_base=float:500000"},
    {GEMMA2 "\"rope_theta\":1e6}", "gemma2.rope.freq_base", ABSENT, .has_pieces = true, .note = "rope_theta 1e+06"},
    {GEMMA2 "\"rope_theta\":1e4}", "gemma2.rope.freq_base", ABSENT, .has_pieces = true},
    /* Numbers that Python takes for none, or none for numbers, and the first of several names. */
    {"{\"architectures\":[\"Mamba2ForCausalLM\"],\"model_type\":\"mamba2\",\"vocab_size\":8,\"hidden_size\":4,"
     "\"num_hidden_layers\":1,\"state_size\":2,\"expand\":0,\"head_dim\":2,\"n_groups\":1}",
     "mamba2.ssm.inner_size", 8, "backbone.embeddings"},
    {QWEN("Qwen2", "qwen2") "\"local_rope_theta\":true}", "qwen2.block_count", 1},
    {"{\"architectures\":[\"GraniteMoeHybridForCausalLM\"],\"model_type\":\"granitemoehybrid\"," SIZES
     "\"num_local_experts\":2,\"num_experts_per_tok\":[1],\"layer_types\":[\"attention\"],"
     "\"mamba_n_heads\":2,\"mamba_n_groups\":1,\"mamba_d_state\":2,\"mamba_d_conv\":4,\"mamba_expand\":2}",
     "granitemoe.expert_used_count", 1, .of = GGUF_I32},
    {JAMBA ",\"num_experts\":16,\"num_local_experts\":2}", "jamba.expert_count", 2, .has_pieces = true},
    /* Whole numbers as floats. */
    {"{\"architectures\":[\"PhiForCausalLM\"],\"model_type\":\"phi\",\"vocab_size\":8.0,\"hidden_size\":4.0,"
     "\"num_hidden_layers\":1.0,\"num_attention_heads\":2.0,\"intermediate_size\":4.0,"
     "\"max_position_embeddings\":2048.0}",
     "phi2.context_length", 2048, .note = "the converter refuses a float there, wfs reads 2048"},
    /* A value head of TRL. */
    {GEMMA2 "\"rope_theta\":1e4}", "gemma2.block_count", 1, "v_head.summary", .has_pieces = true,
     .note = "1 tensor of TRL's value head"},
    /* What no key says: llama.cpp computes otherwise than transformers. */
    {AFMOE ",\"mup_enabled\":false}", "afmoe.block_count", 1, .note = "llama.cpp scales the embedding"},
    {QWEN("Qwen3Moe", "qwen3_moe") "\"norm_topk_prob\":false}", "qwen3moe.block_count", 1,
     .note = "llama.cpp normalizes the weights"},
    {QWEN("Qwen2", "qwen2") "\"use_sliding_window\":true,\"sliding_window\":4}", "qwen2.block_count", 1,
     .note = "attends to all tokens of a text of more than 4"},
    {QWEN("Phi3", "phi3") "\"original_max_position_embeddings\":8,\"sliding_window\":4}", "phi3.block_count", 1,
     .note = "attends to all tokens of a text of more than 4"},
    {MELLUM "[\"sliding_attention\"],\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5e5},"
            "\"sliding_attention\":{\"rope_theta\":1e4}}}",
     "mellum.block_count", 1, .note = "turns layers with windows by the base"},
    {QWEN("Qwen2", "qwen2") "\"hidden_act\":\"gelu\"}", "qwen2.block_count", 1, .note = "llama.cpp computes a SiLU"},
    {QWEN("Qwen2", "qwen2") "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.0}}", "qwen2.block_count", 1,
     .note = "scales the rope (dynamic)"},
    {GEMMA3 "\"query_pre_attn_scalar\":3}", "gemma3.block_count", 1, .has_pieces = true,
     .note = "divides scores by the root"},
    {GEMMA3 "\"query_pre_attn_scalar\":2,\"layer_types\":[\"full_attention\"]}", "gemma3.block_count", 1,
     .has_pieces = true, .note = "full attention in every layer of 6"},
    {GRANITE "\"layer_types\":[\"mamba\"],\"position_embedding_type\":\"rope\"}", "granitehybrid.block_count", 1,
     .note = "does not turn queries"},
    {EXAONE4 "\"sliding_window\":4,\"layer_types\":[\"sliding_attention\"]}", "exaone4.block_count", 1,
     .note = "only in models of 64 layers"},
    {GEMMA3 "\"hidden_activation\":\"silu\"}", "gemma3.block_count", 1, .has_pieces = true,
     .note = "llama.cpp computes a GELU"},
    {GEMMA4 "null}", "gemma4.final_logit_softcapping", ABSENT, .tokenizer = byte_fallback_tokenizer,
     .note = "override-kv=gemma4.final_logit_softcapping=float:0"},
    {DBRX "5e5}}", "dbrx.block_count", 1, "transformer.wte"},
    {DBRX "1e4}}", "dbrx.block_count", 1, "transformer.wte", .note = "override-kv=dbrx.rope.freq_base=float:10000"},
    {COHERE2 ",\"rotary_pct\":1.0,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.0}}", "cohere2.block_count",
     1, .note = "scales the rope (linear)"},
    {COHERE2 ",\"rotary_pct\":1.0,\"tie_word_embeddings\":false}", "cohere2.block_count", 1,
     .note = "no output but the embedding"},
    /* The class of a text model that names none follows from its type, unless the whole model has a class. */
    {WHOLE("Idefics3", "idefics3", "llama") "\"a\":1}}", "llama.block_count", 1, .note = "the text model as Llama"},
    {WHOLE("Idefics3", "idefics3", "llama") "\"architectures\":null}}", "llama.block_count", 1,
     .note = "the converter fails for Idefics3ForConditionalGeneration"},
    {WHOLE("Idefics3", "idefics3", "llama") "\"architectures\":[\"UnheardOf\"]}}", "llama.block_count", ABSENT,
     .note = "the architecture UnheardOf is unknown"},
    {WHOLE("Idefics3", "idefics3", "unheard_of") "\"a\":1}}", "llama.block_count", ABSENT, .note = "plain container"},
    {WHOLE("PaliGemma", "paligemma", "gemma") "\"a\":1}}", "gemma.block_count", ABSENT, .note = "plain container"},
    {WHOLE("Llava", "llava", "qwen2") "\"a\":1}}", "llama.block_count", 1},
    {WHOLE("AyaVision", "aya_vision", "cohere2") "\"sliding_window\":4,\"rotary_pct\":1.0,\"logit_scale\":1.0}}",
     "cohere2.block_count", 1, .note = "that of the whole model does not"},
    {QWEN4 "}", "qwen4exp.block_count", 1, .note = "has a sigmoid in the gates of linear attention"},
    {QWEN4 "}", "qwen4exp.attention.indexer.top_k", 8,
     .note = "of more than 8 tokens llama.cpp attends to up to 3 tokens of one block more than transformers"},
    /* with the table of n-grams where transformers 5 has it, and where the released model has it */
    {QWEN4 ",\"output_gate_type\":\"sigmoid\"}", "qwen4exp.block_count", 1,
     "model.layers.0.ple.ple_embedding.ngram_embedding.shard_0", .note = "without the tensors of multi-token"},
    {QWEN4 ",\"output_gate_type\":\"sigmoid\"}", "qwen4exp.block_count", 1,
     "model.ple_embedding.ngram_embedding.shard_0", .note = "without the tensors of multi-token"},
    {LAGUNA "[\"full_attention\"]}", "laguna.block_count", 1},
    {LAGUNA "[\"sliding_attention\"]}", "laguna.block_count", 1,
     .note = "full attention in every layer of 4, from the first on"},
    {MINISTRAL "\"sliding_window\":4}", "mistral3.block_count", 1, .note = "attends to all tokens of a text of more"},
    {DEEPSEEK2 "\"group_limited_greedy\"}", "deepseek2.block_count", 1, .note = "sum of their two best experts"},
    /* The types of layers instead of the number of dense ones; and linear attention with keys of its own. */
    {LITE "[\"dense\"]}", "deepseek2.leading_dense_block_count", 1, .tokenizer = special_tokenizer,
     .note = "override-kv=deepseek2.expert_gating_func=int:2"},
    {LITE "[\"sparse\"],\"first_k_dense_replace\":1}", "deepseek2.leading_dense_block_count", 1,
     .tokenizer = special_tokenizer, .note = "override-kv=deepseek2.expert_gating_func=int:2"},
    {KIMI, "kimi-linear.kda.head_dim", 2, .note = "instead of linear_attn_config"},
    {KIMI, "kimi-linear.ssm.conv_kernel", 3, .note = "instead of linear_attn_config"},
    {KIMI, "kimi-linear.expert_gating_func", 2, .note = "instead of linear_attn_config"},
    {KIMI, "kimi-linear.leading_dense_block_count", 1, .note = "instead of linear_attn_config"},
    {KIMI, "kimi-linear.attention.head_count_kv", 1, .of = GGUF_I32, .note = "instead of linear_attn_config"},
    {GLM5, "glm5-next.kda.head_dim", 2, .tokenizer = special_tokenizer, .note = "instead of linear_attn_config"},
    {GLM5, "glm5-next.ssm.conv_kernel", 3, .tokenizer = special_tokenizer, .note = "instead of linear_attn_config"},
    {GLM5, "glm5-next.expert_gating_func", 2, .tokenizer = special_tokenizer, .note = "instead of linear_attn_config"},
    {GLM5, "glm5-next.leading_dense_block_count", 1, .tokenizer = special_tokenizer,
     .note = "instead of linear_attn_config"},
    {T5 ",\"feed_forward_proj\":\"gated-silu\"}", "t5.block_count", 1, "shared", .has_pieces = true,
     .note = "computes a gated GELU, or a ReLU"},
    {T5 ",\"relative_attention_max_distance\":16}", "t5.block_count", 1, "shared", .has_pieces = true,
     .note = "has distances up to 128"},
    {STEP("0.5") "\"a\":1}}", "step35.expert_count", 6, .note = "instead of num_attention_groups"},
    {STEP("0.5") "\"a\":1}}", "step35.expert_used_count", 3, .note = "instead of num_attention_groups"},
    {STEP("0.5") "\"a\":1}}", "step35.leading_dense_block_count", 1, .note = "instead of num_attention_groups"},
    {STEP("0.5") "\"query_pre_attn_scalar\":3}}", "step35.block_count", 1, .note = "divides scores by the root"},
    {STEP("0.5") "\"query_pre_attn_scalar\":2}}", "step35.attention.head_count", 1, .of = GGUF_I32},
    {T5 "}", "t5.block_count", 1, "shared", .has_pieces = true, .note = "what the output of T5 reads"},
    {"{\"architectures\":[\"CamembertModel\"],\"model_type\":\"camembert\"," SIZES "\"layer_norm_eps\":1e-6}",
     "bert.block_count", 1, "embeddings.word_embeddings", .note = "numbers CamemBERT's positions from 0"},
    /* A class of transformers, where Mistral's own params.json names none. */
    {"{\"architectures\":[\"MistralModel\"],\"model_type\":\"mistral\"," SIZES "\"sliding_window\":null}",
     "llama.vocab_size", 8, "embed_tokens"},
    /* As NomicBertConfig of transformers 5.24 saves itself. */
    {ENCODER("NomicBert", "Model") "\"hidden_act\":\"silu\"}", "nomic-bert.context_length", 8, WORDS,
     .note = "instead of n_positions"},
    {ENCODER("NomicBert", "Model") "\"hidden_act\":\"silu\"}", "nomic-bert.feed_forward_length", 4, WORDS,
     .note = "instead of n_positions"},
    /* Encoders: what llama.cpp was found to compute otherwise than transformers 5.24 */
    {ENCODER("Bert", "Model") "\"hidden_act\":\"relu\"}", "bert.block_count", 1, WORDS,
     .note = "hidden_act in config.json does here: llama.cpp computes a GELU"},
    {ENCODER("Bert", "Model") "\"is_decoder\":true}", "bert.block_count", 1, WORDS, .note = "attends to later tokens"},
    {ENCODER("DistilBert", "Model") "\"activation\":\"relu\"}", "bert.block_count", 1, WORDS,
     .note = "activation in config.json does here: llama.cpp computes a GELU"},
    {ENCODER("Bert", "ForSequenceClassification") "\"a\":1}", "bert.block_count", 1, WORDS,
     .note = "leaves out the pooler"},
    {ENCODER("DistilBert", "ForSequenceClassification") "\"a\":1}", "bert.block_count", 1, WORDS,
     .note = "transformers a ReLU"},
    {ENCODER("Roberta", "ForSequenceClassification") "\"a\":1}", "bert.block_count", 1, "classifier.out_proj",
     .note = "the classifier has 8 classes, llama.cpp expects 1: llama.cpp refuses"},
    {MODERN_BERT "\"hidden_activation\":\"relu\"}", "modern-bert.block_count", 1, "embeddings.tok_embeddings",
     .note = "computes a GELU, or stops"},
    {MODERN_BERT "\"layer_types\":[\"sliding_attention\"]}", "modern-bert.block_count", 1, "embeddings.tok_embeddings",
     .note = "in every layer of 3, from the first on"},
    {MODERN_BERT "\"layer_types\":[\"full_attention\",\"sliding_attention\"],\"global_attn_every_n_layers\":2}",
     "modern-bert.attention.sliding_window_pattern", 2, "embeddings.tok_embeddings"},
    {MODERN_BERT "\"layer_types\":[\"full_attention\",\"full_attention\"],\"global_attn_every_n_layers\":2}",
     "modern-bert.attention.sliding_window_pattern", 2, "embeddings.tok_embeddings",
     .note = "in every layer of 2, from the first on"},
    {MODERN_BERT "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e4,\"rope_type\":\"linear\",\"factor\":2.0},"
                 "\"sliding_attention\":{\"rope_theta\":1e4,\"rope_type\":\"default\"}}}",
     "modern-bert.block_count", 1, "embeddings.tok_embeddings", .note = "scales the rope (linear)"},
    {ENCODER("EuroBert", "Model") "\"hidden_act\":\"relu\"}", "eurobert.block_count", 1, "embed_tokens",
     .note = "llama.cpp computes a SiLU"},
    {EMBEDDING3 "\"use_bidirectional_attention\":null}", "gemma-embedding.block_count", 1, "embed_tokens",
     .has_pieces = true, .note = "attends to later tokens"},
    {EMBEDDING3 "\"use_bidirectional_attention\":true}", "gemma-embedding.block_count", 1, "embed_tokens",
     .has_pieces = true},
    {"{\"architectures\":[\"Qwen2VLForConditionalGeneration\"],\"model_type\":\"qwen2_vl\"," SIZES
     "\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[1,0,0]}}",
     "qwen2vl.block_count", 1, .note = "does not read the epsilon of Qwen2-VL's norms"},
    {"{\"architectures\":[\"Qwen2_5OmniForConditionalGeneration\"],\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{"
     "\"text_config\":{\"model_type\":\"qwen2_5_omni_text\"," SIZES
     "\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[1,0,0]}}}}",
     "qwen2vl.block_count", 1, "thinker.model.embed_tokens", .note = "does not read the epsilon of Qwen2-VL's norms"},
    {HUNYUAN_VL "[1,1,1,1]}}", "hunyuan_vl.block_count", 1, .note = "the last of the four shares of heads"},
    {GEMMA3N "20.0}", "gemma3n.block_count", 1, .has_pieces = true, .note = "caps logits at 30"},
    {GEMMA3N "30.0}", "gemma3n.block_count", 1, .has_pieces = true,
     .note = "a sparsity of 0.95 in the first 10 layers"},
    /* DeepSeek V4 under the names that transformers 5 gives tensors, layers and ropes. */
    {DEEPSEEK4("4"), "deepseek4.attention.compress_ratios", 1, .of = GGUF_I32},
    {DEEPSEEK4("2"), "deepseek4.attention.compress_ratios", 1, .of = GGUF_I32,
     .note = "layer 0 compresses by 2, and llama.cpp knows 4 and 128: llama.cpp refuses"},
    {DEEPSEEK4("4"), "deepseek4.hash_layer_count", 1},
    {DEEPSEEK4("4"), "deepseek4.rope.scaling.original_context_length", 4},
    {DEEPSEEK4("4"), "deepseek4.block_count", 1, "model.layers.0.attn.norm"},
    {LLAMA4(2) "\"use_qk_norm\":false}", "llama4.block_count", 1, .note = "normalizes queries and keys, but"},
    {LLAMA4(128) "\"use_qk_norm\":true}", "llama4.block_count", 1, .note = "normalizes queries and keys, but"},
    {"{\"architectures\":[\"HYV4ForCausalLM\"],\"model_type\":\"hy_v4\"," SIZES "\"q_lora_rank\":2,\"kv_lora_rank\":2,"
     "\"qk_nope_head_dim\":2,\"qk_rope_head_dim\":2,\"v_head_dim\":2,\"n_routed_experts\":2,\"n_shared_experts\":1,"
     "\"num_experts_per_tok\":1,\"moe_intermediate_size\":2,\"first_k_dense_replace\":1,\"hc_mult\":2,\"hc_eps\":1e-6,"
     "\"hc_magnitude\":1.5,\"indexer_types\":[\"full\"],\"index_n_heads\":1,\"index_head_dim\":2,\"index_topk\":2,"
     "\"routed_scaling_factor\":1.0,\"norm_topk_prob\":true}",
     "hy_v4.block_count", 1, .note = "turns neighbouring elements of Hunyuan 4"},
    {"{\"architectures\":[\"Dots3NoteForCausalLM\"],\"model_type\":\"dots3_note\"," SIZES
     "\"q_lora_rank\":2,\"kv_lora_rank\":2,\"qk_nope_head_dim\":2,\"qk_rope_head_dim\":2,\"v_head_dim\":2,"
     "\"n_routed_experts\":2,\"n_shared_experts\":1,\"num_experts_per_tok\":1,\"moe_intermediate_size\":2,"
     "\"first_k_dense_replace\":1,\"n_group\":1,\"topk_group\":1,\"norm_topk_prob\":true,\"scoring_func\":\"sigmoid\","
     "\"routed_scaling_factor\":1.0,\"layer_types\":[\"full_attention\"],\"sliding_window_size\":4,"
     "\"swa_num_attention_heads\":2,\"swa_q_lora_rank\":2,\"swa_kv_lora_rank\":2,\"swa_qk_nope_head_dim\":2,"
     "\"swa_qk_rope_head_dim\":2,\"swa_v_head_dim\":2,\"swa_head_dim\":4,\"swa_rope_theta\":1e4,\"index_n_heads\":1,"
     "\"index_head_dim\":2,\"index_topk\":3}",
     "dots3note.attention.indexer.top_k", 3, .tokenizer = dots3_tokenizer,
     .note = "of a text of more than 3 tokens they choose others"},
    /* What llama.cpp refuses. */
    {QWEN("SmolLM3", "smollm3") "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
                                "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8}}",
     "smollm3.block_count", 1, .note = "does not know the tensor rope_freqs.weight"},
    {NEOX "}", "gptneox.block_count", 1, "gpt_neox.embed_in", .note = "no tensor output.weight, which llama.cpp needs"},
    {"{\"architectures\":[\"Ernie4_5_MoeForCausalLM\"],\"model_type\":\"ernie4_5_moe\"," SIZES
     "\"moe_num_experts\":2,\"moe_k\":1,\"moe_layer_interval\":1,\"moe_layer_start_index\":0}",
     "ernie4_5-moe.block_count", 1, .has_pieces = true, .note = "0 of the layers from 0 to 0 have experts"},
    {KIMI, "kimi-linear.block_count", 1, .note = "no tensor output.weight, which llama.cpp needs"},
    /* a part of Ovis 2 that is not the text model's */
    {QWEN("Qwen2", "qwen2") "\"a\":1}", "qwen2.block_count", 1, "model.visual_embeddings_table"},
    {FALCON("falcon") "\"multi_query\":true}", "falcon.block_count", 1, "transformer.word_embeddings",
     .note = "has no merges"},
    {"{\"architectures\":[\"PhiForCausalLM\"],\"model_type\":\"phi\",\"vocab_size\":6,\"hidden_size\":4,"
     "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"intermediate_size\":4}",
     "phi2.block_count", 1, .note = "has 8 rows, the tokenizer 6 tokens: llama.cpp refuses"},
    {"{\"architectures\":[\"PhiForCausalLM\"],\"model_type\":\"phi\",\"vocab_size\":8,\"hidden_size\":4,"
     "\"num_hidden_layers\":3,\"num_attention_heads\":2,\"intermediate_size\":4}",
     "phi2.block_count", 3, "model.layers.1.input_layernorm", .note = "1 of 3 layers have tensors, layer 0 has none"},
    {DOTS "}", "dots1.expert_gating_func", ABSENT},
    {DOTS ",\"scoring_func\":\"noaux_tc\"}", "dots1.expert_gating_func", 2}, /* which the converter refuses */
};

static bool find_value(const struct gguf_kvs *kvs, const char *key, enum gguf_type of, uint64_t *ret_value)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, key);
    if (kv == NULL || kv->type != GGUF_ARRAY)
        return gguf_get_u64(kvs, key, ret_value);
    *ret_value = read_le(kv->value.bytes + 4, sizeof *ret_value);
    return of == 0 || read_le(kv->value.bytes, 4) == of;
}

/* One tensor, of zeros. */
static void write_model(const char *embedding)
{
    char name[64];
    snprintf(name, sizeof name, "%s.weight", embedding);
    safetensors_write_one("model.safetensors", name, "BF16", "8,4", NULL, 64);
}

static void check(size_t i)
{
    const struct open_options options = {0};
    struct error error = {""};
    uint64_t value = 0;
    write_model(rows[i].embedding != NULL ? rows[i].embedding : "model.embed_tokens");
    files_write_text("config.json", rows[i].config);
    if (rows[i].has_pieces) {
        files_write("tokenizer.model", pieces, sizeof pieces - 1);
        unlink("tokenizer.json");
    } else {
        files_write_text("tokenizer.json", rows[i].tokenizer != NULL ? rows[i].tokenizer : tokenizer);
    }
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (!CHECK_NAMED(model != NULL, rows[i].key))
        fprintf(stderr, "  %s\n", error.message);
    if (model != NULL) {
        bool found = find_value(&model->kvs, rows[i].key, rows[i].of, &value);
        CHECK_NAMED(rows[i].note != NULL ? has_note(checkpoint, rows[i].note)
                                         : !has_note(checkpoint, " rope") && !has_note(checkpoint, "rope_theta") &&
                                               !has_note(checkpoint, "multi-token"),
                    rows[i].config);
        CHECK_NAMED(rows[i].value == ABSENT ? !found : found && value == (uint64_t)rows[i].value, rows[i].key);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

/* A download of the files at the top alone lacks the folder that modules.json names. */
static void check_pooling(void)
{
    const struct open_options options = {0};
    struct error error = {""};
    write_model("embed_tokens");
    files_write_text("config.json", "{\"architectures\":[\"Qwen3Model\"],\"model_type\":\"qwen3\"," SIZES "\"a\":1}");
    files_write_text("tokenizer.json", tokenizer);
    files_write_text("modules.json",
                     "[{\"idx\":1,\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"}]");
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    CHECK_NAMED(checkpoint != NULL && gguf_model_new(checkpoint, NULL, &error) == NULL, error.message);
    CHECK_NAMED(strstr(error.message, "modules.json names 1_Pooling/config.json, which is missing") != NULL,
                error.message);
    checkpoint_close(checkpoint);
    unlink("modules.json");
}

/* N-grams begin anew after the last of several end tokens in the converter's key, after the first in transformers. */
static void check_ends(const char *ends, bool is_noted)
{
    static const char *const constants[] = {"layer_multipliers", "ngram_heads_offsets", "ngram_heads_vocab_sizes"};
    const struct open_options options = {0};
    struct safetensors file = {0};
    struct error error = {""};
    char config[2048], name[96];
    uint64_t written = 0;
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "model.layers.0.ple.ple_embedding.%s", constants[i]);
        safetensors_add(&file, name, "I64", "2", NULL, 16);
    }
    safetensors_write(&file, "model.safetensors");
    snprintf(config, sizeof config,
             NGRAMS "[1],\"ngram_size\":2,\"heads_per_ngram\":2,\"ple_conv_kernel_size\":2,\"eos_token_id\":%s}", ends);
    files_write_text("config.json", config);
    files_write_text("tokenizer.json", tokenizer);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (CHECK_NAMED(model != NULL, error.message)) {
        gguf_get_u64(&model->kvs, "qwen4exp.ple.eos_token_id", &written);
        CHECK_NAMED(written == 6, ends);
        CHECK_NAMED(has_note(checkpoint, "-o override-kv=qwen4exp.ple.eos_token_id=int:5") == is_noted, ends);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

/* The converter fails on the shape of biases of LFM 2's convolutions, and llama.cpp has none. */
static void check_conv_bias(void)
{
    const struct open_options options = {0};
    struct error error = {""};
    safetensors_write_one("model.safetensors", "model.layers.0.conv.conv.bias", "BF16", "8", NULL, 16);
    files_write_text("config.json", LFM2 "[\"conv\"],\"conv_bias\":true}");
    files_write_text("tokenizer.json", tokenizer);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    CHECK_NAMED(checkpoint != NULL && gguf_model_new(checkpoint, NULL, &error) == NULL, error.message);
    CHECK_NAMED(strstr(error.message, "llama.cpp has no biases of LFM 2's convolutions") != NULL, error.message);
    checkpoint_close(checkpoint);
}

/* llama.cpp has no biases of encoders that config.json may ask for. */
static void check_biases(const char *config, const char *tensor, const char *note)
{
    const struct open_options options = {0};
    struct error error = {""};
    safetensors_write_one("model.safetensors", tensor, "BF16", "8", NULL, 16);
    files_write_text("config.json", config);
    files_write_text("tokenizer.json", tokenizer);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    CHECK_NAMED(model != NULL && has_note(checkpoint, note), note);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

/* DeepSeek's experts are n_routed_experts, whatever another key has that other families read. */
static void check_experts(void)
{
    static const char *const matrices[] = {"gate", "up", "down"};
    const struct open_options options = {0};
    struct safetensors file = {0};
    struct error error = {""};
    char name[64];
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.0.%s_proj.weight", matrices[i]);
        safetensors_add(&file, name, "BF16", "4,4", NULL, 32);
    }
    safetensors_write(&file, "model.safetensors");
    files_write_text("config.json",
                     "{\"architectures\":[\"DeepseekV2ForCausalLM\"],\"model_type\":\"deepseek_v2\"," SIZES LATENT
                     "\"n_routed_experts\":1,\"num_experts\":null,\"num_experts_per_tok\":1,"
                     "\"n_shared_experts\":1,\"first_k_dense_replace\":0}");
    files_write_text("tokenizer.json", tokenizer);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (CHECK_NAMED(model != NULL, error.message))
        CHECK(tensor_set_find_text(model->tensors, "blk.0.ffn_down_exps.weight") != NULL);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

static void check_refused(const char *embedding, const char *config, const char *wanted)
{
    const struct open_options options = {0};
    struct error error = {""};
    write_model(embedding);
    files_write_text("config.json", config);
    files_write_text("tokenizer.json", tokenizer);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    CHECK_NAMED(checkpoint != NULL && gguf_model_new(checkpoint, NULL, &error) == NULL, error.message);
    CHECK_NAMED(strstr(error.message, wanted) != NULL, error.message);
    checkpoint_close(checkpoint);
}

/* The converter denies Jamba the space before a text. A tokenizer that the converter cannot load keeps its own rule,
 * as transformers and the tokenizer.model that it was made from have it. */
static void check_space(const char *class_text, bool is_denied)
{
    static const char with_space[] = "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{%s\"a\":256},"
                                     "\"merges\":[]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[]},"
                                     "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
                                     "\"prepend_scheme\":\"always\",\"split\":false},\"added_tokens\":[]}";
    const struct open_options options = {0};
    struct error error = {""};
    bool adds_space = true;
    char bytes[256 * 16] = "", text[sizeof bytes + sizeof with_space];
    for (unsigned byte = 0; byte < 256; byte++)
        sprintf(bytes + strlen(bytes), "\"<0x%02X>\":%u,", byte, byte);
    snprintf(text, sizeof text, with_space, bytes);
    write_model("model.embed_tokens");
    files_write_text("config.json", JAMBA "}");
    unlink("tokenizer.model");
    files_write_text("tokenizer.json", text);
    files_write_text("tokenizer_config.json", class_text);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (CHECK_NAMED(model != NULL, error.message))
        gguf_get_bool(&model->kvs, "tokenizer.ggml.add_space_prefix", &adds_space);
    CHECK_NAMED(adds_space == !is_denied, class_text);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
    unlink("tokenizer_config.json");
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(i);
    check_pooling();
    check_conv_bias();
    /* llama.cpp has one activation of Nomic BERT. */
    check_refused(WORDS, ENCODER("NomicBert", "Model") "\"hidden_act\":\"gelu\"}", "hidden_act is gelu; Nomic BERT");
    check_biases(MODERN_BERT "\"a\":1}", "layers.0.attn.Wqkv.bias", "does not know the tensor blk.{}.attn_qkv.bias");
    check_biases(MODERN_BERT "\"a\":1}", "final_norm.bias", "does not know the tensor output_norm.bias");
    check_biases(ENCODER("EuroBert", "Model") "\"a\":1}", "layers.0.mlp.up_proj.bias", "the tensor blk.{}.ffn_up.bias");
    check_biases(ENCODER("EuroBert", "Model") "\"a\":1}", "layers.0.self_attn.o_proj.bias",
                 "the tensor blk.{}.attn_output.bias");
    /* The converter demands half of each head, and llama.cpp turns that. */
    check_refused("model.embed_tokens", STEP("1.0") "\"a\":1}}", "full_attention layers turn 1 of each head");
    check_experts();
    check_ends("[5,6]", true);
    check_ends("[6,6]", false);
    check_ends("6", false);
    check_space("{\"tokenizer_class\":\"TokenizersBackend\"}", false);
    check_space("{\"tokenizer_class\":\"LlamaTokenizerFast\"}", true);
    files_remove();
    return check_done();
}
