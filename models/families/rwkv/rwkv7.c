/* RWKV 7, under its own names or flash-linear-attention's, and ARWKV 7, which has Qwen 2's feed-forward network.
 * conversion/rwkv.py. */
#include "base/text.h"
#include "models/families/rwkv/rwkv.h"

#include <math.h>
#include <string.h>

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

#define LAYER "model.layers.{}."
#define MIX   LAYER "attention."

/* The first layer has no earlier values to mix with: leaves out unused tensors that some checkpoints have. */
static const struct relation_row first_layer[] = {
    {"model.layers.0.attention.v0", NULL},
    {"model.layers.0.attention.v1", NULL},
    {"model.layers.0.attention.v2", NULL},
    {"model.layers.0.attention.v_lora.*", NULL},
    {0},
};

static const struct relation_row tensors[] = {
    {"model.embeddings", "token_embd", .parallel = "row"},
    {"model.embed_tokens", "token_embd", .parallel = "row", .forward_only = true},
    {"model.layers.0.pre_norm", "token_embd_norm"},
    {"model.pre_ln", "token_embd_norm", .forward_only = true},
    {"model.norm", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {LAYER "attention_norm", "blk.{}.attn_norm"},
    {LAYER "ln1", "blk.{}.attn_norm", .forward_only = true},
    {LAYER "input_layernorm", "blk.{}.attn_norm", .forward_only = true},
    {MIX "r_proj", "blk.{}.time_mix_receptance"},
    {MIX "receptance", "blk.{}.time_mix_receptance", .forward_only = true},
    {MIX "k_proj", "blk.{}.time_mix_key"},
    {MIX "key", "blk.{}.time_mix_key", .forward_only = true},
    {MIX "v_proj", "blk.{}.time_mix_value"},
    {MIX "value", "blk.{}.time_mix_value", .forward_only = true},
    {MIX "o_proj", "blk.{}.time_mix_output"},
    {MIX "output", "blk.{}.time_mix_output", .forward_only = true},
    {MIX "ln_x", "blk.{}.time_mix_ln"},
    {MIX "k_k", "blk.{}.time_mix_k_k.weight", .map = &vector},
    {MIX "k_a", "blk.{}.time_mix_k_a.weight", .map = &vector},
    {MIX "r_k", "blk.{}.time_mix_r_k.weight", "h d -> (h d)"},
    {MIX "x_x", "blk.{}.time_mix_lerp_fused.weight", .map = &mixes, .when = "joined"},
    {MIX "x_r, " MIX "x_w, " MIX "x_k, " MIX "x_v, " MIX "x_a, " MIX "x_g", "blk.{}.time_mix_lerp_fused.weight",
     "r 1 c, w 1 c, k 1 c, v 1 c, a 1 c, g 1 c -> (r + w + k + v + a + g) 1 1 c", .when = "!joined gated"},
    {MIX "x_r, " MIX "x_w, " MIX "x_k, " MIX "x_v, " MIX "x_a", "blk.{}.time_mix_lerp_fused.weight",
     "r 1 c, w 1 c, k 1 c, v 1 c, a 1 c -> (r + w + k + v + a) 1 1 c", .when = "!joined !gated"},
    {MIX "w0", "blk.{}.time_mix_w0.weight", "1 1 c -> c", .when = "!lora"},
    {MIX "w1", "blk.{}.time_mix_w1.weight", "i o -> o i", .when = "!lora"},
    {MIX "w2", "blk.{}.time_mix_w2.weight", "i o -> o i", .when = "!lora"},
    {MIX "a0", "blk.{}.time_mix_a0.weight", "1 1 c -> c", .when = "!lora"},
    {MIX "a1", "blk.{}.time_mix_a1.weight", "i o -> o i", .when = "!lora"},
    {MIX "a2", "blk.{}.time_mix_a2.weight", "i o -> o i", .when = "!lora"},
    {MIX "v0", "blk.{}.time_mix_v0.weight", "1 1 c -> c", .when = "!lora"},
    {MIX "v1", "blk.{}.time_mix_v1.weight", "i o -> o i", .when = "!lora"},
    {MIX "v2", "blk.{}.time_mix_v2.weight", "i o -> o i", .when = "!lora"},
    {MIX "g1", "blk.{}.time_mix_g1.weight", "i o -> o i", .when = "!lora"},
    {MIX "g2", "blk.{}.time_mix_g2.weight", "i o -> o i", .when = "!lora"},
    {MIX "w_lora.lora.2.bias", "blk.{}.time_mix_w0.weight", .when = "lora"},
    {MIX "w_lora.lora.0.weight", "blk.{}.time_mix_w1.weight", .when = "lora"},
    {MIX "w_lora.lora.2.weight", "blk.{}.time_mix_w2.weight", .when = "lora"},
    {MIX "a_lora.lora.2.bias", "blk.{}.time_mix_a0.weight", .when = "lora"},
    {MIX "a_lora.lora.0.weight", "blk.{}.time_mix_a1.weight", .when = "lora"},
    {MIX "a_lora.lora.2.weight", "blk.{}.time_mix_a2.weight", .when = "lora"},
    {MIX "v_lora.lora.2.bias", "blk.{}.time_mix_v0.weight", .when = "lora"},
    {MIX "v_lora.lora.0.weight", "blk.{}.time_mix_v1.weight", .when = "lora"},
    {MIX "v_lora.lora.2.weight", "blk.{}.time_mix_v2.weight", .when = "lora"},
    {MIX "g_lora.lora.0.weight", "blk.{}.time_mix_g1.weight", .when = "lora"},
    {MIX "g_lora.lora.2.weight", "blk.{}.time_mix_g2.weight", .when = "lora"},
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

enum { UNLIMITED = 1 << 20 };

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = UNLIMITED},
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

static const struct key_row hybrid_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = UNLIMITED},
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

bool rwkv_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    bool has_template = gguf_kvs_find(&builder->model->kvs, "tokenizer.chat_template") != NULL;
    return has_template || (hold_chat_template(builder, error) && release_chat_template(builder, input, error));
}

const struct family rwkv7_family = {
    .name = "rwkv7",
    .summary = "RWKV 7",
    .hf = FAMILY_NAMES({"Rwkv7ForCausalLM"}, {"RWKV7ForCausalLM"}),
    .tensors = {first_layer,
                TENSORS({LAYER "ln2", "blk.{}.attn_norm_2"},
                        {LAYER "feed_forward.x_k", "blk.{}.channel_mix_lerp_k.weight", .map = &vector},
                        {LAYER "feed_forward.key", "blk.{}.channel_mix_key", .parallel = "row"},
                        {LAYER "feed_forward.value", "blk.{}.channel_mix_value", .parallel = "column"}),
                tensors},
    .keys = {keys},
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
                tensors},
    .keys = {hybrid_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dimensions = {own_dimensions},
    .adjust = look,
    .rename = rename_tensor,
    .arrange = repeat_first,
};
