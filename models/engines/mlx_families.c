#include "models/engines/mlx_families.h"

#include <string.h>

/* Parts of lists. */
#define QKVO     "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj "
#define QK_NORMS "self_attn.q_norm self_attn.k_norm "
#define LATENT_LOW_RANK                                                                                                \
    "self_attn.q_a_proj self_attn.q_a_layernorm self_attn.q_b_proj self_attn.kv_a_proj_with_mqa "                      \
    "self_attn.kv_a_layernorm self_attn.embed_q self_attn.unembed_out self_attn.o_proj "
#define LATENT "self_attn.q_proj " LATENT_LOW_RANK
#define LATENT_OF(attention)                                                                                           \
    attention ".q_proj " attention ".q_a_proj " attention ".q_a_layernorm " attention ".q_b_proj " attention           \
              ".kv_a_proj_with_mqa " attention ".kv_a_layernorm " attention ".embed_q " attention                      \
              ".unembed_out " attention ".o_proj "
#define GATE_UP_DOWN_OF(mlp) mlp ".gate_proj " mlp ".up_proj " mlp ".down_proj "
#define GATE_DOWN_UP         "mlp.gate_proj mlp.down_proj mlp.up_proj "
#define GATE_UP_DOWN         "mlp.gate_proj mlp.up_proj mlp.down_proj "
#define SWITCH(mlp)          mlp ".switch_mlp.gate_proj " mlp ".switch_mlp.up_proj " mlp ".switch_mlp.down_proj "
#define SHARED_GATE_UP_DOWN  "mlp.shared_experts.gate_proj mlp.shared_experts.up_proj mlp.shared_experts.down_proj "
#define SHARED_GATE_DOWN_UP  "mlp.shared_experts.gate_proj mlp.shared_experts.down_proj mlp.shared_experts.up_proj "
#define NORMS                "input_layernorm post_attention_layernorm "
#define FOUR_NORMS           NORMS "pre_feedforward_layernorm post_feedforward_layernorm "
#define LINEAR_ATTENTION(projections)                                                                                  \
    "=linear_attn.conv1d " projections " #linear_attn.dt_bias #linear_attn.A_log linear_attn.norm "                    \
    "linear_attn.out_proj "
#define SHARED_EXPERT                                                                                                  \
    "mlp.shared_expert.gate_proj mlp.shared_expert.down_proj mlp.shared_expert.up_proj mlp.shared_expert_gate "
#define ROUTED_WITH_BIAS SWITCH("mlp") "=mlp.gate #mlp.gate.e_score_correction_bias " SHARED_GATE_UP_DOWN
#define LOW_RANK(pair)   pair ".lora.0 " pair ".lora.2 "
#define KIMI_EXPERTS     "mlp.gate " SWITCH("mlp") "#mlp.e_score_correction_bias "
#define LONGCAT_LAYER                                                                                                  \
    SWITCH("mlp")                                                                                                      \
    "mlp.router.classifier #mlp.router.e_score_correction_bias " LATENT_OF("self_attn.0") LATENT_OF("self_attn.1")     \
        GATE_UP_DOWN_OF("mlps.0") GATE_UP_DOWN_OF(                                                                     \
            "mlps.1") "input_layernorm.0 input_layernorm.1 post_attention_layernorm.0 post_attention_layernorm.1"

/* Most families have these names outside their layers. */
#define LLAMA_NAMES .before = "model.embed_tokens", .layers = "model.layers", .after = "model.norm lm_head"

/* What classes add to the configuration of the text model. */
static const struct mlx_default of_gemma3[] = {
    {"num_attention_heads", "8"}, {"num_key_value_heads", "4"}, {NULL, NULL}};
static const struct mlx_default of_gemma4[] = {
    {"num_attention_heads", "8"}, {"num_key_value_heads", "1"}, {NULL, NULL}};
static const struct mlx_default of_mistral3[] = {{"tie_word_embeddings", "false"}, {NULL, NULL}};

