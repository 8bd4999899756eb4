/* RWKV 6, and RWKV6-Qwen2, which has Qwen 2's feed-forward network. conversion/rwkv.py. */
#include "models/families/rwkv/rwkv.h"
#include "models/relation/pattern.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <math.h>

#define BLOCK "rwkv.blocks.{}."
#define MIX   BLOCK "attention."
#define OTHER "model.layers.{}.self_attn."

#define FUSED(path) path "time_maa_w, " path "time_maa_k, " path "time_maa_v, " path "time_maa_r, " path "time_maa_g"

/* Sums of vectors, one for each kind of input. */
#define FUSED_AXES "w 1 c, k 1 c, v 1 c, r 1 c, g 1 c -> (w + k + v + r + g) 1 1 c"

static const struct relation_row tensors[] = {
    {"rwkv.embeddings", "token_embd", .parallel = "row"},
    {"rwkv.blocks.0.pre_ln", "token_embd_norm"},
    {"rwkv.ln_out", "output_norm"},
    {"head", "output", .parallel = "row"},
    {BLOCK "ln1", "blk.{}.attn_norm"},
    {BLOCK "ln2", "blk.{}.attn_norm_2"},
    {MIX "time_maa_x", "blk.{}.time_mix_lerp_x.weight", "1 1 c -> c"},
    {FUSED(MIX), "blk.{}.time_mix_lerp_fused.weight", FUSED_AXES},
    {MIX "time_maa_w1", "blk.{}.time_mix_w1.weight", "i o -> o i"},
    {MIX "time_maa_w2", "blk.{}.time_mix_w2.weight", "n d o -> n o d"},
    {MIX "time_faaaa", "blk.{}.time_mix_first.weight"},
    {MIX "time_decay", "blk.{}.time_mix_decay.weight", "1 1 c -> c"},
    {MIX "time_decay_w1", "blk.{}.time_mix_decay_w1.weight", "i o -> o i"},
    {MIX "time_decay_w2", "blk.{}.time_mix_decay_w2.weight", "i o -> o i"},
    {MIX "key", "blk.{}.time_mix_key"},
    {MIX "value", "blk.{}.time_mix_value"},
    {MIX "receptance", "blk.{}.time_mix_receptance"},
    {MIX "gate", "blk.{}.time_mix_gate"},
    {MIX "ln_x", "blk.{}.time_mix_ln"},
    {MIX "output", "blk.{}.time_mix_output"},
    {BLOCK "feed_forward.time_maa_k", "blk.{}.channel_mix_lerp_k.weight", "1 1 c -> c"},
    {BLOCK "feed_forward.time_maa_r", "blk.{}.channel_mix_lerp_r.weight", "1 1 c -> c"},
    {BLOCK "feed_forward.key", "blk.{}.channel_mix_key", .parallel = "row"},
    {BLOCK "feed_forward.receptance", "blk.{}.channel_mix_receptance"},
    {BLOCK "feed_forward.value", "blk.{}.channel_mix_value", .parallel = "column"},
    {0},
};

/* Reorders the five parts of an axis: r, k, v, w, g becomes w, k, v, r, g; and back. */
static const struct view *swap_parts(struct arena *arena, const struct view *view, unsigned axis)
{
    enum { PARTS = 5 };
    static const unsigned order[PARTS] = {3, 1, 2, 0, 4};
    const struct view *parts[PARTS];
    if (view->rank <= axis || view->shape[axis] % PARTS != 0)
        return view;
    uint64_t size = view->shape[axis] / PARTS;
    for (unsigned i = 0; i < PARTS; i++)
        parts[i] = view_slice(arena, view, axis, order[i] * size, size, 1);
    return view_concatenate(arena, parts, PARTS, axis);
}

static const struct view *swap_first(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                     const struct view *view)
{
    return swap_parts(arena, view, 0);
}

/* Like swap_first(), for a matrix that is also transposed. */
static const struct view *swap_transposed(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const struct view *view)
{
    return swap_parts(arena, view, direction == FORWARD ? 0 : 1);
}

static const struct elementwise swapped = {
    .forward_text = "r and w in each other's place",
    .backward_text = "the same",
    .apply = swap_first,
    .exactness = "exact",
};

static const struct elementwise swapped_columns = {
    .forward_text = "r and w in each other's place",
    .backward_text = "the same",
    .apply = swap_transposed,
    .exactness = "exact",
};

static const struct relation_row hybrid_tensors[] = {
    {OTHER "time_maa_x", "blk.{}.time_mix_lerp_x.weight", "1 1 c -> c"},
    {FUSED(OTHER), "blk.{}.time_mix_lerp_fused.weight", FUSED_AXES},
    {OTHER "time_maa_w1", "blk.{}.time_mix_w1.weight", "i o -> o i", .map = &swapped_columns},
    {OTHER "time_maa_w2", "blk.{}.time_mix_w2.weight", "n d o -> n o d", .map = &swapped},
    {OTHER "time_decay", "blk.{}.time_mix_decay.weight", "1 1 c -> c"},
    {OTHER "time_decay_w1", "blk.{}.time_mix_decay_w1.weight", "i o -> o i"},
    {OTHER "time_decay_w2", "blk.{}.time_mix_decay_w2.weight", "i o -> o i"},
    {OTHER "k_proj", "blk.{}.time_mix_key"},
    {OTHER "v_proj", "blk.{}.time_mix_value"},
    {OTHER "q_proj", "blk.{}.time_mix_receptance"},
    {OTHER "gate", "blk.{}.time_mix_gate"},
    {OTHER "o_proj", "blk.{}.time_mix_output"},
    {0},
};

