/* Phi 1 to 4. conversion/phi.py. */
#include "models/families/phi.h"
#include "models/families/shared.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Phi 1, 1.5 and 2. conversion/phi.py. */

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions|max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size|n_embd", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon|layer_norm_eps"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden},
    FILE_TYPE_KEY,
    {".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 0},
    {.emit = note_lost_rope},
    {0},
};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_new'"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"qk_layernorm", FROM_TEXT, .text = "false"},
    {"intermediate_size", FROM_KEY, "feed_forward_length"},
    {0},
};

const struct family phi2_family = {
    .name = "phi2",
    .summary = "Phi 1, 1.5 and 2",
    .hf = FAMILY_NAMES({"PhiForCausalLM"}),
    .tensors = {TENSORS({"model.final_layernorm", "output_norm"},
                        {"model.layers.{}.self_attn.dense", "blk.{}.attn_output", .parallel = "column"},
                        {"model.layers.{}.mlp.fc1", "blk.{}.ffn_up", .parallel = "row"},
                        {"model.layers.{}.mlp.fc2", "blk.{}.ffn_down", .parallel = "column"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"PhiForCausalLM", "phi", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
};

/* Phi 3 and 4, and Phi 3.5 with experts. conversion/phi.py. */

enum { MAX_FACTORS = 65536 };

/* Phi 3.5 with experts may have no scaled rope, and then no other length, in transformers 5. */
static bool compute_original_length(const struct model_builder *builder, double *ret_value, struct error *error)
{
    static const char key[] = "rope.original_max_position_embeddings";
    const struct hparams *hparams = builder->model->hparams;
    bool is_plain = json_string_is(hparams_rope(hparams, "rope_type"), "default");
    return builder_number(builder, key, NAN, ret_value, error) &&
           (!isnan(*ret_value) || !is_plain ||
            builder_number(builder, "max_position_embeddings", NAN, ret_value, error)) &&
           (!isnan(*ret_value) || error_set(error, "config.json: %s is missing", key));
}

const struct key_row phi3_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions|max_position_embeddings"},
    {"rope.scaling.original_context_length", GGUF_U32, .compute = compute_original_length},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads|n_head_kv"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden},
    {"rope.freq_base", GGUF_F32, REQUIRED, "rope.rope_theta"},
    FILE_TYPE_KEY,
    {"attention.sliding_window", GGUF_U32, OR_DEFAULT, "sliding_window", 0}, /* 0 identifies Phi 4 */
    {0},
};

/* Computes the scale of attention for contexts longer than in training. transformers reads "su" and "yarn" as
 * "longrope" if the scaling has only the three members that it knows. */
static bool attention_factor(const struct model_builder *builder, double *ret_factor, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const char *type = json_string(hparams_rope(hparams, "rope_type"), NULL);
    double length, original;
    if (!builder_number(builder, "n_positions|max_position_embeddings", NAN, &length, error) ||
        !builder_number(builder, "rope.original_max_position_embeddings", NAN, &original, error))
        return false;
    double scale = length / original;
    if (type == NULL || !(scale > 0) || !(original > 1))
        return error_set(error, "config.json: rope_scaling has no type, or the lengths of context make no sense");
    bool is_known = json_count_members(hparams_get(hparams, "rope_scaling")) == 3;
    if (strcasecmp(type, "longrope") == 0 || strcasecmp(type, "su") == 0 || (is_known && strcmp(type, "yarn") == 0))
        *ret_factor = scale > 1 ? sqrt(1 + log(scale) / log(original)) : 1.0;
    else if (strcasecmp(type, "yarn") == 0)
        *ret_factor = scale > 1 ? 0.1 * log(scale) + 1.0 : 1.0;
    else
        return error_set(error, "config.json: Phi 3 has no rope scaling of type '%.64s'", type);
    return true;
}

static bool add_factors(struct model_builder *builder, const char *name, const struct json *array, uint64_t n_expected,
                        struct error *error)
{
    uint64_t n_factors = json_count(array);
    if (n_factors != n_expected || n_factors > MAX_FACTORS)
        return error_set(error, "config.json: rope_scaling has %zu factors, expected %zu", (size_t)n_factors,
                         (size_t)n_expected);
    struct arena *arena = builder->model->arena;
    float *factors = arena_array(arena, n_factors, sizeof *factors);
    const struct json *item = json_first(array);
    for (uint64_t i = 0; i < n_factors; i++, item = json_next(item)) {
        double value;
        if (!json_double(item, &value))
            return error_set(error, "config.json: a factor of rope_scaling is not a number");
        factors[i] = (float)value;
    }
    tensor_set_add_view(builder->model->tensors, name, view_numbers(arena, 1, &n_factors, factors));
    return true;
}

bool add_rope_factor_tensors(struct model_builder *builder, uint64_t n_factors, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *factors[] = {hparams_rope(hparams, "long_factor"), hparams_rope(hparams, "short_factor")};
    if (factors[0] == NULL && factors[1] == NULL)
        return true;
    return add_factors(builder, "rope_factors_long.weight", factors[0], n_factors, error) &&
           add_factors(builder, "rope_factors_short.weight", factors[1], n_factors, error);
}

/* Notes which factors llama.cpp takes: it goes by the context, not by the tokens that are in it. */
static void note_factors(struct model_builder *builder)
{
    const struct hparams *hparams = builder->model->hparams;
    double length, original;
    if (json_double(hparams_find(hparams, "n_positions|max_position_embeddings"), &length) &&
        json_double(hparams_rope(hparams, "original_max_position_embeddings"), &original) && length > original)
        checkpoint_note(
            builder->model->checkpoint, SUBJECT_GGUF,
            "with a context above %.0f tokens, the default, llama.cpp takes the rope's long factors for short "
            "prompts, too, and computes other values than transformers; for short prompts use -c %.0f",
            original, original);
}

bool phi3_add_rope_factors(struct model_builder *builder, struct error *error)
{
    double attention = 0, dimensions = 0;
    if (json_count(hparams_rope(builder->model->hparams, "long_factor")) == 0)
        return true;
    if (!attention_factor(builder, &attention, error) || !compute_rotary_of_hidden(builder, &dimensions, error))
        return false;
    if (dimensions < 0 || dimensions > 2.0 * MAX_FACTORS)
        return error_set(error, "config.json: partial_rotary_factor makes no sense");
    gguf_set_f32(&builder->model->kvs, builder_key(builder, "rope.scaling.attn_factor"), attention);
    note_factors(builder);
    return add_rope_factor_tensors(builder, (uint64_t)dimensions / 2, error);
}

static const struct config_row common_rows[] = {
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"original_max_position_embeddings", FROM_KEY, "rope.scaling.original_context_length"},
    {0},
};

const struct family phi3_family = {
    .name = "phi3",
    .summary = "Phi 3 and 4",
    .hf = FAMILY_NAMES({"Phi3ForCausalLM"}, {"Phi4ForCausalLMV"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv",
                         "(head d + kv_head k + kv_head v) ...", "head kv_head"},
                        {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"Phi3ForCausalLM", "phi3", "key:attention.sliding_window=0",
                           CONFIG_TABLES(silu_rows, common_rows, no_window_rows)},
                          {"Phi3ForCausalLM", "phi3", NULL, CONFIG_TABLES(silu_rows, common_rows)}),
    .keys = {phi3_keys},
    .vocabs = {&phi3_vocab, &hf_phi3_vocab, &bpe_vocab},
    .add_extras = phi3_add_rope_factors,
};

/* No key has the rope's factor: this is the only released model's. */
static const struct config_row phimoe_rows[] = {
    {"lm_head_bias", FROM_TENSOR, "output.bias"},
    {"rope_scaling.short_mscale", FROM_TEXT, .text = "1.243163121016122"},
    {"rope_scaling.long_mscale", FROM_TEXT, .text = "1.243163121016122"},
    {"rope_scaling.original_max_position_embeddings", FROM_KEY, "rope.scaling.original_context_length"},
    {0},
};

const struct family phimoe_family = {
    .name = "phimoe",
    .summary = "Phi 3.5 MoE",
    .hf = FAMILY_NAMES({"PhiMoEForCausalLM"}, {"PhimoeForCausalLM"}),
    .tensors = {sparse_moe_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"PhiMoEForCausalLM", "phimoe", "key:attention.sliding_window=0",
                      CONFIG_TABLES(silu_rows, attention_bias_rows, phimoe_rows, no_window_rows)},
                     {"PhiMoEForCausalLM", "phimoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, phimoe_rows)}),
    .keys = {phi3_keys, KEYS({"expert_used_count", GGUF_U32, REQUIRED, "num_experts_per_tok"},
                             {"expert_count", GGUF_U32, REQUIRED, "num_local_experts"})},
    .vocabs = {&phi3_vocab, &hf_phi3_vocab, &bpe_vocab},
    .add_extras = phi3_add_rope_factors,
};
