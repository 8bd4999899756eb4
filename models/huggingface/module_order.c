#include "models/huggingface/shards.h"

#include "base/text_index.h"

#include <stdlib.h>
#include <string.h>

/* Names of modules and parameters in the order in which their parent holds them, for all parents in one list. A
 * module's own parameters come before its submodules. */
/* clang-format off */
static const char *const usual_names[] = {
    /* models */
    "shared", "model", "transformer", "backbone", "gpt_neox", "bert", "roberta", "language_model", "encoder_model",
    /* before the layers */
    "embed_tokens", "embeddings", "embed_in", "wte", "wpe", "word_embeddings", "position_embeddings",
    "token_type_embeddings", "word_embeddings_layernorm", "emb_ln", "layers", "h", "blocks", "block", "encoder",
    "decoder", "layer",
    /* GPT-2, MPT, DBRX, T5 */
    "norm_attn_norm", "ln_1", "norm_1", "attn", "ln_2", "norm_2", "c_attn", "c_fc", "Wqkv", "SelfAttention",
    "EncDecAttention", "DenseReluDense", "wi", "wi_0", "wi_1", "wo", "layer_norm",
    /* attention */
    "sinks", "self_attn", "self_attention", "attention", "self", "query", "key", "value", "q", "k", "v", "o",
    "relative_attention_bias", "q_a_proj", "q_a_layernorm", "q_b_proj", "q_proj", "kv_a_proj_with_mqa",
    "kv_a_layernorm", "kv_b_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "query_key_value", "dense", "LayerNorm",
    "query_layernorm", "key_layernorm", "q_norm", "k_norm", "q_layernorm", "k_layernorm", "norms",
    /* linear attention */
    "linear_attn", "mamba",
    /* feed-forward */
    "intermediate", "feed_forward", "block_sparse_moe", "mlp", "ffn", "moe_statics", "gate", "gate_proj",
    "gate_up_proj",
    "gate_up_proj_bias", "up_proj", "input_linear", "down_proj", "down_proj_bias", "output_linear", "router", "fc1",
    "fc2", "c_proj", "dense_h_to_4h", "dense_4h_to_h", "experts", "w1", "v1", "w2", "w3", "shared_experts",
    "shared_expert", "shared_expert_gate", "output",
    /* norms of a layer */
    "input_layernorm", "pre_ff_layernorm", "ln_attn", "ln_mlp", "post_attention_layernorm", "post_self_attn_layernorm",
    "post_mlp_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm", "shared_mlp",
    /* Gemma 3n */
    "linear_left", "linear_right", "post_laurel_norm", "correct_output_scale", "correction_coefs", "prediction_coefs",
    "modality_router", "router_norm", "altup", "laurel", "per_layer_input_gate", "per_layer_projection",
    "post_per_layer_input_norm",
    /* Mamba */
    "dt_bias", "A_log", "D", "conv1d", "in_proj_qkvz", "in_proj_ba", "in_proj", "norm", "mixer", "x_proj", "dt_proj",
    "out_proj", "dt_layernorm", "b_layernorm", "c_layernorm",
    /* after the layers */
    "embed_tokens_per_layer", "per_layer_model_projection", "per_layer_projection_norm", "altup_projections",
    "altup_unembed_projections",
    "final_layernorm", "final_layer_norm", "ln_f", "norm_f", "pooler", "lm_head", "embed_out", "cls",
    /* parameters */
    "weight", "bias", "e_score_correction_bias", NULL,
};

static const char *const bloom_names[] = {
    "transformer", "word_embeddings", "word_embeddings_layernorm", "h", "input_layernorm", "self_attention",
    "query_key_value", "dense", "post_attention_layernorm", "mlp", "dense_h_to_4h", "dense_4h_to_h", "ln_f", "lm_head",
    "weight", "bias", NULL,
};

static const char *const gptneox_names[] = {
    "gpt_neox", "embed_in", "layers", "input_layernorm", "post_attention_layernorm", "attention", "query_key_value",
    "dense", "mlp", "dense_h_to_4h", "dense_4h_to_h", "final_layer_norm", "embed_out", "weight", "bias", NULL,
};

static const char *const deepseek_names[] = {
    "model", "embed_tokens", "layers", "self_attn", "q_a_proj", "q_a_layernorm", "q_b_proj", "q_proj", "k_proj",
    "v_proj",
    "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj", "q_norm", "k_norm", "mlp", "experts", "gate",
    "gate_proj", "up_proj", "down_proj", "shared_experts",
    "input_layernorm", "post_attention_layernorm", "norm", "lm_head", "weight", "bias", "e_score_correction_bias", NULL,
};