const struct mlx_family mlx_families[] = {
    {.modules = "llama internlm3",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "rotary_emb.inv_freq rope.inv_freq"},
    {.modules = "ernie4_5 smollm3 seed_oss",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "rotary_emb.inv_freq"},
    {.modules = "ministral3",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "rotary_emb.inv_freq activation_scale",
     .reads_fp8 = true},
    {.modules = "telechat3", LLAMA_NAMES, .layer = QKVO GATE_DOWN_UP NORMS, .is_untied = true},
    {.modules = "nanbeige",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "self_attn.rotary_emb.inv_freq",
     .is_untied = true},
    {.modules = "iquestloopcoder",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = QKVO GATE_DOWN_UP NORMS,
     .after = "model.norm =model.gate_projections.{} lm_head",
     .is_untied = true},
    {.modules = "nemotron-nas",
     LLAMA_NAMES,
     .layer = "input_layernorm " QKVO "self_attn.linear post_attention_layernorm " GATE_DOWN_UP "mlp.linear",
     .is_untied = true},
    {.modules = "mellum",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS "mlp.gate " SWITCH("mlp") NORMS,
     .rows = mlx_rows_experts,
     .in_8_bits = "mlp.gate"},
    {.modules = "Klear",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_DOWN_UP
     "mlp.gate mlp.experts.gate_proj mlp.experts.up_proj mlp.experts.down_proj " SHARED_GATE_DOWN_UP
     "mlp.coefficient #mlp.expert_bias " NORMS,
     .rows = mlx_rows_dots1,
     .is_untied = true,
     .in_8_bits = "mlp.gate",
     .uncast = "expert_bias"},
    {.modules = "hunyuan",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = QKVO "self_attn.query_layernorm self_attn.key_layernorm " GATE_DOWN_UP
                   "mlp.shared_mlp.gate_proj mlp.shared_mlp.down_proj mlp.shared_mlp.up_proj mlp.gate.wg " SWITCH("mlp")
                       NORMS,
     .after = "model.norm",
     .rows = mlx_rows_experts},
    {.modules = "laguna",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS "self_attn.g_proj " GATE_DOWN_UP "mlp.gate.proj #mlp.gate.e_score_correction_bias " SWITCH(
         "mlp") "mlp.shared_expert.gate_proj mlp.shared_expert.down_proj mlp.shared_expert.up_proj " NORMS,
     .rows = mlx_rows_laguna,
     .is_untied = true,
     .in_8_bits = "mlp.gate.proj",
     .uncast = "e_score_correction_bias"},
    {.modules = "phi3small",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "self_attn.query_key_value self_attn.dense mlp.up_proj mlp.down_proj " NORMS,
     .after = "model.final_layernorm",
     .dropped = "self_attn.rotary_emb.inv_freq"},
    {.modules = "spark2_5",
     .before = "model.embedding",
     .layers = "model.layers",
     .layer = "self_attn.q_k_v_proj self_attn.g_proj self_attn.out_proj " GATE_UP_DOWN NORMS,
     .after = "model.norm lm_head",
     .rows = mlx_rows_spark2_5,
     .dropped = "rotary_emb.inv_freq",
     .plain = "self_attn.g_proj"},
    {.modules = "olmo_hybrid",
     LLAMA_NAMES,
     .layer = "linear_attn.q_proj linear_attn.k_proj linear_attn.v_proj linear_attn.a_proj linear_attn.b_proj "
              "linear_attn.g_proj linear_attn.o_proj =linear_attn.q_conv1d =linear_attn.k_conv1d "
              "=linear_attn.v_conv1d #linear_attn.A_log #linear_attn.dt_bias linear_attn.o_norm " QKVO QK_NORMS
                  GATE_UP_DOWN NORMS "post_feedforward_layernorm",
     .rows = mlx_rows_olmo_hybrid},
    {.modules = "recurrent_gemma",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "temporal_pre_norm temporal_block.linear_y temporal_block.linear_x temporal_block.linear_out "
              "=temporal_block.conv_1d #temporal_block.rg_lru.recurrent_param "
              "#temporal_block.rg_lru.input_gate_weight #temporal_block.rg_lru.input_gate_bias "
              "#temporal_block.rg_lru.recurrent_gate_weight #temporal_block.rg_lru.recurrent_gate_bias "
              "temporal_block.q_proj temporal_block.k_proj temporal_block.v_proj temporal_block.o_proj "
              "channel_pre_norm mlp_block.up_proj mlp_block.gate_proj mlp_block.down_proj",
     .after = "model.final_norm lm_head",
     .rows = mlx_rows_recurrent_gemma,
     .is_untied = true},
    {.modules = "minimax_m3_vl",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS "self_attn.index_q_proj self_attn.index_k_proj self_attn.index_q_norm "
                            "self_attn.index_k_norm " GATE_UP_DOWN "block_sparse_moe.gate "
                            "#block_sparse_moe.e_score_correction_bias " SWITCH("block_sparse_moe")
                                GATE_UP_DOWN_OF("block_sparse_moe.shared_experts") NORMS,
     .rows = mlx_rows_mixtral,
     .dropped = "vision_tower. multi_modal_projector. patch_merge_mlp.",
     .is_untied = true,
     .in_8_bits = "block_sparse_moe.gate",
     .uncast = "e_score_correction_bias"},
    {.modules = "phixtral",
     .before = "transformer.embd.wte",
     .layers = "transformer.h",
     .layer = "mixer.Wqkv mixer.out_proj ln moe.switch_mlp.fc1 moe.switch_mlp.fc2 moe.gate",
     .after = "lm_head.ln lm_head.linear",
     .rows = mlx_rows_phixtral},
    {.modules = "nanochat",
     .before = "transformer.wte",
     .layers = "transformer.h",
     .layer = "attn.c_q attn.c_k attn.c_v attn.c_proj mlp.c_fc mlp.c_proj",
     .after = "lm_head",
     .is_untied = true},
    {.modules = "lille-130m",
     .before = "transformer.tok_embeddings",
     .layers = "transformer.layers",
     .layer = "attention.qkv_proj attention.out_proj attention.norm feed_forward.norm feed_forward.gate_proj "
              "feed_forward.up_proj feed_forward.down_proj",
     .after = "transformer.norm",
     .dropped = "rotary_emb"},
    {.modules = "gptj",
     .before = "model.wte",
     .layers = "model.h",
     .layer = "ln_1 attn.k_proj attn.v_proj attn.q_proj attn.out_proj mlp.fc_in mlp.fc_out",
     .after = "model.ln_f lm_head",
     .stored = "",
     .stored_layers = "transformer.h",
     .rows = mlx_rows_gptj,
     .dropped = ".attn.masked_bias .attn.bias",
     .is_untied = true},
    {.modules = "mimo",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "rotary_emb.inv_freq model.mtp_layers.",
     .is_untied = true},
    {.modules = "granite",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .in_8_bits = "self_attn.o_proj mlp.down_proj lm_head"},
    {.modules = "granitemoe",
     LLAMA_NAMES,
     .layer = QKVO SWITCH("block_sparse_moe") "block_sparse_moe.router.layer " NORMS,
     .rows = mlx_rows_granite_experts,
     .in_8_bits = "block_sparse_moe.router.layer self_attn.o_proj switch_mlp.down_proj lm_head"},
    {.modules = "helium", LLAMA_NAMES, .layer = QKVO GATE_UP_DOWN NORMS},
    {.modules = "stablelm",
     LLAMA_NAMES,
     .layer = QKVO "self_attn.q_layernorm.norms.{} self_attn.k_layernorm.norms.{} " GATE_DOWN_UP NORMS,
     .is_untied = true},
    {.modules = "cohere cohere2",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = QKVO "=self_attn.q_norm =self_attn.k_norm " GATE_UP_DOWN "input_layernorm",
     .after = "model.norm"},
    {.modules = "phi",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.dense input_layernorm mlp.fc1 mlp.fc2",
     .after = "model.final_layernorm lm_head",
     .is_untied = true},
    {.modules = "olmo2 exaone4",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_DOWN_UP "post_attention_layernorm post_feedforward_layernorm",
     .dropped = "rotary_emb.inv_freq"},
    {.modules = "olmo3",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_DOWN_UP "post_attention_layernorm post_feedforward_layernorm",
     .is_untied = true},
    {.modules = "olmoe", LLAMA_NAMES, .layer = QKVO QK_NORMS "mlp.gate " SWITCH("mlp") NORMS, .rows = mlx_rows_experts},
    {.modules = "apertus",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS "mlp.up_proj mlp.down_proj #mlp.act_fn.alpha_p #mlp.act_fn.alpha_n #mlp.act_fn.beta "
                            "#mlp.act_fn.eps attention_layernorm feedforward_layernorm",
     .rows = mlx_rows_apertus},
    {.modules = "gpt_bigcode",
     .before = "transformer.wte transformer.wpe",
     .layers = "transformer.h",
     .layer = "attn.c_attn attn.c_proj mlp.c_fc mlp.c_proj ln_1 ln_2",
     .after = "transformer.ln_f lm_head"},
    {.modules = "qwen",
     .before = "transformer.wte",
     .layers = "transformer.h",
     .layer = "ln_1 attn.c_attn attn.c_proj ln_2 mlp.w1 mlp.w2 mlp.c_proj",
     .after = "transformer.ln_f lm_head",
     .is_untied = true},
    {.modules = "openelm",
     .before = "transformer.token_embeddings",
     .layers = "transformer.layers",
     .layer = "attn.qkv_proj attn.out_proj attn.q_norm attn.k_norm ffn.proj_1 ffn.proj_2 ffn_norm attn_norm",
     .after = "transformer.norm lm_head"},
    {.modules = "plamo",
     .before = "model.embed_tokens",
     .layers = "model.layers.layers",
     .layer = QKVO GATE_UP_DOWN "norm",
     .after = "model.norm lm_head",
     .is_untied = true},
    {.modules = "plamo2 plamo3",
     .before = "model.embed_tokens",
     .layers = "model.layers.layers",
     .layer =
         "mixer.in_proj =mixer.conv1d mixer.bcdt_proj mixer.dt_proj #mixer.dt_bias #mixer.A_log #mixer.D "
         "#mixer.dt_norm_weight #mixer.B_norm_weight #mixer.C_norm_weight mixer.out_proj mixer.qkv_proj mixer.o_proj "
         "#mixer.q_weight #mixer.k_weight mixer.q_norm mixer.k_norm mlp.gate_up_proj mlp.down_proj pre_mixer_norm "
         "post_mixer_norm pre_mlp_norm post_mlp_norm",
     .after = "model.norm lm_head",
     .rows = mlx_rows_mixer},
    {.modules = "mamba2",
     .before = "backbone.embeddings",
     .layers = "backbone.layers",
     .layer = "=mixer.conv1d mixer.in_proj #mixer.dt_bias #mixer.A_log #mixer.D mixer.norm mixer.out_proj norm",
     .after = "backbone.norm_f lm_head",
     .rows = mlx_rows_mixer},
    {.modules = "mamba",
     .before = "backbone.embeddings",
     .layers = "backbone.layers",
     .layer = "mixer.in_proj =mixer.conv1d mixer.x_proj mixer.dt_proj #mixer.A_log #mixer.D mixer.out_proj norm",
     .after = "backbone.norm_f lm_head",
     .rows = mlx_rows_mixer},
    {.modules = "nemotron_h",
     .before = "backbone.embeddings",
     .layers = "backbone.layers",
     .layer =
         "norm =mixer.conv1d mixer.in_proj #mixer.dt_bias #mixer.A_log #mixer.D mixer.norm mixer.out_proj "
         "mixer.q_proj mixer.k_proj mixer.v_proj mixer.o_proj mixer.switch_mlp.fc1 mixer.switch_mlp.fc2 =mixer.gate "
         "#mixer.gate.e_score_correction_bias mixer.up_proj mixer.down_proj mixer.shared_experts.up_proj "
         "mixer.shared_experts.down_proj mixer.fc1_latent_proj mixer.fc2_latent_proj",
     .after = "backbone.norm_f lm_head",
     .rows = mlx_rows_nemotron_h,
     .dropped = "mtp.",
     .is_untied = true,
     .uncast = "e_score_correction_bias A_log"},
    {.modules = "llama4",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO "feed_forward.gate_proj feed_forward.down_proj feed_forward.up_proj feed_forward.experts.gate_proj "
                   "feed_forward.experts.up_proj feed_forward.experts.down_proj feed_forward.router "
                   "feed_forward.shared_expert.gate_proj feed_forward.shared_expert.down_proj "
                   "feed_forward.shared_expert.up_proj " NORMS,
     .rows = mlx_rows_llama4,
     .dropped = "vision_model multi_modal_projector",
     .is_untied = true},
    {.modules = "llama4_text",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = QKVO "feed_forward.gate_proj feed_forward.up_proj feed_forward.down_proj " NORMS,
     .after = "model.norm output"},
    {.modules = "afmoe",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS
     "self_attn.gate_proj " GATE_DOWN_UP "mlp.router.gate #mlp.expert_bias mlp.experts.gate_proj "
     "mlp.experts.up_proj mlp.experts.down_proj " SHARED_GATE_DOWN_UP NORMS "pre_mlp_layernorm post_mlp_layernorm",
     .rows = mlx_rows_dots1,
     .dropped = "rotary_emb.inv_freq",
     .is_untied = true,
     .in_8_bits = "router.gate",
     .uncast = "expert_bias"},
    {.modules = "qwen2_moe",
     LLAMA_NAMES,
     .layer = QKVO "mlp.gate " SWITCH("mlp") SHARED_EXPERT NORMS,
     .rows = mlx_rows_experts,
     .is_untied = true},
    {.modules = "deepseek_v2",
     LLAMA_NAMES,
     .layer = "self_attn.q_proj self_attn.q_a_proj self_attn.q_a_layernorm self_attn.q_b_proj "
              "self_attn.kv_a_proj_with_mqa self_attn.kv_a_layernorm self_attn.kv_b_proj self_attn.o_proj " GATE_UP_DOWN
                  SWITCH("mlp") "=mlp.gate " SHARED_GATE_UP_DOWN NORMS,
     .rows = mlx_rows_experts,
     .is_untied = true},
    {.modules = "mistral4",
     LLAMA_NAMES,
     .layer = LATENT GATE_UP_DOWN SWITCH("mlp") "mlp.gate " SHARED_GATE_UP_DOWN NORMS,
     .rows = mlx_rows_latent,
     .dropped = "rotary_emb.inv_freq",
     .is_untied = true},
    {.modules = "mimo_v2_flash",
     LLAMA_NAMES,
     .layer = QKVO "#self_attn.attention_sink_bias " GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_experts,
     .dropped = "model.mtp",
     .is_untied = true,
     .uncast = "e_score_correction_bias",
     .reads_fp8 = true},
    {.modules = "qwen2", LLAMA_NAMES, .layer = QKVO GATE_DOWN_UP NORMS, .dropped = "rotary_emb.inv_freq"},
    {.modules = "qwen3", LLAMA_NAMES, .layer = QKVO QK_NORMS GATE_DOWN_UP NORMS},
    {.modules = "mixtral phimoe",
     LLAMA_NAMES,
     .layer = QKVO "block_sparse_moe.gate " SWITCH("block_sparse_moe") NORMS,
     .rows = mlx_rows_mixtral,
     .is_untied = true},
    {.modules = "minimax",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS
     "block_sparse_moe.gate " SWITCH("block_sparse_moe") "#block_sparse_moe.e_score_correction_bias " NORMS,
     .rows = mlx_rows_mixtral,
     .is_untied = true,
     .in_8_bits = "block_sparse_moe.gate",
     .uncast = "e_score_correction_bias",
     .reads_fp8 = true},
    {.modules = "phi3",
     LLAMA_NAMES,
     .layer = "self_attn.qkv_proj self_attn.o_proj mlp.gate_up_proj mlp.down_proj " NORMS,
     .is_untied = true},
    {.modules = "qwen3_moe",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS NORMS GATE_DOWN_UP "mlp.gate " SWITCH("mlp"),
     .rows = mlx_rows_experts,
     .in_8_bits = "mlp.gate"},
    {.modules = "gemma", LLAMA_NAMES, .layer = QKVO GATE_DOWN_UP NORMS},
    {.modules = "gemma2",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP
     "input_layernorm pre_feedforward_layernorm post_feedforward_layernorm post_attention_layernorm"},
    {.modules = "gemma3_text", LLAMA_NAMES, .layer = QKVO QK_NORMS GATE_DOWN_UP FOUR_NORMS, .is_untied = true},
    {.modules = "gemma3",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_DOWN_UP FOUR_NORMS,
     .dropped = "vision_tower. multi_modal_projector.",
     .is_untied = true,
     .text_defaults = of_gemma3,
     .n_vocabulary = 262208},
    {.modules = "gemma3n",
     .prefix = "model.language_model.",
     .before = "embed_tokens",
     .layers = "layers",
     .layer = QKVO QK_NORMS GATE_UP_DOWN FOUR_NORMS
     "#altup.correct_output_scale altup.correction_coefs altup.prediction_coefs altup.modality_router "
     "altup.router_norm laurel.linear_left laurel.linear_right laurel.post_laurel_norm per_layer_input_gate "
     "per_layer_projection post_per_layer_input_norm",
     .after = "embed_tokens_per_layer per_layer_model_projection per_layer_projection_norm altup_projections.0 "
              "altup_projections.1 altup_projections.2 altup_unembed_projections.0 altup_unembed_projections.1 "
              "altup_unembed_projections.2 norm",
     .dropped = "vision_tower. audio_tower. embed_audio. embed_vision."},
    {.modules = "gemma4",
     .prefix = "language_model.",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = QKVO QK_NORMS GATE_DOWN_UP
     "router.proj #router.scale #router.per_expert_scale experts.switch_glu.gate_proj "
     "experts.switch_glu.up_proj experts.switch_glu.down_proj " FOUR_NORMS
     "post_feedforward_layernorm_1 post_feedforward_layernorm_2 pre_feedforward_layernorm_2 "
     "per_layer_input_gate per_layer_projection post_per_layer_input_norm #layer_scalar",
     .after = "model.norm model.embed_tokens_per_layer model.per_layer_model_projection "
              "model.per_layer_projection_norm lm_head",
     .rows = mlx_rows_gemma4,
     .dropped = "vision_tower. multi_modal_projector. audio_tower. embed_audio. embed_vision. vision_embedder. "
                "rotary_emb input_max input_min output_max output_min",
     .drops_shared = true,
     .in_8_bits = "router.proj",
     .text_defaults = of_gemma4,
     .n_vocabulary = 262144},
    {.modules = "gemma4_text",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = QKVO QK_NORMS GATE_DOWN_UP
     "router.proj #router.scale #router.per_expert_scale experts.switch_glu.gate_proj "
     "experts.switch_glu.up_proj experts.switch_glu.down_proj " FOUR_NORMS
     "post_feedforward_layernorm_1 post_feedforward_layernorm_2 pre_feedforward_layernorm_2 "
     "per_layer_input_gate per_layer_projection post_per_layer_input_norm #layer_scalar",
     .after = "model.norm model.embed_tokens_per_layer model.per_layer_model_projection "
              "model.per_layer_projection_norm lm_head",
     .rows = mlx_rows_gemma4,
     .dropped = "rotary_emb input_max input_min output_max output_min",
     .drops_shared = true,
     .in_8_bits = "router.proj"},
    {.modules = "gpt2",
     .prefix = "model.",
     .before = "wte wpe",
     .layers = "h",
     .layer = "attn.c_attn attn.c_proj mlp.c_fc mlp.c_proj ln_1 ln_2",
     .after = "ln_f",
     .stored = "transformer.",
     .rows = mlx_rows_gpt2,
     .dropped = ".attn.bias"},
    {.modules = "gpt_neox",
     .prefix = "model.",
     .before = "embed_in embed_out",
     .layers = "h",
     .layer = "attention.query_key_value attention.dense mlp.dense_h_to_4h mlp.dense_4h_to_h " NORMS,
     .after = "final_layer_norm",
     .stored = "gpt_neox.",
     .stored_layers = "layers",
     .dropped = ".attention.bias .attention.masked_bias .attention.rotary_emb.inv_freq"},
    {.modules = "starcoder2", LLAMA_NAMES, .layer = QKVO "mlp.c_fc mlp.c_proj " NORMS},
    {.modules = "nemotron", LLAMA_NAMES, .layer = QKVO "mlp.down_proj mlp.up_proj " NORMS, .is_untied = true},
    {.modules = "exaone",
     .before = "transformer.wte",
     .layers = "transformer.h",
     .layer = "ln_1 attn.attention.q_proj attn.attention.k_proj attn.attention.v_proj attn.attention.out_proj ln_2 "
              "mlp.c_fc_0 mlp.c_fc_1 mlp.c_proj",
     .after = "transformer.ln_f lm_head"},
    {.modules = "glm",
     LLAMA_NAMES,
     .layer = QKVO "mlp.gate_up_proj mlp.down_proj " NORMS,
     .dropped = "rotary_emb.inv_freq"},
    {.modules = "glm4",
     LLAMA_NAMES,
     .layer = QKVO "mlp.gate_up_proj mlp.down_proj " NORMS "post_self_attn_layernorm post_mlp_layernorm",
     .is_untied = true},
    {.modules = "hunyuan_v1_dense",
     LLAMA_NAMES,
     .layer = QKVO "self_attn.query_layernorm self_attn.key_layernorm " GATE_DOWN_UP NORMS,
     .is_untied = true},
    {.modules = "internlm2",
     .before = "model.tok_embeddings",
     .layers = "model.layers",
     .layer = "attention.wqkv attention.wo feed_forward.w1 feed_forward.w2 feed_forward.w3 attention_norm ffn_norm",
     .after = "model.norm output",
     .dropped = "attention.rope.inv_freq",
     .is_untied = true},
    {.modules = "minicpm", LLAMA_NAMES, .layer = QKVO GATE_UP_DOWN NORMS, .rows = mlx_rows_minicpm, .is_untied = true},
    {.modules = "minicpm3 youtu_llm",
     LLAMA_NAMES,
     .layer = "self_attn.q_proj self_attn.q_a_proj self_attn.q_a_layernorm self_attn.q_b_proj "
              "self_attn.kv_a_proj_with_mqa self_attn.kv_a_layernorm self_attn.kv_b_proj "
              "self_attn.o_proj " GATE_UP_DOWN NORMS,
     .is_untied = true},
    {.modules = "muse_glimmer",
     LLAMA_NAMES,
     .layer = QKVO "self_attn.gate_proj " GATE_UP_DOWN FOUR_NORMS,
     .dropped = "vision_tower vision_adapter vision_projection",
     .is_untied = true},
    {.modules = "lfm2",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "=conv.conv conv.in_proj conv.out_proj self_attn.q_layernorm self_attn.k_layernorm self_attn.q_proj "
              "self_attn.k_proj self_attn.v_proj self_attn.out_proj feed_forward.w1 feed_forward.w3 feed_forward.w2 "
              "operator_norm ffn_norm",
     .after = "model.embedding_norm",
     .rows = mlx_rows_lfm2},
    {.modules = "lfm2_moe",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "=conv.conv conv.in_proj conv.out_proj self_attn.q_layernorm self_attn.k_layernorm self_attn.q_proj "
              "self_attn.k_proj self_attn.v_proj self_attn.out_proj feed_forward.gate_proj feed_forward.up_proj "
              "feed_forward.down_proj feed_forward.gate " SWITCH("feed_forward") "#feed_forward.expert_bias "
                                                                                 "operator_norm ffn_norm",
     .after = "model.embedding_norm",
     .rows = mlx_rows_lfm2_moe,
     .in_8_bits = "feed_forward.gate",
     .uncast = "expert_bias"},
    {.modules = "deepseek",
     LLAMA_NAMES,
     .layer = QKVO GATE_UP_DOWN SWITCH("mlp") "=mlp.gate " SHARED_GATE_UP_DOWN NORMS,
     .rows = mlx_rows_experts,
     .is_untied = true},
    {.modules = "deepseek_v3",
     LLAMA_NAMES,
     .layer = LATENT GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_latent,
     .dropped = "model.layers.61 rotary_emb.inv_freq",
     .is_untied = true,
     .uncast = "e_score_correction_bias",
     .reads_fp8 = true},
    {.modules = "kimi_k25",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = LATENT GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_latent,
     .dropped = "vision_tower. vision_model. multi_modal_projector. mm_projector. model.layers.61 rotary_emb.inv_freq",
     .is_untied = true,
     .uncast = "e_score_correction_bias"},
    {.modules = "longcat_flash",
     LLAMA_NAMES,
     .layer = LONGCAT_LAYER,
     .rows = mlx_rows_longcat,
     .dropped = "model.mtp",
     .is_untied = true,
     .in_8_bits = "classifier",
     .uncast = "e_score_correction_bias"},
    {.modules = "longcat_flash_ngram",
     .before = "model.ngram_embeddings.word_embeddings model.ngram_embeddings.embedders.{} "
               "model.ngram_embeddings.post_projs.{}",
     .layers = "model.layers",
     .layer = LONGCAT_LAYER,
     .after = "model.norm lm_head",
     .rows = mlx_rows_longcat,
     .dropped = "model.mtp",
     .is_untied = true,
     .in_8_bits = "classifier",
     .uncast = "e_score_correction_bias"},
    {.modules = "gpt_oss",
     .before = "model.embed_tokens model.norm",
     .layers = "model.layers",
     .layer = "#self_attn.sinks " QKVO "mlp.experts.gate_proj #mlp.experts.gate_proj.bias mlp.experts.up_proj "
              "#mlp.experts.up_proj.bias mlp.experts.down_proj #mlp.experts.down_proj.bias mlp.router " NORMS,
     .after = "lm_head",
     .rows = mlx_rows_gpt_oss,
     .is_untied = true,
     .in_8_bits = "router"},
    {.modules = "deepseek_v32 glm_moe_dsa",
     LLAMA_NAMES,
     .layer = LATENT "self_attn.indexer.wq_b self_attn.indexer.wk self_attn.indexer.k_norm "
                     "self_attn.indexer.weights_proj " GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_latent,
     .drops_layers = true,
     .is_untied = true,
     .uncast = "e_score_correction_bias",
     .reads_fp8 = true},
    {.modules = "glm4_moe_lite",
     LLAMA_NAMES,
     .layer = LATENT GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_latent,
     .drops_layers = true,
     .is_untied = true,
     .uncast = "e_score_correction_bias"},
    {.modules = "glm4_moe solar_open",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_experts,
     .drops_layers = true,
     .uncast = "e_score_correction_bias"},
    {.modules = "dots1",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_UP_DOWN "mlp.experts.gate_proj mlp.experts.up_proj mlp.experts.down_proj =mlp.gate "
                                         "#mlp.gate.e_score_correction_bias " SHARED_GATE_UP_DOWN NORMS,
     .rows = mlx_rows_dots1,
     .dropped = "rotary_emb.inv_freq",
     .is_untied = true},
    {.modules = "exaone_moe",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_UP_DOWN ROUTED_WITH_BIAS NORMS,
     .rows = mlx_rows_exaone_moe,
     .dropped = "mtp.",
     .is_untied = true,
     .uncast = "e_score_correction_bias"},
    {.modules = "ernie4_5_moe",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP "mlp.gate " SWITCH("mlp") SHARED_GATE_DOWN_UP NORMS,
     .rows = mlx_rows_experts,
     .dropped = "mtp_block. mtp_linear_proj. mtp_hidden_norm. mtp_emb_norm. e_score_correction_bias"},
    {.modules = "falcon_h1",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "feed_forward.gate_proj feed_forward.up_proj feed_forward.down_proj =mamba.conv1d mamba.in_proj "
              "#mamba.dt_bias #mamba.A_log mamba.norm #mamba.D mamba.out_proj " QKVO "input_layernorm pre_ff_layernorm",
     .after = "model.final_layernorm lm_head",
     .rows = mlx_rows_mamba,
     .change = mlx_falcon_h1_multipliers},
    {.modules = "jamba",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer = "mamba.in_proj =mamba.conv1d mamba.x_proj mamba.dt_proj #mamba.A_log #mamba.D mamba.out_proj "
              "mamba.dt_layernorm mamba.b_layernorm mamba.c_layernorm " QKVO "feed_forward.gate_proj "
              "feed_forward.up_proj feed_forward.down_proj feed_forward.router " SWITCH(
                  "feed_forward") "input_layernorm pre_ff_layernorm",
     .after = "model.final_layernorm lm_head",
     .rows = mlx_rows_mamba,
     .in_8_bits = "router"},
    {.modules = "granitemoehybrid",
     LLAMA_NAMES,
     .layer = "input_layernorm =mamba.conv1d mamba.in_proj #mamba.dt_bias #mamba.A_log #mamba.D mamba.norm "
              "mamba.out_proj " QKVO "shared_mlp.input_linear shared_mlp.output_linear " SWITCH(
                  "block_sparse_moe") "block_sparse_moe.router.layer post_attention_layernorm",
     .rows = mlx_rows_granite_experts,
     .in_8_bits = "router.layer"},
    {.modules = "granitemoehybrid.dense",
     LLAMA_NAMES,
     .layer = "input_layernorm =mamba.conv1d mamba.in_proj #mamba.dt_bias #mamba.A_log #mamba.D mamba.norm "
              "mamba.out_proj " QKVO GATE_DOWN_UP "post_attention_layernorm",
     .rows = mlx_rows_granite_dense},
    {.modules = "kimi_linear",
     LLAMA_NAMES,
     .layer =
         "self_attn.q_proj self_attn.k_proj self_attn.v_proj =self_attn.q_conv.conv =self_attn.k_conv.conv "
         "=self_attn.v_conv.conv self_attn.f_a_proj self_attn.f_b_proj self_attn.b_proj self_attn.g_a_proj "
         "self_attn.g_b_proj #self_attn.A_log #self_attn.dt_bias self_attn.o_norm self_attn.kv_a_proj_with_mqa "
         "self_attn.kv_a_layernorm self_attn.embed_q self_attn.unembed_out self_attn.o_proj " GATE_UP_DOWN KIMI_EXPERTS
             SHARED_GATE_UP_DOWN NORMS,
     .rows = mlx_rows_kimi_linear,
     .dropped = "model.mtp",
     .is_untied = true,
     .in_8_bits = "mlp.gate",
     .uncast = "e_score_correction_bias A_log dt_bias"},
    {.modules = "kimi_k3",
     .prefix = "language_model.",
     .before = "model.embed_tokens",
     .layers = "model.layers",
     .layer =
         "self_attn.qkv_proj =self_attn.qkv_conv.conv self_attn.f_a_proj self_attn.f_b_proj self_attn.b_proj "
         "self_attn.g_a_proj self_attn.g_b_proj #self_attn.A_log #self_attn.dt_bias self_attn.o_norm " LATENT_LOW_RANK
             GATE_UP_DOWN KIMI_EXPERTS
         "mlp.routed_expert_norm mlp.routed_expert_down_proj mlp.routed_expert_up_proj " SHARED_GATE_UP_DOWN NORMS
         "self_attention_res_proj self_attention_res_norm mlp_res_proj mlp_res_norm",
     .after = "model.norm model.output_attn_res_proj model.output_attn_res_norm lm_head",
     .rows = mlx_rows_kimi_k3,
     .dropped = "vision_tower vision_model multi_modal_projector mm_projector model.mtp mtp.",
     .drops_layers = true,
     .is_untied = true,
     .in_8_bits = "mlp.gate",
     .plain = "res_proj",
     .uncast = "e_score_correction_bias A_log dt_bias"},
    {.modules = "bailing_moe",
     .before = "model.word_embeddings",
     .layers = "model.layers",
     .layer = "attention.query_key_value attention.dense " GATE_DOWN_UP SWITCH(
         "mlp") "mlp.gate.gate_proj "
                "#mlp.gate.expert_bias " SHARED_GATE_DOWN_UP NORMS,
     .after = "model.norm lm_head",
     .rows = mlx_rows_bailing_moe,
     .is_untied = true,
     .in_8_bits = "mlp.gate.gate_proj",
     .uncast = "expert_bias",
     .refused = "norm_head"},
    {.modules = "bailing_moe_linear",
     .before = "model.word_embeddings",
     .layers = "model.layers",
     .layer = "attention.query_key_value attention.dense attention.g_proj attention.g_norm attention.key_layernorm "
              "attention.query_layernorm " GATE_DOWN_UP SWITCH(
                  "mlp") "mlp.gate.gate_proj #mlp.gate.expert_bias " SHARED_GATE_DOWN_UP NORMS,
     .after = "model.norm lm_head",
     .rows = mlx_rows_bailing_moe,
     .is_untied = true,
     .in_8_bits = "mlp.gate.gate_proj",
     .uncast = "expert_bias",
     .refused = "norm_head"},
    {.modules = "bailing_hybrid",
     .before = "model.word_embeddings",
     .layers = "model.layers",
     .layer = "attention.query_key_value attention.q_proj attention.q_a_proj attention.q_a_layernorm "
              "attention.q_b_proj attention.kv_a_proj_with_mqa attention.kv_a_layernorm attention.embed_q "
              "attention.unembed_out attention.dense attention.g_proj attention.g_norm attention.key_layernorm "
              "attention.query_layernorm " GATE_UP_DOWN SWITCH(
                  "mlp") "mlp.gate.gate_proj #mlp.gate.expert_bias " SHARED_GATE_UP_DOWN NORMS,
     .after = "model.norm lm_head",
     .rows = mlx_rows_bailing_hybrid,
     .drops_layers = true,
     .is_untied = true,
     .in_8_bits = "mlp.gate.gate_proj",
     .plain = "attention.embed_q attention.unembed_out",
     .uncast = "expert_bias"},
    {.modules = "bailing_moe_v3",
     .before = "model.word_embeddings",
     .layers = "model.layers",
     .layer = "attention.q_proj attention.q_a_proj attention.q_a_layernorm attention.q_b_proj attention.k_proj "
              "attention.v_proj =attention.q_conv1d =attention.k_conv1d =attention.v_conv1d #attention.A_log "
              "attention.f_proj #attention.dt_bias attention.b_proj attention.kv_a_proj_with_mqa "
              "attention.kv_a_layernorm attention.embed_q attention.unembed_out attention.g_proj attention.o_norm "
              "attention.o_proj attention.dense " GATE_UP_DOWN "=mlp.gate #mlp.gate.expert_bias " SWITCH("mlp")
                  SHARED_GATE_UP_DOWN NORMS,
     .after = "model.norm lm_head",
     .rows = mlx_rows_bailing_moe_v3,
     .dropped = "mtp",
     .drops_layers = true,
     .is_untied = true,
     .plain = "word_embeddings lm_head attention.q_a_proj attention.q_b_proj attention.kv_a_proj_with_mqa "
              "attention.embed_q attention.unembed_out attention.b_proj",
     .plain_beside = "attention.q_proj attention.g_proj",
     .beside = "attention.embed_q"},
    {.modules = "mistral3 pixtral",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "vision_tower multi_modal_projector rotary_emb.inv_freq",
     .is_untied = true,
     .text_defaults = of_mistral3,
     .reads_fp8 = true},
    {.modules = "qwen2_vl",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO GATE_DOWN_UP NORMS,
     .dropped = "visual. vision_tower."},
    {.modules = "qwen3_vl",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS GATE_DOWN_UP NORMS,
     .dropped = "visual. vision_tower."},
    {.modules = "qwen3_vl_moe",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS NORMS GATE_DOWN_UP "mlp.gate " SWITCH("mlp"),
     .rows = mlx_rows_qwen3_vl_moe,
     .dropped = "visual.",
     .is_untied = true,
     .in_8_bits = "mlp.gate"},
    {.modules = "qwen3_next",
     LLAMA_NAMES,
     .layer = LINEAR_ATTENTION("linear_attn.in_proj_qkvz linear_attn.in_proj_ba") QKVO QK_NORMS NORMS GATE_DOWN_UP
     "mlp.gate " SWITCH("mlp") SHARED_EXPERT,
     .rows = mlx_rows_qwen3_next,
     .dropped = "mtp.",
     .is_untied = true,
     .in_8_bits = "mlp.gate shared_expert_gate",
     .change = mlx_norms_plus_one},
    {.modules = "qwen3_5 qwen3_5_moe",
     .prefix = "language_model.",
     LLAMA_NAMES,
     .layer = LINEAR_ATTENTION("linear_attn.in_proj_qkv linear_attn.in_proj_z linear_attn.in_proj_b "
                               "linear_attn.in_proj_a") QKVO QK_NORMS NORMS GATE_DOWN_UP "mlp.gate " SWITCH("mlp")
         SHARED_EXPERT,
     .rows = mlx_rows_qwen3_5,
     .dropped = "vision_tower model.visual mtp.",
     .is_untied = true,
     .in_8_bits = "mlp.gate shared_expert_gate",
     .uncast = "A_log",
     .change = mlx_norms_plus_one,
     .renames_rope_type = true},
    {.modules = "step3p5",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS "self_attn.g_proj " GATE_UP_DOWN "mlp.gate.gate #mlp.gate.router_bias " SWITCH(
         "mlp") "mlp.share_expert.gate_proj mlp.share_expert.up_proj mlp.share_expert.down_proj " NORMS,
     .rows = mlx_rows_step3p5,
     .dropped = ".mtp",
     .drops_layers = true,
     .is_untied = true,
     .in_8_bits = "mlp.gate.gate",
     .uncast = "router_bias",
     .change = mlx_all_norms_plus_one},
    {.modules = "dbrx",
     .before = "transformer.wte",
     .layers = "transformer.blocks",
     .layer = "ffn.router.layer ffn.experts.{}.v1,w1,w2 norm_attn_norm.norm_1 norm_attn_norm.norm_2 "
              "norm_attn_norm.attn.Wqkv norm_attn_norm.attn.out_proj",
     .after = "transformer.norm_f lm_head",
     .rows = mlx_rows_dbrx,
     .is_untied = true},
    {.modules = "gear",
     LLAMA_NAMES,
     .layer = QKVO QK_NORMS
     "=local_mixer.key_conv =local_mixer.value_conv local_mixer.q_proj local_mixer.k_proj "
     "local_mixer.v_proj local_mixer.o_proj local_mixer.q_norm local_mixer.k_norm " GATE_UP_DOWN FOUR_NORMS,
     .rows = mlx_rows_gear,
     .dropped = "rotary_emb.inv_freq embed_scale"},
    {.modules = "rwkv7",
     .before = "model.embeddings",
     .layers = "model.layers",
     .layer = "pre_norm #attn.x_r #attn.x_w #attn.x_k #attn.x_v #attn.x_a #attn.x_g #attn.k_k #attn.k_a #attn.r_k "
              "attn.r_proj attn.k_proj attn.v_proj attn.o_proj #attn.g_norm.weight #attn.g_norm.bias " LOW_RANK(
                  "attn.w_lora") LOW_RANK("attn.v_lora") LOW_RANK("attn.a_lora")
                  LOW_RANK("attn.g_lora") "ffn.key ffn.value #ffn.x_k attn_norm ffn_norm",
     .after = "model.norm lm_head",
     .rows = mlx_rows_rwkv7,
     .is_untied = true,
     .in_8_bits = "model.embeddings lora.2",
     .names_bits_alone = true},
    {.modules = "talkie",
     .before = "model.embed",
     .layers = "model.blocks",
     .layer = "attn.attn_query attn.attn_key attn.attn_value attn.attn_resid #attn.head_gain.head_g #attn_gain.a_g "
              "mlp.mlp_gate mlp.mlp_linear mlp.mlp_resid #mlp_gain.a_g #embed_skip.a_g",
     .after = "#lm_head #lm_head_gain.w_g",
     .dropped = "rotary cos sin"},
    {.modules = NULL},
};