/* Halves outputs every so many layers, to stay in the range of F16; files made from the GGUF keep that. */
static void rescale(struct model_builder *builder)
{
    static const char *const rescaled[] = {"blk.{}.time_mix_output.weight", "blk.{}.channel_mix_value.weight"};
    struct gguf_model *model = builder->model;
    uint64_t n_layers, numbers[PATTERN_NUMBERS];
    if (!json_u64(hparams_get(model->hparams, "rescale_every"), &n_layers) || n_layers == 0)
        return;
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        for (size_t j = 0; j < sizeof rescaled / sizeof *rescaled; j++) {
            struct tensor *tensor = &tensor_set_edit(model->tensors)[i];
            if (!pattern_match(rescaled[j], tensor->name, tensor->name_length, numbers) || numbers[0] < n_layers)
                continue;
            const struct dtype *dtype = tensor->view->dtype == &f16_dtype ? &f16_dtype : &f32_dtype;
            float divisor = ldexpf(1, (int)(numbers[0] / n_layers < 64 ? numbers[0] / n_layers : 64));
            tensor->view =
                view_convert(model->arena, view_combine_number(model->arena, tensor->view, DIVIDE, divisor), dtype);
        }
}

static bool compute_width(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double hidden, width;
    if (!builder_number(builder, "hidden_size", 0, &hidden, error) ||
        !builder_number(builder, "intermediate_size", NAN, &width, error))
        return false;
    *ret_value = isnan(width) ? trunc(floor(hidden * 3.5 / 32) * 32) : width;
    return true;
}

/* Computes a rank, which the configuration lacks. */
static bool compute_rank(const struct model_builder *builder, double usual, double *ret_value, struct error *error)
{
    double hidden;
    if (!builder_number(builder, "hidden_size", 0, &hidden, error))
        return false;
    *ret_value = hidden == 4096 ? 2 * usual : usual;
    return true;
}

static bool compute_mix_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_rank(builder, 32, ret_value, error);
}

static bool compute_decay_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_rank(builder, 64, ret_value, error);
}

enum { UNLIMITED = 1 << 20 };

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = UNLIMITED},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    {"rescale_every_n_layers", GGUF_U32, REQUIRED, "rescale_every"},
    {"wkv.head_size", GGUF_U32, REQUIRED, "head_size"},
    {"time_mix_extra_dim", GGUF_U32, .compute = compute_mix_rank},
    {"time_decay_extra_dim", GGUF_U32, .compute = compute_decay_rank},
    {"feed_forward_length", GGUF_U32, .compute = compute_width},
    FILE_TYPE_KEY,
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {0},
};

static bool compute_head_size(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double hidden, n_heads;
    if (!builder_number(builder, "hidden_size", 0, &hidden, error) ||
        !builder_number(builder, "num_attention_heads", 0, &n_heads, error))
        return false;
    if (n_heads < 1)
        return error_set(error, "config.json: num_attention_heads is missing, or 0");
    *ret_value = floor(hidden / n_heads);
    return true;
}

/* Like compute_rank(), for the hybrid, whose configuration may have the rank. */
static bool compute_said_rank(const struct model_builder *builder, const char *from, double usual, double *ret_value,
                              struct error *error)
{
    double hidden;
    if (!builder_number(builder, "hidden_size", 0, &hidden, error))
        return false;
    return builder_number(builder, from, hidden >= 4096 ? 2 * usual : usual, ret_value, error);
}

static bool compute_shift_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_said_rank(builder, "lora_rank_tokenshift", 32, ret_value, error);
}

static bool compute_said_decay_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_said_rank(builder, "lora_rank_decay", 64, ret_value, error);
}

static const struct key_row hybrid_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = UNLIMITED},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"wkv.head_size", GGUF_U32, .compute = compute_head_size},
    {"time_mix_extra_dim", GGUF_U32, .compute = compute_shift_rank},
    {"time_decay_extra_dim", GGUF_U32, .compute = compute_said_decay_rank},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    FILE_TYPE_KEY,
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"token_shift_count", GGUF_U32, ALWAYS, .value = 1},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads"},
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {0},
};

const struct family rwkv6_family = {
    .name = "rwkv6",
    .summary = "RWKV 6",
    .hf = FAMILY_NAMES({"Rwkv6ForCausalLM"}),
    .tensors = {tensors},
    .keys = {keys},
    .vocabs = {&rwkv_vocab},
    .arrange = rescale,
    .after_vocab = rwkv_after_vocab,
};

const struct family rwkv6qwen2_family = {
    .name = "rwkv6qwen2",
    .summary = "RWKV6-Qwen2",
    .hf = FAMILY_NAMES({"RWKV6Qwen2ForCausalLM"}),
    .tensors = {hybrid_tensors, decoder_tensors},
    .keys = {hybrid_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .arrange = rescale,
};
