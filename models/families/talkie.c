/* Talkie: heads that turn in the opposite direction, and gains instead of norms. conversion/talkie.py. */
#include "base/text.h"
#include "models/families/shared.h"
#include "quant/views/convert.h"

#include <float.h>

static const struct elementwise opposite_rope;

#define BLOCK "model.blocks.{}."

static const struct relation_row tensors[] = {
    {"model.embed", "token_embd", .parallel = "row"},
    {"lm_head.weight", "output.weight", .parallel = "row"},
    {BLOCK "attn.attn_query", "blk.{}.attn_q", "(head d) ...", "head", &opposite_rope},
    {BLOCK "attn.attn_key", "blk.{}.attn_k", "(kv_head d) ...", "kv_head", &opposite_rope},
    {BLOCK "attn.attn_value", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {BLOCK "attn.attn_resid", "blk.{}.attn_output", .parallel = "column"},
    {BLOCK "attn.head_gain.head_g", "blk.{}.attn_q_norm.weight", "h -> h 1"},
    {BLOCK "attn_gain.a_g", "blk.{}.attn_output.scale"},
    {BLOCK "mlp.mlp_gate", "blk.{}.ffn_gate", .parallel = "row"},
    {BLOCK "mlp.mlp_linear", "blk.{}.ffn_up", .parallel = "row"},
    {BLOCK "mlp.mlp_resid", "blk.{}.ffn_down", .parallel = "column"},
    {BLOCK "mlp_gain.a_g", "blk.{}.ffn_down.scale"},
    {BLOCK "embed_skip.a_g", "blk.{}.layer_output_scale.weight"},
    {"lm_head_gain.w_g", NULL},
    {0},
};

static void negate(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = -values[i];
}

/* Negates the second half of each head, which is its own inverse. */
static const struct view *turn(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                               const struct view *view)
{
    uint64_t d = dimensions != NULL ? dimensions_get(dimensions, "d") : 0;
    if (d < 2 || view->rank != 2 || view->shape[0] % d != 0)
        return view;
    const struct dtype *dtype = view->dtype == &f16_dtype ? &f16_dtype : &f32_dtype;
    const uint64_t shape[] = {view->shape[0] / d, d, view->shape[1]};
    const struct view *heads = view_reshape(arena, view_convert(arena, view, dtype), 3, shape);
    const struct view *halves[] = {view_slice(arena, heads, 1, 0, d / 2, 1),
                                   view_slice(arena, heads, 1, d / 2, d - d / 2, 1)};
    halves[1] = view_map(arena, halves[1], dtype, negate);
    return view_reshape(arena, view_concatenate(arena, halves, 2, 1), 2, view->shape);
}

static const struct elementwise opposite_rope = {
    .forward_text = "the second half of each head negated",
    .backward_text = "the same",
    .apply = turn,
    .exactness = "exact",
};

static bool check_head_dim(struct model_builder *builder, struct error *error)
{
    return dimensions_get(&builder->dimensions, "d") != 0 ||
           error_set(error, "config.json: head_dim is missing, or not a size");
}

/* Adds the suffix to parameters outside of modules, whose names have none. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    bool is_bare = direction == FORWARD && (text_ends_with(name, "lm_head") || text_ends_with(name, ".embed"));
    return is_bare ? arena_printf(arena, "%s.weight", name) : name;
}

/* Sets a key to the gain of the output. */
static bool add_gain(struct model_builder *builder, struct error *error)
{
    static const char name[] = "lm_head_gain.w_g";
    struct arena *arena = builder->model->arena;
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, name);
    float gain;
    if (tensor == NULL)
        return true;
    if (tensor->refusal != NULL || dtype_kernels(tensor->dtype).decode == NULL || tensor_elements(tensor) != 1)
        return error_set(error, "tensor '%s' is not one number", name);
    if (!convert_values(tensor_view(tensor, arena), 0, 1, &gain, error))
        return false;
    gguf_set_f32(&builder->model->kvs, builder_key(builder, "logit_scale"), gain);
    return true;
}

const struct family talkie_family = {
    .name = "talkie",
    .summary = "Talkie",
    .hf = FAMILY_NAMES({"TalkieForCausalLM"}),
    .tensors = {tensors},
    .keys = {base_keys, KEYS({"attention.layer_norm_rms_epsilon", GGUF_F32, ALWAYS, .value = FLT_EPSILON})},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"d", "head_dim", .kept = true})},
    .adjust = check_head_dim,
    .add_extras = add_gain,
    .rename = rename_tensor,
};
