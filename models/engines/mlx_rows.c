#include "base/text.h"
#include "models/engines/mlx_families.h"
#include "models/relation/elementwise.h"
#include "quant/views/combine.h"
#include "quant/views/convert.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

/* Calls `fits` for the words of a list. */
static bool any_word(const char *list, const char *word, bool (*fits)(const char *word, size_t length, const char *of))
{
    while (list != NULL && *(list += strspn(list, " ")) != '\0') {
        size_t length = strcspn(list, " ");
        if (fits(list, length, word))
            return true;
        list += length;
    }
    return false;
}

static bool is_equal(const char *word, size_t length, const char *of)
{
    return strlen(of) == length && memcmp(word, of, length) == 0;
}

static bool is_ending(const char *word, size_t length, const char *of)
{
    size_t of_length = strlen(of);
    return of_length >= length && memcmp(word, of + of_length - length, length) == 0;
}

static bool is_within(const char *word, size_t length, const char *of)
{
    return memmem(of, strlen(of), word, length) != NULL;
}

bool mlx_list_has(const char *list, const char *word)
{
    return any_word(list, word, is_equal);
}

bool mlx_list_ends(const char *list, const char *word)
{
    return any_word(list, word, is_ending);
}

bool mlx_list_within(const char *list, const char *word)
{
    return any_word(list, word, is_within);
}

/* A module for a model type, or for one of its classes only. */
struct renamed {
    const char *model_type, *class_name, *module; /* class_name NULL: all classes */
};

#include "models/engines/mlx_modules.inc"

static bool is(const char *text, const char *expected)
{
    return text != NULL && strcmp(text, expected) == 0;
}

const char *mlx_module_of(const char *model_type, const char *class_name)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (is(model_type, renamed[i].model_type) &&
            (renamed[i].class_name == NULL || is(class_name, renamed[i].class_name)))
            return renamed[i].module;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (is(model_type, modules[i]))
            return modules[i];
    return NULL;
}

static const struct view *add_one(struct arena *arena, const struct view *view)
{
    return view_convert(arena, elementwise_apply(arena, &plus_one, NULL, FORWARD, view), view->dtype);
}

const struct view *mlx_norms_plus_one(struct arena *arena, const struct json *config, const char *name,
                                      const struct view *view)
{
    static const char norms[] = ".input_layernorm .post_attention_layernorm model.norm .q_norm .k_norm";
    return mlx_list_ends(norms, name) && view->rank == 1 ? add_one(arena, view) : view;
}

const struct view *mlx_all_norms_plus_one(struct arena *arena, const struct json *config, const char *name,
                                          const struct view *view)
{
    return strstr(name, "norm") != NULL ? add_one(arena, view) : view;
}

static float rounded(const struct dtype *dtype, float value)
{
    uint8_t stored[sizeof(double)];
    dtype_kernels(dtype).encode(&value, stored, 1);
    dtype_kernels(dtype).decode(stored, &value, 1);
    return value;
}

static const struct view *multiply(struct arena *arena, const struct view *view, float factor)
{
    factor = rounded(view->dtype, factor);
    return view_convert(arena, view_combine_number(arena, view, MULTIPLY, factor), view->dtype);
}

static float number(const struct json *value, double otherwise)
{
    json_double(value, &otherwise);
    return (float)otherwise;
}

/* The rows of in_proj are sections, each with a multiplier of its own. */
static const struct view *multiply_sections(struct arena *arena, const struct json *config, const struct view *view)
{
    enum { SECTIONS = 5 };
    static const double usual[SECTIONS] = {0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738};
    const struct json *multipliers = json_get(config, "ssm_multipliers");
    const struct view *parts[SECTIONS];
    uint64_t inner = 0, n_groups = 1, state = 0, n_heads = 0, row = 0;
    json_u64(json_get(config, "mamba_d_ssm"), &inner);
    json_u64(json_get(config, "mamba_n_groups"), &n_groups);
    json_u64(json_get(config, "mamba_d_state"), &state);
    json_u64(json_get(config, "mamba_n_heads"), &n_heads);
    float whole = rounded(view->dtype, number(json_get(config, "ssm_in_multiplier"), 1.25));
    const uint64_t rows[SECTIONS] = {inner, inner, n_groups * state, n_groups * state, n_heads};
    for (size_t i = 0; i < SECTIONS; i++) {
        if (rows[i] == 0 || rows[i] > view->shape[0] - row)
            return NULL;
        float factor = rounded(view->dtype, number(json_at(multipliers, i), usual[i]));
        parts[i] = multiply(arena, view_slice(arena, view, 0, row, rows[i], 1), whole * factor);
        row += rows[i];
    }
    return row == view->shape[0] ? view_concatenate(arena, parts, SECTIONS, 0) : NULL;
}

const struct view *mlx_falcon_h1_multipliers(struct arena *arena, const struct json *config, const char *name,
                                             const struct view *view)
{
    static const struct {
        const char *endings, *key;
        int index; /* in the key's list; -1: it is a number */
        double usual;
    } multipliers[] = {
        {"embed_tokens", "embedding_multiplier", -1, 5.656854249492381},
        {"lm_head", "lm_head_multiplier", -1, 0.0390625},
        {"q_proj k_proj", "attention_in_multiplier", -1, 1},
        {"o_proj", "attention_out_multiplier", -1, 0.9375},
        {"out_proj", "ssm_out_multiplier", -1, 0.23570226039551587},
        {"gate_proj", "mlp_multipliers", 0, 0.8838834764831844},
        {"down_proj", "mlp_multipliers", 1, 0.5859375},
    };
    if (view->rank == 2 && text_ends_with(name, "in_proj"))
        return multiply_sections(arena, config, view);
    for (size_t i = 0; i < sizeof multipliers / sizeof *multipliers; i++)
        if (mlx_list_ends(multipliers[i].endings, name)) {
            const struct json *value = json_get(config, multipliers[i].key);
            if (multipliers[i].index >= 0)
                value = json_at(value, (size_t)multipliers[i].index);
            return multiply(arena, view, number(value, multipliers[i].usual));
        }
    return view;
}
