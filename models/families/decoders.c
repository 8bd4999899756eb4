/* Families that differ from the decoder of shared.h in a few tensors and keys. */
#include "models/families/shared.h"

/* Baichuan 1 and 2. conversion/baichuan.py, except the names of tensors, where it calls itself without end:
 * wfs writes the names that llama.cpp's loader expects. */

static const struct relation_row baichuan_tensors[] = {
    {"model.layers.{}.self_attn.W_pack", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
     "(query head half pair + key head half pair + value head half pair) c -> "
     "(query head pair half) c, (key head pair half) c, (value head half pair) c",
     "head"},
    {0},
};

const struct family baichuan_family = {
    .name = "baichuan",
    .summary = "Baichuan 1 and 2",
    .hf = FAMILY_NAMES({"BaichuanForCausalLM"}, {"BaiChuanForCausalLM"}),
    .tensors = {baichuan_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
                             {"rope.dimension_count", GGUF_U32, .compute = compute_hidden_per_head})},
    .vocabs = {&spm_vocab},
    .dimensions = {qkv_dimensions},
    .note = "the converter fails on Baichuan; tensors are called as llama.cpp reads them",
};

/* Command-R, Aya. conversion/command_r.py. */

static const struct relation_row command_r_tensors[] = {
    {"lm_head", NULL}, /* the embedding again: the architecture has no output */
    {0},
};

static const struct key_row command_r_keys[] = {
    /* the first is the trained length */
    {"context_length", GGUF_U32, REQUIRED, "model_max_length|max_position_embeddings"},
    {"logit_scale", GGUF_F32, REQUIRED, "logit_scale"},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {0},
};

const struct family command_r_family = {
    .name = "command-r",
    .summary = "Command-R, Aya",
    .hf = FAMILY_NAMES({"CohereForCausalLM"}),
    .tensors = {command_r_tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"CohereForCausalLM", "cohere", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"}))}),
    .keys = {base_keys, command_r_keys},
    .vocabs = {&bpe_vocab},
};

/* dots.llm1. conversion/dots1.py. */

const struct family dots1_family = {
    .name = "dots1",
    .summary = "dots.llm1",
    .hf = FAMILY_NAMES({"Dots1ForCausalLM"}),
    .tensors = {qk_norm_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Dots1ForCausalLM", "dots1", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows)}),
    .keys = {base_keys, moe_keys,
             KEYS({"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
                  {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
                  {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
                  {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"})},
    .vocabs = {&bpe_vocab},
};

/* Orion 14B. conversion/orion.py. config.json's epsilon of an RMS norm is that of a layer norm. */

static const struct key_row orion_keys[] = {
    FILE_TYPE_KEY,
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
    {"context_length", GGUF_U32, REQUIRED, "max_sequence_length|max_position_embeddings|model_max_length"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads|num_attention_heads"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {.emit = note_lost_rope},
    {0},
};

const struct family orion_family = {
    .name = "orion",
    .summary = "Orion",
    .hf = FAMILY_NAMES({"OrionForCausalLM"}),
    .tensors = {decoder_tensors},
    .keys = {orion_keys},
    .vocabs = {&spm_vocab},
};

/* PLM: latent attention, and a feed-forward network without a gate. conversion/plm.py. */

static const struct key_row plm_keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "v_head_dim"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {0},
};

const struct family plm_family = {
    .name = "plm",
    .summary = "PLM",
    .hf = FAMILY_NAMES({"PLMForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
                        {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
                        {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b", "(head (k + v)) ...", "head"}),
                decoder_tensors},
    .keys = {base_keys, plm_keys},
    .vocabs = {&bpe_vocab},
};

/* ruGPT-3 XL: GPT-2 with Llama's names and separate queries, keys and values. conversion/gpt2.py. */

const struct family rugpt3xl_family = {
    .name = "rugpt3xl",
    .architecture = "gpt2",
    .summary = "ruGPT-3 XL",
    .hf = FAMILY_NAMES({"RuGPT3XLForCausalLM"}),
    .tensors =
        {TENSORS(
             {"model.embed_positions", "position_embd"},
             {"model.layers.{}.self_attn.q_proj, model.layers.{}.self_attn.k_proj, model.layers.{}.self_attn.v_proj",
              "blk.{}.attn_qkv", "query ..., key ..., value ... -> (query + key + value) ...", "query key value"}),
         decoder_tensors},
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};

/* Seed-OSS. conversion/seed_oss.py. */

const struct family seed_oss_family = {
    .name = "seed_oss",
    .summary = "Seed-OSS",
    .hf = FAMILY_NAMES({"SeedOssForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"}), decoder_tensors},
    .forms = CONFIG_FORMS({"SeedOssForCausalLM", "seed_oss", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows,
                                         CONFIG_ROWS({"attention_out_bias", FROM_TENSOR, "blk.0.attn_output.bias"}))}),
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
