/* Jais 1 and 2. conversion/jais.py. The linear layers of Jais 1 are stored transposed (Conv1D); a GGUF's weights
 * include the factors of the embedding and of the output. */
#include "models/families/shared.h"
#include "quant/views/convert.h"

#include <math.h>

static const struct view *scale_embedding(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const struct view *view)
{
    static const char *const factors[] = {"embeddings_scale"};
    return elementwise_multiply(arena, dimensions, direction, view, factors, 1);
}

static const struct view *scale_output(struct arena *arena, const struct dimensions *dimensions,
                                       enum direction direction, const struct view *view)
{
    static const char *const factors[] = {"width_scale"};
    return elementwise_multiply(arena, dimensions, direction, view, factors, 1);
}

static const struct elementwise times_embeddings_scale = {
    .forward_text = "x * embeddings_scale",
    .backward_text = "x / embeddings_scale",
    .apply = scale_embedding,
    .exactness = "one unit in the last place",
};

static const struct elementwise times_width_scale = {
    .forward_text = "x * width_scale",
    .backward_text = "x / width_scale",
    .apply = scale_output,
    .exactness = "one unit in the last place",
};

#define LAYER "transformer.h.{}."

static const struct relation_row tensors[] = {
    {"transformer.wte", "token_embd", .parallel = "row", .map = &times_embeddings_scale},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row", .map = &times_width_scale},
    {"transformer.relative_pe.slopes", NULL}, /* max_alibi_bias has the same */
    {LAYER "attn.bias", NULL},
    {LAYER "ln_1", "blk.{}.attn_norm"},
    {LAYER "attn.c_attn.weight", "blk.{}.attn_qkv.weight", "i (part head d) -> (part head d) i", "head"},
    {LAYER "attn.c_attn.bias", "blk.{}.attn_qkv.bias", "(part head d) -> (part head d)", "head"},
    {LAYER "attn.c_proj.weight", "blk.{}.attn_output.weight", "i o -> o i", "i"},
    {LAYER "attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {LAYER "ln_2", "blk.{}.ffn_norm"},
    {LAYER "mlp.c_fc.weight", "blk.{}.ffn_up.weight", "i o -> o i", "o"},
    {LAYER "mlp.c_fc.bias", "blk.{}.ffn_up.bias", .parallel = "row"},
    {LAYER "mlp.c_fc2.weight", "blk.{}.ffn_gate.weight", "i o -> o i", "o"},
    {LAYER "mlp.c_fc2.bias", "blk.{}.ffn_gate.bias", .parallel = "row"},
    {LAYER "mlp.c_proj.weight", "blk.{}.ffn_down.weight", "i o -> o i", "i"},
    {LAYER "mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {0},
};

static const struct key_row keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_inner"},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

/* Sets max_alibi_bias from the slope of the first head, the only weight that a key depends on. */
static bool add_alibi_bias(struct model_builder *builder, struct error *error)
{
    static const char slopes[] = "transformer.relative_pe.slopes";
    struct gguf_model *model = builder->model;
    const struct tensor *tensor = tensor_set_find_text(model->checkpoint->tensors, slopes);
    uint64_t closest = 1, n_heads = dimensions_get(&builder->dimensions, "head");
    double bias = 8;
    float first;
    while (closest * 2 <= n_heads)
        closest *= 2;
    if (tensor != NULL) {
        const struct view *view = tensor_view(tensor, model->arena);
        if (view == NULL || view->n_elements == 0 || !convert_values(view, 0, 1, &first, error))
            return error_set(error, "tensor '%s': it has no numbers to read", slopes);
        bias = -nearbyint(log2((double)first) * (double)closest);
        if (!isfinite(bias))
            return error_set(error, "tensor '%s': the first slope is %.9g, which has no logarithm", slopes,
                             (double)first);
    }
    gguf_set_f32(&model->kvs, builder_key(builder, "attention.max_alibi_bias"), bias);
    return true;
}

/* Finds the class's multipliers, under the names of either release. */
static bool find_scales(struct model_builder *builder, struct error *error)
{
    double embeddings, alpha, width;
    const struct hparams *hparams = builder->model->hparams;
    if (!json_string_is(hparams_get(hparams, "activation_function"), "swiglu") ||
        !json_string_is(hparams_get(hparams, "position_embedding_type"), "alibi"))
        return error_set(error, "config.json: activation_function is not swiglu, or position_embedding_type not alibi");
    if (!builder_number(builder, "mup_embeddings_scale|embeddings_scale", NAN, &embeddings, error) ||
        !builder_number(builder, "mup_output_alpha", NAN, &alpha, error) ||
        !builder_number(builder, isnan(alpha) ? "width_scale" : "mup_width_scale", NAN, &width, error))
        return false;
    if (isnan(embeddings) || isnan(width))
        return error_set(error, "config.json: %s is missing", isnan(width) ? "width_scale" : "embeddings_scale");
    dimensions_set_factor(&builder->dimensions, "embeddings_scale", (float)embeddings);
    dimensions_set_factor(&builder->dimensions, "width_scale", (float)(isnan(alpha) ? width : alpha * width));
    return true;
}

const struct family jais_family = {
    .name = "jais",
    .summary = "Jais 1",
    .hf = FAMILY_NAMES({"JAISLMHeadModel"}),
    .tensors = {tensors},
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .adjust = find_scales,
    .add_extras = add_alibi_bias,
};

const struct family jais2_family = {
    .name = "jais2",
    .summary = "Jais 2",
    .hf = FAMILY_NAMES({"Jais2ForCausalLM"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_head_dim})},
    .vocabs = {&bpe_vocab},
};
