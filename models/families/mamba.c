/* Mamba 1 and 2, and Jamba. */
#include "base/text.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/families/shared.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Mamba and Falcon Mamba. conversion/mamba.py. */

static const struct relation_row mamba_tensors[] = {
    {"backbone.embeddings", "token_embd", .parallel = "row"},
    {"backbone.embedding", "token_embd", .parallel = "row", .forward_only = true}, /* older than transformers' class */
    {"backbone.norm_f", "output_norm"},
    {"lm_head.weight", NULL, .when = "output_is_embedding"},
    {"lm_head", "output", .parallel = "row"},
    {"backbone.layers.{}.norm", "blk.{}.attn_norm"},
    {"backbone.layers.{}.mixer.in_proj", "blk.{}.ssm_in", "(half row) ...", "row"},
    {"backbone.layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight", "c 1 k -> c k", "c"},
    {"backbone.layers.{}.mixer.conv1d.bias", "blk.{}.ssm_conv1d.bias", .parallel = "row"},
    {"backbone.layers.{}.mixer.x_proj", "blk.{}.ssm_x", .parallel = "column"},
    {"backbone.layers.{}.mixer.dt_proj", "blk.{}.ssm_dt", .parallel = "row"},
    {"backbone.layers.{}.mixer.A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {"backbone.layers.{}.mixer.D", "blk.{}.ssm_d", .parallel = "row"},
    {"backbone.layers.{}.mixer.out_proj", "blk.{}.ssm_out", .parallel = "column"},
    {0},
};

static bool model_width(const struct model_builder *builder, double *ret_width, struct error *error)
{
    if (!builder_number(builder, "hidden_size|d_model", 0, ret_width, error))
        return false;
    return *ret_width > 0 || error_set(error, "config.json: hidden_size|d_model is missing");
}

/* Gets a number that means "compute it" if it is 0 or absent. */
static bool number_or(const struct model_builder *builder, const char *from, double otherwise, double *ret_value,
                      struct error *error)
{
    if (!builder_number(builder, from, 0, ret_value, error))
        return false;
    if (*ret_value == 0)
        *ret_value = otherwise;
    return true;
}

static bool mamba_compute_inner_size(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width;
    if (!model_width(builder, &width, error) ||
        !number_or(builder, "intermediate_size|d_inner", 2 * width, ret_value, error))
        return false;
    return *ret_value == 2 * width ||
           error_set(error, "config.json: the inner size is %g, not twice the width %g", *ret_value, width);
}

static bool compute_time_step_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width;
    return model_width(builder, &width, error) &&
           number_or(builder, "time_step_rank|dt_rank", ceil(width / 16), ret_value, error);
}

static bool compute_dt_norm(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = json_string_is(hparams_get(builder->model->hparams, "model_type"), "falcon_mamba");
    return true;
}

static const struct key_row mamba_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = 1 << 20}, /* no limit */
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|d_model"},
    {"feed_forward_length", GGUF_U32, ALWAYS, .value = 0},
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"ssm.conv_kernel", GGUF_U32, ALWAYS, .value = 4},
    {"ssm.conv_kernel", GGUF_U32, IF_TRUE, "conv_kernel|d_conv"},
    {"ssm.inner_size", GGUF_U32, .compute = mamba_compute_inner_size},
    {"ssm.state_size", GGUF_U32, ALWAYS, .value = 16},
    {"ssm.state_size", GGUF_U32, IF_TRUE, "state_size|d_state"},
    {"ssm.time_step_rank", GGUF_U32, .compute = compute_time_step_rank},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, IF_TRUE, "layer_norm_epsilon|rms_norm_eps"},
    {"ssm.dt_b_c_rms", GGUF_BOOL, .compute = compute_dt_norm},
    FILE_TYPE_KEY,
    {0},
};

/* Reports whether two tensors hold the same bytes; reads up to the first piece that differs. */
static bool compare_values(const struct tensor *a, const struct tensor *b, bool *ret_same, struct error *error)
{
    enum { PIECE_BYTES = 1 << 20 };
    *ret_same = false;
    if (a->refusal != NULL || b->refusal != NULL || a->dtype != b->dtype || tensor_elements(a) != tensor_elements(b))
        return true;
    struct arena *arena = arena_new();
    const struct view *x = tensor_view(a, arena), *y = tensor_view(b, arena);
    unsigned char *pieces = arena_alloc(arena, 2 * PIECE_BYTES);
    uint64_t unit = x->dtype->block_bytes, n_units = view_units(x), most = PIECE_BYTES / unit;
    bool read = true;
    *ret_same = true;
    for (uint64_t first = 0; first < n_units && read && *ret_same; first += most) {
        uint64_t n = n_units - first < most ? n_units - first : most;
        read = view_read(x, first, n, pieces, error) && view_read(y, first, n, pieces + PIECE_BYTES, error);
        *ret_same = read && memcmp(pieces, pieces + PIECE_BYTES, n * unit) == 0;
    }
    arena_free(arena);
    return read;
}

