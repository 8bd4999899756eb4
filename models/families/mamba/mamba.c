/* Mamba and Falcon Mamba. conversion/mamba.py. */
#include "models/families/shared.h"

#include <math.h>
#include <string.h>

static const struct relation_row tensors[] = {
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

static bool compute_inner_size(const struct model_builder *builder, double *ret_value, struct error *error)
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

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = 1 << 20}, /* no limit */
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|d_model"},
    {"feed_forward_length", GGUF_U32, ALWAYS, .value = 0},
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"ssm.conv_kernel", GGUF_U32, ALWAYS, .value = 4},
    {"ssm.conv_kernel", GGUF_U32, IF_TRUE, "conv_kernel|d_conv"},
    {"ssm.inner_size", GGUF_U32, .compute = compute_inner_size},
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
static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { MOST = 1 << 24 };
    uint64_t n_tokens, multiple = 8;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, MOST, &n_tokens, error) ||
        (hparams_get(builder->model->hparams, "pad_vocab_size_multiple") != NULL &&
         !hparams_count(builder->model->hparams, "pad_vocab_size_multiple", 1, MOST, &multiple, error)))
        return false;
    n_tokens = (n_tokens + multiple - 1) / multiple * multiple;
    return hparams_override(builder->model->hparams, "vocab_size", n_tokens, error);
}

static const struct config_row config_rows[] = {
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
    .tensors = {tensors},
    .forms = CONFIG_FORMS(
        {"FalconMambaForCausalLM", "falcon_mamba", "key:ssm.dt_b_c_rms=1", CONFIG_TABLES(silu_rows, config_rows)},
        {"MambaForCausalLM", "mamba", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab, &spm_vocab},
    .adjust = compare_output,
    .before_vocab = pad_vocabulary,
};