static const char *const hybrid_names[] = {
    "model", "embed_tokens", "layers", "block_sparse_moe", "input_linear", "output_linear", "router", "layer",
    "feed_forward", "gate_proj", "up_proj", "down_proj", "input_layernorm", "post_attention_layernorm",
    "pre_ff_layernorm", "shared_mlp", "mamba", "dt_bias", "A_log", "D", "conv1d", "in_proj", "norm", "out_proj",
    "self_attn", "q_proj", "k_proj", "v_proj", "o_proj", "final_layernorm", "lm_head", "weight", "bias", NULL,
};

static const char *const falcon_h1_names[] = {
    "model", "embed_tokens", "layers", "feed_forward", "gate_proj", "up_proj", "down_proj", "mamba", "dt_bias", "A_log",
    "D", "conv1d", "in_proj", "norm", "out_proj", "self_attn", "q_proj", "k_proj", "v_proj", "o_proj",
    "input_layernorm", "pre_ff_layernorm", "final_layernorm", "lm_head", "weight", "bias", NULL,
};

static const char *const lfm2_names[] = {
    "model", "embed_tokens", "layers", "conv", "in_proj", "self_attn", "q_proj", "k_proj", "v_proj", "out_proj",
    "q_layernorm", "k_layernorm", "feed_forward", "w1", "w3", "w2", "operator_norm", "ffn_norm", "embedding_norm",
    "lm_head", "weight", "bias", NULL,
};

static const char *const llama4_names[] = {
    "model", "embed_tokens", "layers", "self_attn", "q_proj", "k_proj", "v_proj", "o_proj", "feed_forward", "experts",
    "gate_up_proj", "router", "shared_expert", "gate_proj", "up_proj", "down_proj", "input_layernorm",
    "post_attention_layernorm", "norm", "lm_head", "weight", "bias", NULL,
};
/* clang-format on */

static const struct {
    const char *model_type; /* NULL: all others */
    const char *const *names;
} orders[] = {
    {"bloom", bloom_names},          {"gpt_neox", gptneox_names},
    {"deepseek_v2", deepseek_names}, {"deepseek_v3", deepseek_names},
    {"dots1", deepseek_names},       {"glm4_moe", deepseek_names},
    {"bamba", hybrid_names},         {"granitemoehybrid", hybrid_names},
    {"falcon_h1", falcon_h1_names},  {"lfm2", lfm2_names},
    {"llama4_text", llama4_names},   {NULL, usual_names},
};

enum { MAX_PARTS = 12 };

static const uint32_t UNKNOWN = UINT32_MAX;

/* The sort key of a tensor: for each section of its name, its number, or its place among its siblings. */
struct sort_key {
    uint32_t parts[MAX_PARTS];
    uint32_t index;
};

static uint32_t part_rank(const struct text_index *names, const char *part, size_t length)
{
    uint32_t number = 0;
    size_t rank, digits = 0;
    while (digits < length && digits < 9 && part[digits] >= '0' && part[digits] <= '9')
        number = number * 10 + (uint32_t)(part[digits++] - '0');
    if (length > 0 && digits == length)
        return number;
    return text_index_find(names, part, length, &rank) ? (uint32_t)rank : UNKNOWN;
}

static int compare_keys(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    for (size_t i = 0; i < MAX_PARTS; i++)
        if (x->parts[i] != y->parts[i])
            return x->parts[i] < y->parts[i] ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static struct sort_key key_of(const struct text_index *names, const char *name, size_t index)
{
    struct sort_key key = {.index = (uint32_t)index};
    for (size_t i = 0; i < MAX_PARTS; i++) {
        size_t length = strcspn(name, ".");
        key.parts[i] = part_rank(names, name, length);
        if (name[length] == '\0')
            break;
        name += length + 1;
    }
    return key;
}

const size_t *module_order(const struct tensor_set *set, const char *model_type, struct arena *arena)
{
    struct text_index names = {0};
    size_t row = 0;
    while (orders[row].model_type != NULL && (model_type == NULL || strcmp(orders[row].model_type, model_type) != 0))
        row++;
    for (size_t i = 0; orders[row].names[i] != NULL; i++)
        text_index_add(&names, orders[row].names[i], strlen(orders[row].names[i]), i);
    struct sort_key *keys = memory_alloc((set->n_tensors + 1) * sizeof *keys);
    for (size_t i = 0; i < set->n_tensors; i++)
        keys[i] = key_of(&names, set->tensors[i].name, i);
    qsort(keys, set->n_tensors, sizeof *keys, compare_keys);
    size_t *order = arena_array(arena, set->n_tensors, sizeof *order);
    for (size_t i = 0; i < set->n_tensors; i++)
        order[i] = keys[i].index;
    free(keys);
    text_index_free(&names);
    return order;
}
