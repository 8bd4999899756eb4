#include "models/engines/mlx_families.h"

#include <stddef.h>

/* Parts of rows. */
#define EXPERTS(mlp)                                                                                                   \
    {mlp ".switch_mlp.gate_proj", mlp ".experts.{}.gate_proj", NULL},                                                  \
        {mlp ".switch_mlp.up_proj", mlp ".experts.{}.up_proj", NULL},                                                  \
    {                                                                                                                  \
        mlp ".switch_mlp.down_proj", mlp ".experts.{}.down_proj", NULL                                                 \
    }
#define NUMBERED_EXPERTS(to, from)                                                                                     \
    {to ".switch_mlp.gate_proj", from ".experts.{}.w1", NULL},                                                         \
        {to ".switch_mlp.up_proj", from ".experts.{}.w3", NULL},                                                       \
    {                                                                                                                  \
        to ".switch_mlp.down_proj", from ".experts.{}.w2", NULL                                                        \
    }
#define HEADS(attention)                                                                                               \
    {attention ".embed_q", attention ".kv_b_proj", "(head (nope + value)) rank -> head rank nope"},                    \
    {                                                                                                                  \
        attention ".unembed_out", attention ".kv_b_proj", "(head (nope + value)) rank -> head value rank"              \
    }
#define FIRST_HALF  "... (gate + up) c -> ... gate c"
#define SECOND_HALF "... (gate + up) c -> ... up c"
#define BY_HEAD     "(h nope) -> h nope"
#define TRANSPOSED  "i o -> o i"
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, NULL, NULL                                                                                               \
    }

