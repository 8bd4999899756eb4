/* Mamba 2, Codestral Mamba. conversion/mamba.py. */
#include "models/families/linear_attention.h"

static const struct relation_row tensors[] = {
    {"backbone.embeddings", "token_embd", .parallel = "row"},
    {"backbone.embedding", "token_embd", .parallel = "row", .forward_only = true},
    {"backbone.norm_f", "output_norm"},
    {"backbone.layers.{}.norm", "blk.{}.attn_norm"},
    {"lm_head", "output", .parallel = "row"},
    {0},
};

static bool compute_inner_size(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width, expand;
    if (!builder_number(builder, "hidden_size|d_model", 0, &width, error) ||
        !builder_number(builder, "expand", 2, &expand, error) ||
        !builder_number(builder, "intermediate_size|d_inner", width * expand, ret_value, error))
        return false;
    return width > 0 || error_set(error, "config.json: hidden_size|d_model is missing");
}

static bool compute_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double inner, head_dim;
    if (!compute_inner_size(builder, &inner, error) ||
        !builder_number(builder, "mamba_d_head|head_dim", 64, &head_dim, error))
        return false;
    if (!(head_dim >= 1))
        return error_set(error, "config.json: head_dim is %g, below 1", head_dim);
    *ret_value = (double)(uint64_t)(inner / head_dim);
    return true;
}

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = MAMBA2_CONTEXT},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|d_model|dim"},
    {"feed_forward_length", GGUF_U32, ALWAYS, .value = 0},
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "conv_kernel|d_conv", 4},
    {"ssm.inner_size", GGUF_U32, .compute = compute_inner_size},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "state_size|d_state", 128},
    {"ssm.time_step_rank", GGUF_U32, .compute = compute_heads},
    {"ssm.group_count", GGUF_U32, OR_DEFAULT, "n_groups", 1},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_epsilon|rms_norm_eps", 1e-5},
    FILE_TYPE_KEY,
    {0},
};

static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { MOST = 1 << 16 };
    uint64_t multiple = 16;
    if (hparams_get(builder->model->hparams, "pad_vocab_size_multiple") != NULL &&
        !hparams_count(builder->model->hparams, "pad_vocab_size_multiple", 1, MOST, &multiple, error))
        return false;
    return mamba2_pad_vocabulary(builder, multiple, error);
}

static const struct config_row config_rows[] = {
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
    .tensors = {tensors, mamba2_backbone_tensors},
    .forms = CONFIG_FORMS({"Mamba2ForCausalLM", "mamba2", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .dimensions = {DIMENSIONS({"state_group", "n_groups", 1}, {"state", "state_size|d_state"},
                              {"mamba_head", "num_heads"})},
    .before_vocab = pad_vocabulary,
};