/* Leaves out an output that equals the embedding, which reading the values decides. */
static bool compare_output(struct model_builder *builder, struct error *error)
{
    static const char *const embeddings[] = {"backbone.embeddings.weight", "backbone.embedding.weight"};
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    const struct tensor *output = tensor_set_find_text(set, "lm_head.weight");
    for (size_t i = 0; i < sizeof embeddings / sizeof *embeddings; i++) {
        const struct tensor *embedding = tensor_set_find_text(set, embeddings[i]);
        bool same = false;
        if (embedding != NULL && output != NULL && !compare_values(embedding, output, &same, error))
            return false;
        if (same)
            dimensions_set(&builder->dimensions, "output_is_embedding", 1);
    }
    return true;
}

/* Pads the list of tokens to the length of the embedding. */
static bool mamba_pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { MAMBA_MOST = 1 << 24 };
    uint64_t n_tokens, multiple = 8;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, MAMBA_MOST, &n_tokens, error) ||
        (hparams_get(builder->model->hparams, "pad_vocab_size_multiple") != NULL &&
         !hparams_count(builder->model->hparams, "pad_vocab_size_multiple", 1, MAMBA_MOST, &multiple, error)))
        return false;
    n_tokens = (n_tokens + multiple - 1) / multiple * multiple;
    return hparams_override(builder->model->hparams, "vocab_size", n_tokens, error);
}

static const struct config_row mamba_config_rows[] = {
    {"state_size", FROM_KEY, "ssm.state_size"},
    {"conv_kernel", FROM_KEY, "ssm.conv_kernel"},
    {"intermediate_size", FROM_KEY, "ssm.inner_size"},
    {"expand", FROM_QUOTIENT, "ssm.inner_size", "embedding_length"},
    {"time_step_rank", FROM_KEY, "ssm.time_step_rank"},
    {"layer_norm_epsilon", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {"use_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"use_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {0},
};

const struct family mamba_family = {
    .name = "mamba",
    .summary = "Mamba, Falcon Mamba",
    .hf = FAMILY_NAMES({"MambaForCausalLM"}, {"MambaLMHeadModel"}, {"FalconMambaForCausalLM"}),
    .tensors = {mamba_tensors},
    .forms = CONFIG_FORMS(
        {"FalconMambaForCausalLM", "falcon_mamba", "key:ssm.dt_b_c_rms=1", CONFIG_TABLES(silu_rows, mamba_config_rows)},
        {"MambaForCausalLM", "mamba", NULL, CONFIG_TABLES(silu_rows, mamba_config_rows)}),
    .keys = {mamba_keys},
    .vocabs = {&bpe_vocab, &spm_vocab},
    .adjust = compare_output,
    .before_vocab = mamba_pad_vocabulary,
};

/* Mamba 2, Codestral Mamba. conversion/mamba.py. */

static const struct relation_row mamba2_tensors[] = {
    {"backbone.embeddings", "token_embd", .parallel = "row"},
    {"backbone.embedding", "token_embd", .parallel = "row", .forward_only = true},
    {"backbone.norm_f", "output_norm"},
    {"backbone.layers.{}.norm", "blk.{}.attn_norm"},
    {"lm_head", "output", .parallel = "row"},
    {0},
};

/* 0 means the same as no number. */
static bool mamba2_compute_inner_size(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width, expand;
    if (!builder_number(builder, "hidden_size|d_model", 0, &width, error) ||
        !builder_number(builder, "mamba_expand|expand", 0, &expand, error) ||
        !builder_number(builder, "mamba_d_ssm|intermediate_size|d_inner", 0, ret_value, error))
        return false;
    if (*ret_value == 0)
        *ret_value = width * (expand != 0 ? expand : 2);
    return width > 0 || error_set(error, "config.json: hidden_size|d_model is missing");
}

static bool compute_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double inner, head_dim;
    if (!mamba2_compute_inner_size(builder, &inner, error) ||
        !builder_number(builder, "mamba_d_head|head_dim", 64, &head_dim, error))
        return false;
    if (!(head_dim >= 1))
        return error_set(error, "config.json: head_dim is %g, below 1", head_dim);
    *ret_value = (double)(uint64_t)(inner / head_dim);
    return true;
}

static const struct key_row mamba2_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = MAMBA2_CONTEXT},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|d_model|dim"},
    {"feed_forward_length", GGUF_U32, ALWAYS, .value = 0},
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "conv_kernel|d_conv", 4},
    {"ssm.inner_size", GGUF_U32, .compute = mamba2_compute_inner_size},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "state_size|d_state", 128},
    {"ssm.time_step_rank", GGUF_U32, .compute = compute_heads},
    {"ssm.group_count", GGUF_U32, OR_DEFAULT, "n_groups", 1},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_epsilon|rms_norm_eps", 1e-5},
    FILE_TYPE_KEY,
    {0},
};