const struct mlx_row mlx_rows_experts[] = {EXPERTS("mlp"), END};
const struct mlx_row mlx_rows_mixtral[] = {NUMBERED_EXPERTS("block_sparse_moe", "block_sparse_moe"), END};
const struct mlx_row mlx_rows_latent[] = {EXPERTS("mlp"), HEADS("self_attn"), END};
const struct mlx_row mlx_rows_longcat[] = {
    EXPERTS("mlp"),
    HEADS("self_attn.0"),
    HEADS("self_attn.1"),
    {"model.ngram_embeddings.word_embeddings", "model.embed_tokens|model.ngram_embeddings.word_embeddings", NULL},
    END,
};
const struct mlx_row mlx_rows_dbrx[] = {
    {"ffn.experts.{}.v1", "ffn.experts.mlp.v1", MLX_PART},
    {"ffn.experts.{}.w1", "ffn.experts.mlp.w1", MLX_PART},
    {"ffn.experts.{}.w2", "ffn.experts.mlp.w2", MLX_TURNED_PART},
    END,
};
const struct mlx_row mlx_rows_gear[] = {
    {"local_mixer.key_conv", NULL, MLX_CONVOLUTION},
    {"local_mixer.value_conv", NULL, MLX_CONVOLUTION},
    END,
};
const struct mlx_row mlx_rows_rwkv7[] = {
    {"attn.k_k", NULL, BY_HEAD},
    {"attn.k_a", NULL, BY_HEAD},
    {"attn.g_norm.weight", NULL, BY_HEAD},
    {"attn.g_norm.bias", NULL, BY_HEAD},
    END,
};
const struct mlx_row mlx_rows_gptj[] = {
    {"model.wte", "transformer.wte", NULL},
    {"model.ln_f", "transformer.ln_f", NULL},
    END,
};
const struct mlx_row mlx_rows_gpt2[] = {
    {"attn.c_attn", NULL, TRANSPOSED},
    {"attn.c_proj", NULL, TRANSPOSED},
    {"mlp.c_fc", NULL, TRANSPOSED},
    {"mlp.c_proj", NULL, TRANSPOSED},
    END,
};
const struct mlx_row mlx_rows_dots1[] = {
    {"mlp.experts.gate_proj", "mlp.experts.{}.gate_proj", NULL},
    {"mlp.experts.up_proj", "mlp.experts.{}.up_proj", NULL},
    {"mlp.experts.down_proj", "mlp.experts.{}.down_proj", NULL},
    END,
};
const struct mlx_row mlx_rows_apertus[] = {
    {"mlp.act_fn.alpha_p", NULL, MLX_SCALAR},
    {"mlp.act_fn.alpha_n", NULL, MLX_SCALAR},
    END,
};
const struct mlx_row mlx_rows_llama4[] = {
    {"feed_forward.experts.gate_proj", "feed_forward.experts.gate_up_proj", "e c (gate + up) -> e gate c"},
    {"feed_forward.experts.up_proj", "feed_forward.experts.gate_up_proj", "e c (gate + up) -> e up c"},
    {"feed_forward.experts.down_proj", "feed_forward.experts.down_proj", "e i o -> e o i"},
    END,
};
const struct mlx_row mlx_rows_mixer[] = {{"mixer.conv1d", NULL, MLX_CONVOLUTION}, END};
const struct mlx_row mlx_rows_nemotron_h[] = {
    {"mixer.conv1d", NULL, MLX_CONVOLUTION},
    {"mixer.switch_mlp.fc1", "mixer.experts.{}.up_proj", NULL},
    {"mixer.switch_mlp.fc2", "mixer.experts.{}.down_proj", NULL},
    END,
};
const struct mlx_row mlx_rows_exaone_moe[] = {
    EXPERTS("mlp"),
    {"mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias", NULL},
    END,
};
const struct mlx_row mlx_rows_mamba[] = {{"mamba.conv1d", NULL, MLX_CONVOLUTION}, EXPERTS("feed_forward"), END};
const struct mlx_row mlx_rows_lfm2[] = {{"conv.conv", NULL, MLX_CONVOLUTION}, END};
const struct mlx_row mlx_rows_lfm2_moe[] = {
    {"conv.conv", NULL, MLX_CONVOLUTION},
    {"feed_forward.gate_proj", "feed_forward.w1", NULL},
    {"feed_forward.up_proj", "feed_forward.w3", NULL},
    {"feed_forward.down_proj", "feed_forward.w2", NULL},
    {"feed_forward.switch_mlp.gate_proj", "feed_forward.experts.{}.w1", NULL},
    {"feed_forward.switch_mlp.up_proj", "feed_forward.experts.{}.w3", NULL},
    {"feed_forward.switch_mlp.down_proj", "feed_forward.experts.{}.w2", NULL},
    END,
};
const struct mlx_row mlx_rows_minicpm[] = {{"lm_head", "lm_head|model.embed_tokens", NULL}, END};
const struct mlx_row mlx_rows_qwen3_next[] = {{"linear_attn.conv1d", NULL, MLX_CONVOLUTION}, EXPERTS("mlp"), END};
const struct mlx_row mlx_rows_qwen3_5[] = {
    {"linear_attn.conv1d", NULL, MLX_CONVOLUTION},
    {"mlp.switch_mlp.gate_proj", "mlp.experts.gate_up_proj", FIRST_HALF},
    {"mlp.switch_mlp.up_proj", "mlp.experts.gate_up_proj", SECOND_HALF},
    {"mlp.switch_mlp.down_proj", "mlp.experts.down_proj", NULL},
    END,
};
const struct mlx_row mlx_rows_qwen3_vl_moe[] = {
    {"mlp.switch_mlp.gate_proj", "mlp.experts.gate_up_proj", "e c (gate + up) -> e gate c"},
    {"mlp.switch_mlp.up_proj", "mlp.experts.gate_up_proj", "e c (gate + up) -> e up c"},
    {"mlp.switch_mlp.down_proj", "mlp.experts.down_proj", "e i o -> e o i"},
    END,
};
const struct mlx_row mlx_rows_gpt_oss[] = {
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", "e c (row (one + other)) -> e (row one) c"},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", "e c (row (one + other)) -> e (row other) c"},
    {"mlp.experts.down_proj", NULL, "e i o -> e o i"},
    {"mlp.experts.gate_proj.bias", "mlp.experts.gate_up_proj_bias", "e (row (one + other)) -> e (row one)"},
    {"mlp.experts.up_proj.bias", "mlp.experts.gate_up_proj_bias", "e (row (one + other)) -> e (row other)"},
    {"mlp.experts.down_proj.bias", "mlp.experts.down_proj_bias", NULL},
    END,
};
const struct mlx_row mlx_rows_gemma4[] = {
    {"experts.switch_glu.gate_proj", "experts.gate_up_proj", FIRST_HALF},
    {"experts.switch_glu.up_proj", "experts.gate_up_proj", SECOND_HALF},
    {"experts.switch_glu.down_proj", "experts.down_proj", NULL},
    END,
};
const struct mlx_row mlx_rows_granite_experts[] = {
    {"block_sparse_moe.switch_mlp.gate_proj", "block_sparse_moe.input_linear", FIRST_HALF},
    {"block_sparse_moe.switch_mlp.up_proj", "block_sparse_moe.input_linear", SECOND_HALF},
    {"block_sparse_moe.switch_mlp.down_proj", "block_sparse_moe.output_linear", NULL},
    {"mamba.conv1d", NULL, MLX_CONVOLUTION},
    END,
};
const struct mlx_row mlx_rows_granite_dense[] = {
    {"mlp.gate_proj", "shared_mlp.input_linear", FIRST_HALF},
    {"mlp.up_proj", "shared_mlp.input_linear", SECOND_HALF},
    {"mlp.down_proj", "shared_mlp.output_linear", NULL},
    {"mamba.conv1d", NULL, MLX_CONVOLUTION},
    END,
};
const struct mlx_row mlx_rows_kimi_linear[] = {
    NUMBERED_EXPERTS("mlp", "block_sparse_moe"),
    {"mlp.gate", "block_sparse_moe.gate", NULL},
    {"mlp.e_score_correction_bias", "block_sparse_moe.gate.e_score_correction_bias", NULL},
    {"mlp.shared_experts.gate_proj", "mlp.shared_experts.gate_proj|block_sparse_moe.shared_experts.gate_proj", NULL},
    {"mlp.shared_experts.up_proj", "mlp.shared_experts.up_proj|block_sparse_moe.shared_experts.up_proj", NULL},
    {"mlp.shared_experts.down_proj", "mlp.shared_experts.down_proj|block_sparse_moe.shared_experts.down_proj", NULL},
    {"self_attn.q_conv.conv", "self_attn.q_conv1d", MLX_CONVOLUTION},
    {"self_attn.k_conv.conv", "self_attn.k_conv1d", MLX_CONVOLUTION},
    {"self_attn.v_conv.conv", "self_attn.v_conv1d", MLX_CONVOLUTION},
    {"self_attn.dt_bias", NULL, MLX_FLAT},
    HEADS("self_attn"),
    END,
};
const struct mlx_row mlx_rows_kimi_k3[] = {
    NUMBERED_EXPERTS("mlp", "block_sparse_moe"),
    {"mlp.gate", "block_sparse_moe.gate", NULL},
    {"mlp.e_score_correction_bias", "block_sparse_moe.gate.e_score_correction_bias", NULL},
    {"mlp.routed_expert_down_proj", "block_sparse_moe.routed_expert_down_proj", NULL},
    {"mlp.routed_expert_up_proj", "block_sparse_moe.routed_expert_up_proj", NULL},
    {"mlp.routed_expert_norm", "block_sparse_moe.routed_expert_norm", NULL},
    {"mlp.shared_experts.gate_proj", "block_sparse_moe.shared_experts.gate_proj", NULL},
    {"mlp.shared_experts.up_proj", "block_sparse_moe.shared_experts.up_proj", NULL},
    {"mlp.shared_experts.down_proj", "block_sparse_moe.shared_experts.down_proj", NULL},
    {"self_attn.qkv_proj", "self_attn.q_proj, self_attn.k_proj, self_attn.v_proj", "q c, k c, v c -> (q + k + v) c"},
    {"self_attn.qkv_conv.conv", "self_attn.q_conv1d, self_attn.k_conv1d, self_attn.v_conv1d",
     "q 1 c, k 1 c, v 1 c -> (q + k + v) c 1"},
    {"self_attention_res_proj", "self_attention_res.proj_weight", NULL},
    {"self_attention_res_norm", "self_attention_res.norm_weight", NULL},
    {"mlp_res_proj", "mlp_res.proj_weight", NULL},
    {"mlp_res_norm", "mlp_res.norm_weight", NULL},
    {"model.output_attn_res_proj", "model.output_attn_res.proj_weight", NULL},
    {"model.output_attn_res_norm", "model.output_attn_res.norm_weight", NULL},
    {"self_attn.dt_bias", NULL, MLX_FLAT},
    {"self_attn.A_log", NULL, MLX_FLAT},
    HEADS("self_attn"),
    END,
};
const struct mlx_row mlx_rows_bailing_moe[] = {EXPERTS("mlp"), {"mlp.gate.gate_proj", "mlp.gate", NULL}, END};
const struct mlx_row mlx_rows_bailing_hybrid[] = {
    EXPERTS("mlp"),
    HEADS("attention"),
    {"mlp.gate.gate_proj", "mlp.gate", NULL},
    END,
};
const struct mlx_row mlx_rows_laguna[] = {
    EXPERTS("mlp"),
    {"mlp.gate.proj", "mlp.gate|mlp.gate.proj", NULL},
    {"mlp.gate.e_score_correction_bias", "mlp.experts.e_score_correction_bias|mlp.gate.e_score_correction_bias", NULL},
    END,
};
const struct mlx_row mlx_rows_phixtral[] = {
    {"moe.switch_mlp.fc1", "moe.mlp.{}.fc1", NULL},
    {"moe.switch_mlp.fc2", "moe.mlp.{}.fc2", NULL},
    END,
};
const struct mlx_row mlx_rows_spark2_5[] = {{"model.embedding", "model.embedding|model.embed_tokens", NULL}, END};
const struct mlx_row mlx_rows_olmo_hybrid[] = {
    {"linear_attn.q_conv1d", NULL, MLX_CONVOLUTION},
    {"linear_attn.k_conv1d", NULL, MLX_CONVOLUTION},
    {"linear_attn.v_conv1d", NULL, MLX_CONVOLUTION},
    END,
};
const struct mlx_row mlx_rows_recurrent_gemma[] = {{"temporal_block.conv_1d", NULL, MLX_CONVOLUTION}, END};
const struct mlx_row mlx_rows_bailing_moe_v3[] = {
    EXPERTS("mlp"),
    HEADS("attention"),
    {"attention.q_conv1d", NULL, MLX_CONVOLUTION},
    {"attention.k_conv1d", NULL, MLX_CONVOLUTION},
    {"attention.v_conv1d", NULL, MLX_CONVOLUTION},
    END,
};
const struct mlx_row mlx_rows_step3p5[] = {
    {"mlp.gate.gate", "moe.gate", NULL},
    {"mlp.gate.router_bias", "moe.router_bias", NULL},
    {"mlp.switch_mlp.gate_proj", "moe.gate_proj", NULL},
    {"mlp.switch_mlp.up_proj", "moe.up_proj", NULL},
    {"mlp.switch_mlp.down_proj", "moe.down_proj", NULL},
    {"mlp.share_expert.gate_proj", "share_expert.gate_proj", NULL},
    {"mlp.share_expert.up_proj", "share_expert.up_proj", NULL},
    {"mlp.share_expert.down_proj", "share_expert.down_proj", NULL},
    END,
};
