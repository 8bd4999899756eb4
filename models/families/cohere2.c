/* Cohere's second generation: Command A, Command R7B, and models with experts. conversion/command_r.py. */
#include "base/text.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "quant/views/convert.h"

#include <string.h>

static const struct relation_row tensors[] = {
    {"lm_head", NULL}, /* the embedding again: the architecture has no output */
    {0},
};

static const struct key_row keys[] = {
    {"logit_scale", GGUF_F32, REQUIRED, "logit_scale"},
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_head},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {0},
};

/* Computes the first layer that is not dense. */
static bool compute_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "mlp_layer_types");
    const struct json *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL;
    if (type == NULL)
        return builder_number(builder, "first_k_dense_replace", 0, ret_value, error);
    for (*ret_value = 0; type != NULL && json_string_is(type, "dense"); type = json_next(type))
        ++*ret_value;
    return true;
}

static bool emit_shared(struct model_builder *builder, struct error *error)
{
    uint64_t n_shared = 0, width;
    const struct hparams *hparams = builder->model->hparams;
    if (!json_u64(hparams_get(hparams, "num_shared_experts"), &n_shared) || n_shared == 0)
        return true;
    if (!hparams_count(hparams, "num_shared_experts", 1, UINT16_MAX, &n_shared, error) ||
        !hparams_count(hparams, "intermediate_size", 0, UINT16_MAX, &width, error))
        return false;
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_shared_count"), (uint32_t)n_shared);
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_shared_feed_forward_length"),
                 (uint32_t)(n_shared * width));
    return true;
}

static const struct key_row moe_layer_keys[] = {
    {"logit_scale", GGUF_F32, REQUIRED, "logit_scale"},
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
    {.emit = emit_listed_windows},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"leading_dense_block_count", GGUF_U32, .compute = compute_dense_layers},
    {"expert_weights_norm", GGUF_BOOL, OR_DEFAULT, "norm_topk_prob", 0},
    {.emit = emit_shared},
    {.emit = nextn_emit},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "head_dim"},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {0},
};

/* Reports whether a tensor is all 0. */
static bool is_zero(struct arena *arena, const struct tensor *tensor, bool *ret_zero, struct error *error)
{
    enum { PIECE = 4096, MOST = 1 << 20 };
    float values[PIECE];
    if (tensor->refusal != NULL || dtype_kernels(tensor->dtype).decode == NULL || tensor_elements(tensor) > MOST)
        return error_set(error, "tensor '%.200s' is not a bias that can be read", tensor->name);
    const struct view *view = tensor_view(tensor, arena);
    *ret_zero = true;
    for (uint64_t at = 0; at < view->n_elements && *ret_zero; at += PIECE) {
        uint64_t n = view->n_elements - at < PIECE ? view->n_elements - at : PIECE;
        if (!convert_values(view, at, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++)
            *ret_zero &= values[i] == 0;
    }
    return true;
}

/* Reports whether a bias belongs to the vision encoder or the projector of Command A Vision. */
static bool is_of_vision(const struct model_builder *builder, const char *bias)
{
    struct arena *arena = builder->model->arena;
    int length = (int)(strlen(bias) - strlen(".bias"));
    const char *weight = arena_printf(arena, "%.*s.weight", length, bias);
    return family_tensor_name(builder->family, builder->hf, &builder->dimensions, weight, arena) == NULL;
}

/* Checks that all biases hold zeros: the architecture has none, and they are left out. */
static bool check_biases(struct model_builder *builder, struct error *error)
{
    const struct checkpoint *checkpoint = builder->model->checkpoint;
    size_t n_biases = 0;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        bool zero;
        if (!text_ends_with(tensor->name, ".bias") || is_of_vision(builder, tensor->name))
            continue;
        if (!is_zero(builder->model->arena, tensor, &zero, error))
            return false;
        if (!zero)
            return error_set(error, "tensor '%.200s' is not 0, and Cohere 2 has no biases", tensor->name);
        n_biases++;
    }
    if (n_biases > 0)
        checkpoint_note(checkpoint, SUBJECT_GGUF, "%zu biases that are 0 are left out; the converter fails on them",
                        n_biases);
    return true;
}

static const char *drop_bias(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                             const char *name)
{
    return direction == FORWARD && text_ends_with(name, ".bias") ? NULL : name;
}

const struct family cohere2_family = {
    .name = "cohere2",
    .summary = "Command A, Command R7B",
    .hf = FAMILY_NAMES({"Cohere2ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Cohere2ForCausalLM", "cohere2", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"rotary_pct", FROM_HEAD_SHARE, "rope.dimension_count"}))}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .adjust = check_biases,
    .rename = drop_bias,
};

static const struct config_row config_moe_rows[] = {
    {"head_dim", FROM_KEY, "attention.key_length"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"prefix_dense_intermediate_size", FROM_KEY, "feed_forward_length"},
    {"num_shared_experts", FROM_KEY, "expert_shared_count", .text = "0"},
    {"expert_selection_fn", .make = config_gating_function, .text = "'softmax'"},
    {0},
};

const struct family cohere2moe_family = {
    .name = "cohere2moe",
    .summary = "Cohere 2 MoE",
    .hf = FAMILY_NAMES({"Cohere2MoeForCausalLM"}),
    .tensors = {nextn_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Cohere2MoeForCausalLM", "cohere2_moe", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, num_experts_rows, config_moe_rows)}),
    .keys = {base_keys, moe_layer_keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};