/* The module of a configuration, or of one of the two kinds that a module tells apart by a key. */
static const char *module_of(const struct json *config)
{
    uint64_t n_experts;
    const char *module = mlx_module_of(json_string(json_get(config, "model_type"), NULL),
                                       json_string(json_first(json_get(config, "architectures")), NULL));
    if (module != NULL && strcmp(module, "granitemoehybrid") == 0 &&
        (!json_u64(json_get(config, "num_local_experts"), &n_experts) || n_experts == 0))
        return "granitemoehybrid.dense";
    return module;
}

/* Classes that have no row, with what is said of one. */
static const struct refusal {
    const char *module, *reason;
} refusals[] = {
    {"afm7", "has layers in two lists, and mlx-lm itself fails to quantize it"},
    {"baichuan_m1", "divides the rows of lm_head by their norms, whose last bits depend on the processor"},
    {"bitnet", "keeps weights packed in two bits each, and mlx/ holds values or MLX's own codes"},
    {"deepseek_v41", "keeps weights in FP8 and FP4, and mlx/ holds values or MLX's own codes"},
    {"kimi_vl", "loads no checkpoint of its makers, because it does not split kv_b_proj"},
    {"lfm2-vl", "loads no checkpoint of its makers, because it expects other names of tensors"},
    {"muse_spark", "computes the weights of its gates by a sigmoid, whose last bits depend on the processor"},
    {"olmo", "needs the package ai2-olmo and its configuration instead of that of transformers"},
    {"prism_hadamard_qwen35", "loads only models that were quantized for MLX"},
};

const char *mlx_refusal_of(const struct json *config)
{
    const char *module = module_of(config);
    for (size_t i = 0; module != NULL && i < sizeof refusals / sizeof *refusals; i++)
        if (strcmp(module, refusals[i].module) == 0)
            return refusals[i].reason;
    return "is not supported";
}

const struct mlx_family *mlx_family_of(const struct json *config)
{
    const char *module = module_of(config);
    for (const struct mlx_family *family = mlx_families; module != NULL && family->modules != NULL; family++)
        if (mlx_list_has(family->modules, module))
            return family;
    return NULL;
}
