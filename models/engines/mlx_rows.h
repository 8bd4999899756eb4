/* How the modules of classes of mlx-lm come from tensors of checkpoints: rows that mlx_families.c names. Each list ends
 * with a row without a module.
 *
 * Source: mlx-lm, mlx_lm/models/, sanitize() of each class. */
#pragma once

#include "models/engines/mlx_families.h"

extern const struct mlx_row mlx_rows_experts[], mlx_rows_mixtral[], mlx_rows_latent[], mlx_rows_gpt2[],
    mlx_rows_dots1[], mlx_rows_apertus[], mlx_rows_llama4[], mlx_rows_mixer[], mlx_rows_nemotron_h[],
    mlx_rows_exaone_moe[], mlx_rows_mamba[], mlx_rows_lfm2[], mlx_rows_lfm2_moe[], mlx_rows_minicpm[],
    mlx_rows_qwen3_next[], mlx_rows_qwen3_5[], mlx_rows_qwen3_vl_moe[], mlx_rows_gemma4[], mlx_rows_granite_experts[],
    mlx_rows_granite_dense[], mlx_rows_kimi_linear[], mlx_rows_kimi_k3[], mlx_rows_bailing_moe[],
    mlx_rows_bailing_moe_v3[], mlx_rows_step3p5[], mlx_rows_gpt_oss[], mlx_rows_longcat[], mlx_rows_gptj[],
    mlx_rows_bailing_hybrid[], mlx_rows_laguna[], mlx_rows_phixtral[], mlx_rows_spark2_5[], mlx_rows_olmo_hybrid[],
    mlx_rows_recurrent_gemma[], mlx_rows_gear[], mlx_rows_dbrx[], mlx_rows_rwkv7[];
