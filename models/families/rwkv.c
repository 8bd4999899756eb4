/* RWKV 6 and 7, and models that combine them with Qwen 2's feed-forward network. conversion/rwkv.py. */
#include "base/text.h"
#include "models/families/shared.h"
#include "models/relation/pattern.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <math.h>
#include <string.h>

/* RWKV 6, and RWKV6-Qwen2, which has Qwen 2's feed-forward network. conversion/rwkv.py. */

#define BLOCK     "rwkv.blocks.{}."
#define RWKV6_MIX BLOCK "attention."
#define OTHER     "model.layers.{}.self_attn."

#define FUSED(path) path "time_maa_w, " path "time_maa_k, " path "time_maa_v, " path "time_maa_r, " path "time_maa_g"

/* Sums of vectors, one for each kind of input. */
#define FUSED_AXES "w 1 c, k 1 c, v 1 c, r 1 c, g 1 c -> (w + k + v + r + g) 1 1 c"

static const struct relation_row rwkv6_tensors[] = {
    {"rwkv.embeddings", "token_embd", .parallel = "row"},
    {"rwkv.blocks.0.pre_ln", "token_embd_norm"},
    {"rwkv.ln_out", "output_norm"},
    {"head", "output", .parallel = "row"},
    {BLOCK "ln1", "blk.{}.attn_norm"},
    {BLOCK "ln2", "blk.{}.attn_norm_2"},
    {RWKV6_MIX "time_maa_x", "blk.{}.time_mix_lerp_x.weight", "1 1 c -> c"},
    {FUSED(RWKV6_MIX), "blk.{}.time_mix_lerp_fused.weight", FUSED_AXES},
    {RWKV6_MIX "time_maa_w1", "blk.{}.time_mix_w1.weight", "i o -> o i"},
    {RWKV6_MIX "time_maa_w2", "blk.{}.time_mix_w2.weight", "n d o -> n o d"},
    {RWKV6_MIX "time_faaaa", "blk.{}.time_mix_first.weight"},
    {RWKV6_MIX "time_decay", "blk.{}.time_mix_decay.weight", "1 1 c -> c"},
    {RWKV6_MIX "time_decay_w1", "blk.{}.time_mix_decay_w1.weight", "i o -> o i"},
    {RWKV6_MIX "time_decay_w2", "blk.{}.time_mix_decay_w2.weight", "i o -> o i"},
    {RWKV6_MIX "key", "blk.{}.time_mix_key"},
    {RWKV6_MIX "value", "blk.{}.time_mix_value"},
    {RWKV6_MIX "receptance", "blk.{}.time_mix_receptance"},
    {RWKV6_MIX "gate", "blk.{}.time_mix_gate"},
    {RWKV6_MIX "ln_x", "blk.{}.time_mix_ln"},
    {RWKV6_MIX "output", "blk.{}.time_mix_output"},
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

enum { RWKV6_UNLIMITED = 1 << 20 };

static const struct key_row rwkv6_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = RWKV6_UNLIMITED},
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

static const struct key_row rwkv6_hybrid_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = RWKV6_UNLIMITED},
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

/* Keeps a place for the converter's chat template, for models with the tokenizer of RWKV World. */
static bool rwkv_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    bool has_template = gguf_kvs_find(&builder->model->kvs, "tokenizer.chat_template") != NULL;
    return has_template || (hold_chat_template(builder, error) && release_chat_template(builder, input, error));
}

const struct family rwkv6_family = {
    .name = "rwkv6",
    .summary = "RWKV 6",
    .hf = FAMILY_NAMES({"Rwkv6ForCausalLM"}),
    .tensors = {rwkv6_tensors},
    .keys = {rwkv6_keys},
    .vocabs = {&rwkv_vocab},
    .arrange = rescale,
    .after_vocab = rwkv_after_vocab,
};

