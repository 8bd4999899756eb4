#include "models/engines/mlx_families.h"

#include "base/text.h"
#include "models/relation/elementwise.h"
#include "quant/views/combine.h"
#include "quant/views/convert.h"

#include <string.h>

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