static bool mamba2_pad_tokens(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { MAMBA2_MOST = 1 << 16 };
    uint64_t multiple = 16;
    if (hparams_get(builder->model->hparams, "pad_vocab_size_multiple") != NULL &&
        !hparams_count(builder->model->hparams, "pad_vocab_size_multiple", 1, MAMBA2_MOST, &multiple, error))
        return false;
    return mamba2_pad_vocabulary(builder, multiple, error);
}

static const struct config_row mamba2_config_rows[] = {
    {"num_hidden_layers", FROM_KEY, "block_count"},
    {"num_heads", FROM_KEY, "ssm.time_step_rank"},
    {"head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"expand", FROM_QUOTIENT, "ssm.inner_size", "embedding_length"},
    {"use_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {"use_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"state_size", FROM_KEY, "ssm.state_size"},
    {"n_groups", FROM_KEY, "ssm.group_count"},
    {"conv_kernel", FROM_KEY, "ssm.conv_kernel"},
    {"layer_norm_epsilon", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {0},
};

const struct family mamba2_family = {
    .name = "mamba2",
    .summary = "Mamba 2, Codestral Mamba",
    .hf = FAMILY_NAMES({"Mamba2ForCausalLM"}),
    .tensors = {mamba2_tensors, mamba2_backbone_tensors},
    .forms = CONFIG_FORMS({"Mamba2ForCausalLM", "mamba2", NULL, CONFIG_TABLES(mamba2_config_rows)}),
    .keys = {mamba2_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .dimensions = {DIMENSIONS({"state_group", "n_groups", 1}, {"state", "state_size|d_state"},
                              {"mamba_head", "num_heads"})},
    .before_vocab = mamba2_pad_tokens,
};

/* Jamba: layers of Mamba and of attention, some with experts. conversion/jamba.py. */

static const struct relation_row jamba_tensors[] = {
    {"model.final_layernorm", "output_norm"},
    {"model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.mamba.in_proj", "blk.{}.ssm_in", "(half row) ...", "row"},
    {"model.layers.{}.mamba.conv1d.weight", "blk.{}.ssm_conv1d.weight", "c 1 k -> c k", "c"},
    {"model.layers.{}.mamba.conv1d.bias", "blk.{}.ssm_conv1d.bias", .parallel = "row"},
    {"model.layers.{}.mamba.x_proj", "blk.{}.ssm_x", .parallel = "column"},
    {"model.layers.{}.mamba.dt_proj", "blk.{}.ssm_dt", .parallel = "row"},
    {"model.layers.{}.mamba.A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {"model.layers.{}.mamba.D", "blk.{}.ssm_d", .parallel = "row"},
    {"model.layers.{}.mamba.out_proj", "blk.{}.ssm_out", .parallel = "column"},
    {"model.layers.{}.mamba.b_layernorm", "blk.{}.ssm_b_norm"},
    {"model.layers.{}.mamba.c_layernorm", "blk.{}.ssm_c_norm"},
    {"model.layers.{}.mamba.dt_layernorm", "blk.{}.ssm_dt_norm"},
    {"model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.feed_forward.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.feed_forward.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.feed_forward.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {0},
};

/* Sets the key heads of the layers with attention, one in each period. */
static bool emit_kv_heads(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    uint64_t period, offset;
    const struct hparams *hparams = builder->model->hparams;
    if (!layers_new(builder, &layers, error) ||
        !hparams_count(hparams, "attn_layer_period", 1, UINT32_MAX, &period, error) ||
        !hparams_count(hparams, "attn_layer_offset", 0, UINT32_MAX, &offset, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = i % period == offset;
    return layers_set_kv_heads(builder, &layers, error);
}

/* Computes the rank: without a number, or with "auto", a sixteenth of the width, rounded up. */
static bool compute_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width;
    uint64_t rank;
    if (json_u64(hparams_get(builder->model->hparams, "mamba_dt_rank"), &rank) && rank > 0) {
        *ret_value = (double)rank;
        return true;
    }
    if (!builder_number(builder, "hidden_size|mamba_d_model", 0, &width, error))
        return false;
    *ret_value = ceil(width / 16);
    return true;
}

static const struct key_row jamba_keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings|n_ctx"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|mamba_d_model"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {.emit = emit_kv_heads},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "mamba_d_conv", 4},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "hidden_size|mamba_d_model", .by = "mamba_expand", .otherwise = 2},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "mamba_d_state", 16},
    {"ssm.time_step_rank", GGUF_U32, .compute = compute_rank},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_epsilon|rms_norm_eps", 1e-6},
    {"expert_count", GGUF_U32, REQUIRED, "num_local_experts|num_experts"},
    {"expert_used_count", GGUF_U32, REQUIRED, "num_experts_per_tok|num_experts_per_token"},
    FILE_TYPE_KEY,
    {0},
};

/* Finds the layer in a name and returns the rest of the name; NULL: the name has no layer. */
static const char *after_layer(const char *name, uint64_t *ret_layer)
{
    static const char layer[] = "model.layers.";
    uint64_t numbers[PATTERN_NUMBERS];
    if (!text_starts_with(name, layer))
        return NULL;
    const char *number = name + sizeof layer - 1;
    size_t digits = strspn(number, "0123456789");
    if (number[digits] != '.' || !pattern_match("{}", number, digits, numbers))
        return NULL;
    *ret_layer = numbers[0];
    return number + digits + 1;
}

/* Renames Mini-Jamba's "moe."; drops "experts.0." in layers without experts, where some checkpoints have it. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char mini[] = "moe.", expert[] = "experts.0.", own[] = "feed_forward.";
    uint64_t layer, period = dimensions_get(dimensions, "expert_period"),
                    offset = dimensions_get(dimensions, "expert_offset");
    const char *rest = direction == FORWARD ? after_layer(name, &layer) : NULL;
    bool is_mini = rest != NULL && text_starts_with(rest, mini);
    if (rest == NULL || (!is_mini && !text_starts_with(rest, own)))
        return name;
    rest += is_mini ? sizeof mini - 1 : sizeof own - 1;
    bool is_alone = period != 0 && text_starts_with(rest, expert) && (layer < offset || (layer - offset) % period != 0);
    return arena_printf(arena, "model.layers.%" PRIu64 ".%s%s", layer, own, is_alone ? rest + sizeof expert - 1 : rest);
}

/* The kernels need a GPU; the class works anywhere without them. */
static const struct config_row jamba_config_rows[] = {
    {"use_mamba_kernels", FROM_TEXT, .text = "false"},
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"attn_layer_period", FROM_PERIOD, "attention.head_count_kv"},
    {"attn_layer_offset", FROM_OFFSET, "attention.head_count_kv"},
    {"expert_layer_period", FROM_PERIOD, "blk.{}.ffn_gate_inp.weight"},
    {"expert_layer_offset", FROM_OFFSET, "blk.{}.ffn_gate_inp.weight"},
    {"mamba_expand", FROM_QUOTIENT, "ssm.inner_size", "embedding_length"},
    {"mamba_dt_rank", FROM_KEY, "ssm.time_step_rank"},
    {"mamba_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"mamba_proj_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {0},
};

const struct family jamba_family = {
    .name = "jamba",
    .summary = "Jamba",
    .hf = FAMILY_NAMES({"JambaForCausalLM"}),
    .tensors = {jamba_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"JambaForCausalLM", "jamba", NULL, CONFIG_TABLES(silu_rows, jamba_config_rows)}),
    .keys = {jamba_keys},
    .vocabs = {&spm_vocab, &jamba_hf_vocab},
    .dimensions = {DIMENSIONS({"expert_period", "expert_layer_period"}, {"expert_offset", "expert_layer_offset"})},
    .rename = rename_tensor,
};