const struct family rwkv6qwen2_family = {
    .name = "rwkv6qwen2",
    .summary = "RWKV6-Qwen2",
    .hf = FAMILY_NAMES({"RWKV6Qwen2ForCausalLM"}),
    .tensors = {hybrid_tensors, decoder_tensors},
    .keys = {rwkv6_hybrid_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .arrange = rescale,
};

/* RWKV 7, under its own names or flash-linear-attention's, and ARWKV 7, which has Qwen 2's feed-forward network.
 * conversion/rwkv.py. */

/* Turns parameters that are vectors with dimensions of 1 into vectors. */
static const struct view *as_vector(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const struct view *view)
{
    const uint64_t shape[] = {view->n_elements};
    return direction == FORWARD ? view_reshape(arena, view, 1, shape) : view;
}

static const struct elementwise vector = {
    .forward_text = "as a vector",
    .backward_text = "the same",
    .apply = as_vector,
    .exactness = "exact, except for dimensions of 1",
};

/* Reshapes the weights that mix inputs to one row for each kind of input. */
static const struct view *as_mixes(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const struct view *view)
{
    uint64_t n_mixes = dimensions != NULL && dimensions_get(dimensions, "gated") == 0 ? 5 : 6;
    const uint64_t shape[] = {n_mixes, 1, 1, view->n_elements / n_mixes};
    return direction == FORWARD && view->n_elements % n_mixes == 0 ? view_reshape(arena, view, 4, shape) : view;
}

static const struct elementwise mixes = {
    .forward_text = "with dimensions of 1",
    .backward_text = "the same",
    .apply = as_mixes,
    .exactness = "exact, except for dimensions of 1",
};

#define LAYER     "model.layers.{}."
#define RWKV7_MIX LAYER "attention."

/* The first layer has no earlier values to mix with: leaves out unused tensors that some checkpoints have. */
static const struct relation_row first_layer[] = {
    {"model.layers.0.attention.v0", NULL},
    {"model.layers.0.attention.v1", NULL},
    {"model.layers.0.attention.v2", NULL},
    {"model.layers.0.attention.v_lora.*", NULL},
    {0},
};

static const struct relation_row rwkv7_tensors[] = {
    {"model.embeddings", "token_embd", .parallel = "row"},
    {"model.embed_tokens", "token_embd", .parallel = "row", .forward_only = true},
    {"model.layers.0.pre_norm", "token_embd_norm"},
    {"model.pre_ln", "token_embd_norm", .forward_only = true},
    {"model.norm", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {LAYER "attention_norm", "blk.{}.attn_norm"},
    {LAYER "ln1", "blk.{}.attn_norm", .forward_only = true},
    {LAYER "input_layernorm", "blk.{}.attn_norm", .forward_only = true},
    {RWKV7_MIX "r_proj", "blk.{}.time_mix_receptance"},
    {RWKV7_MIX "receptance", "blk.{}.time_mix_receptance", .forward_only = true},
    {RWKV7_MIX "k_proj", "blk.{}.time_mix_key"},
    {RWKV7_MIX "key", "blk.{}.time_mix_key", .forward_only = true},
    {RWKV7_MIX "v_proj", "blk.{}.time_mix_value"},
    {RWKV7_MIX "value", "blk.{}.time_mix_value", .forward_only = true},
    {RWKV7_MIX "o_proj", "blk.{}.time_mix_output"},
    {RWKV7_MIX "output", "blk.{}.time_mix_output", .forward_only = true},
    {RWKV7_MIX "ln_x", "blk.{}.time_mix_ln"},
    {RWKV7_MIX "k_k", "blk.{}.time_mix_k_k.weight", .map = &vector},
    {RWKV7_MIX "k_a", "blk.{}.time_mix_k_a.weight", .map = &vector},
    {RWKV7_MIX "r_k", "blk.{}.time_mix_r_k.weight", "h d -> (h d)"},
    {RWKV7_MIX "x_x", "blk.{}.time_mix_lerp_fused.weight", .map = &mixes, .when = "joined"},
    {RWKV7_MIX "x_r, " RWKV7_MIX "x_w, " RWKV7_MIX "x_k, " RWKV7_MIX "x_v, " RWKV7_MIX "x_a, " RWKV7_MIX "x_g",
     "blk.{}.time_mix_lerp_fused.weight", "r 1 c, w 1 c, k 1 c, v 1 c, a 1 c, g 1 c -> (r + w + k + v + a + g) 1 1 c",
     .when = "!joined gated"},
    {RWKV7_MIX "x_r, " RWKV7_MIX "x_w, " RWKV7_MIX "x_k, " RWKV7_MIX "x_v, " RWKV7_MIX "x_a",
     "blk.{}.time_mix_lerp_fused.weight", "r 1 c, w 1 c, k 1 c, v 1 c, a 1 c -> (r + w + k + v + a) 1 1 c",
     .when = "!joined !gated"},
    {RWKV7_MIX "w0", "blk.{}.time_mix_w0.weight", "1 1 c -> c", .when = "!lora"},
    {RWKV7_MIX "w1", "blk.{}.time_mix_w1.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "w2", "blk.{}.time_mix_w2.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "a0", "blk.{}.time_mix_a0.weight", "1 1 c -> c", .when = "!lora"},
    {RWKV7_MIX "a1", "blk.{}.time_mix_a1.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "a2", "blk.{}.time_mix_a2.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "v0", "blk.{}.time_mix_v0.weight", "1 1 c -> c", .when = "!lora"},
    {RWKV7_MIX "v1", "blk.{}.time_mix_v1.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "v2", "blk.{}.time_mix_v2.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "g1", "blk.{}.time_mix_g1.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "g2", "blk.{}.time_mix_g2.weight", "i o -> o i", .when = "!lora"},
    {RWKV7_MIX "w_lora.lora.2.bias", "blk.{}.time_mix_w0.weight", .when = "lora"},
    {RWKV7_MIX "w_lora.lora.0.weight", "blk.{}.time_mix_w1.weight", .when = "lora"},
    {RWKV7_MIX "w_lora.lora.2.weight", "blk.{}.time_mix_w2.weight", .when = "lora"},
    {RWKV7_MIX "a_lora.lora.2.bias", "blk.{}.time_mix_a0.weight", .when = "lora"},
    {RWKV7_MIX "a_lora.lora.0.weight", "blk.{}.time_mix_a1.weight", .when = "lora"},
    {RWKV7_MIX "a_lora.lora.2.weight", "blk.{}.time_mix_a2.weight", .when = "lora"},
    {RWKV7_MIX "v_lora.lora.2.bias", "blk.{}.time_mix_v0.weight", .when = "lora"},
    {RWKV7_MIX "v_lora.lora.0.weight", "blk.{}.time_mix_v1.weight", .when = "lora"},
    {RWKV7_MIX "v_lora.lora.2.weight", "blk.{}.time_mix_v2.weight", .when = "lora"},
    {RWKV7_MIX "g_lora.lora.0.weight", "blk.{}.time_mix_g1.weight", .when = "lora"},
    {RWKV7_MIX "g_lora.lora.2.weight", "blk.{}.time_mix_g2.weight", .when = "lora"},
    {0},
};

/* Returns `name` with every `from` replaced by `to`. */
static const char *replaced(struct arena *arena, const char *name, const char *from, const char *to)
{
    size_t length = strlen(from);
    for (const char *at = strstr(name, from); at != NULL;) {
        size_t done = (size_t)(at - name) + strlen(to);
        name = arena_printf(arena, "%.*s%s%s", (int)(at - name), name, to, at + length);
        at = strstr(name + done, from);
    }
    return name;
}

/* Gives tensors with two spellings one name. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"blocks", "layers"}, {"ffn", "feed_forward"},      {"self_attn", "attention"}, {"attn", "attention"},
        {"time_mixer.", ""},  {"feed_forward_norm", "ln2"}, {"g_norm", "ln_x"},
    };
    for (size_t i = 0; direction == FORWARD && i < sizeof changes / sizeof *changes; i++)
        name = replaced(arena, name, changes[i].from, changes[i].to);
    return name;
}

static const struct dimension_row own_dimensions[] = {
    {"d", "head_size|head_dim", .kept = true},
    {"gated", "wkv_has_gate", 1},
    {0},
};

static bool look(struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        if (strstr(set->tensors[i].name, "_lora.lora") != NULL)
            dimensions_set(&builder->dimensions, "lora", 1);
        if (text_ends_with(set->tensors[i].name, ".x_x"))
            dimensions_set(&builder->dimensions, "joined", 1);
    }
    return true;
}

/* Copies the neighbouring tensors for the first layer's missing ones, which llama.cpp requires. */
static void repeat_first(struct model_builder *builder)
{
    static const char beginning[] = "blk.0.time_mix_a";
    struct gguf_model *model = builder->model;
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (!text_starts_with(tensor->name, beginning))
            continue;
        const char *name = arena_printf(model->arena, "blk.0.time_mix_v%s", tensor->name + strlen(beginning));
        builder_insert_tensor(builder, i++, name, tensor->view);
    }
}

static bool set_number(struct model_builder *builder, const char *key, const char *from, struct error *error)
{
    const struct key_row rows[] = {{key, GGUF_U32, REQUIRED, from}, {0}};
    return builder_emit(builder, rows, error);
}

static bool is_present(const struct model_builder *builder, const char *key)
{
    return hparams_get(builder->model->hparams, key) != NULL;
}

/* Sets the norm's epsilon and the heads, which the two kinds of configuration name differently. */
static bool emit_norm_and_heads(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[2][3] = {
        {{"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "norm_eps"},
         {"wkv.head_size", GGUF_U32, REQUIRED, "head_dim"},
         {0}},
        {{"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
         {"wkv.head_size", GGUF_U32, REQUIRED, "head_size"},
         {0}},
    };
    return builder_emit(builder, rows[is_present(builder, "head_size") && is_present(builder, "layer_norm_epsilon")],
                        error);
}

/* Sets a rank, computed from the width if null. */
static bool emit_rank(struct model_builder *builder, const char *key, const char *from, double exponent, double factor,
                      struct error *error)
{
    double width;
    const struct json *value = hparams_get(builder->model->hparams, from);
    if (value == NULL || json_type(value) != JSON_NULL)
        return set_number(builder, key, from, error);
    if (!builder_number(builder, "hidden_size", 0, &width, error))
        return false;
    double rank = fmax(1, rint(pow(width, exponent) * factor / 32)) * 32;
    if (!(width > 0 && rank <= UINT32_MAX))
        return error_set(error, "config.json: hidden_size is out of range");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, key), (uint32_t)rank);
    return true;
}

static bool emit_ranks(struct model_builder *builder, struct error *error)
{
    static const struct {
        const char *key, *from, *other;
        double exponent, factor;
    } ranks[] = {
        {"attention.decay_lora_rank", "lora_rank_decay", "decay_low_rank_dim", 0.5, 1.8},
        {"attention.iclr_lora_rank", "lora_rank_iclr", "a_low_rank_dim", 0.5, 1.8},
        {"attention.value_residual_mix_lora_rank", "lora_rank_value_residual_mix", "v_low_rank_dim", 0.5, 1.3},
        {"attention.gate_lora_rank", "lora_rank_gate", "gate_low_rank_dim", 0.8, 0.6},
    };
    enum { N_RANKS = sizeof ranks / sizeof *ranks };
    bool has_all = true;
    for (size_t i = 0; i < N_RANKS; i++)
        has_all &= is_present(builder, ranks[i].from);
    for (size_t i = 0; i < N_RANKS; i++)
        if (!emit_rank(builder, ranks[i].key, has_all ? ranks[i].from : ranks[i].other, ranks[i].exponent,
                       ranks[i].factor, error))
            return false;
    return true;
}

enum { RWKV7_UNLIMITED = 1 << 20 };

static const struct key_row rwkv7_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = RWKV7_UNLIMITED},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {.emit = emit_norm_and_heads},
    {.emit = emit_ranks},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size", .times = 4},
    {"feed_forward_length", GGUF_U32, IF_PRESENT, "intermediate_size"},
    FILE_TYPE_KEY,
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {0},
};

static bool compute_gate_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *has_gate = hparams_get(builder->model->hparams, "wkv_has_gate");
    if (has_gate == NULL)
        return error_set(error, "config.json: wkv_has_gate is missing");
    *ret_value = json_bool(has_gate, false) ? 128 : 0;
    return true;
}

static const struct key_row rwkv7_hybrid_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = RWKV7_UNLIMITED},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"wkv.head_size", GGUF_U32, REQUIRED, "head_size"},
    {"attention.decay_lora_rank", GGUF_U32, ALWAYS, .value = 64},
    {"attention.iclr_lora_rank", GGUF_U32, ALWAYS, .value = 64},
    {"attention.value_residual_mix_lora_rank", GGUF_U32, ALWAYS, .value = 32},
    {"attention.gate_lora_rank", GGUF_U32, .compute = compute_gate_rank},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    FILE_TYPE_KEY,
    {"token_shift_count", GGUF_U32, ALWAYS, .value = 1},
    {"attention.head_count", GGUF_U32, ALWAYS, .value = 0},
    {0},
};

const struct family rwkv7_family = {
    .name = "rwkv7",
    .summary = "RWKV 7",
    .hf = FAMILY_NAMES({"Rwkv7ForCausalLM"}, {"RWKV7ForCausalLM"}),
    .tensors = {first_layer,
                TENSORS({LAYER "ln2", "blk.{}.attn_norm_2"},
                        {LAYER "feed_forward.x_k", "blk.{}.channel_mix_lerp_k.weight", .map = &vector},
                        {LAYER "feed_forward.key", "blk.{}.channel_mix_key", .parallel = "row"},
                        {LAYER "feed_forward.value", "blk.{}.channel_mix_value", .parallel = "column"}),
                rwkv7_tensors},
    .keys = {rwkv7_keys},
    .vocabs = {&rwkv_vocab},
    .dimensions = {own_dimensions},
    .adjust = look,
    .rename = rename_tensor,
    .arrange = repeat_first,
    .after_vocab = rwkv_after_vocab,
};

const struct family arwkv7_family = {
    .name = "arwkv7",
    .summary = "ARWKV 7",
    .hf = FAMILY_NAMES({"RwkvHybridForCausalLM"}),
    .tensors = {first_layer,
                TENSORS({LAYER "post_attention_layernorm", "blk.{}.ffn_norm"},
                        {LAYER "mlp.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
                        {LAYER "mlp.up_proj", "blk.{}.ffn_up", .parallel = "row"},
                        {LAYER "mlp.down_proj", "blk.{}.ffn_down", .parallel = "column"}),
                rwkv7_tensors},
    .keys = {rwkv7_hybrid_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dimensions = {own_dimensions},
    .adjust = look,
    .rename = rename_tensor,
    .arrange = repeat_first,
};
