/* PLaMo 1 to 3. conversion/plamo.py. */
#include "formats/documents.h"
#include "models/families/layers.h"
#include "models/families/shared.h"
#include "models/tokenizers/tokenizer_files.h"
#include "quant/blocks/f16.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <inttypes.h>
#include <stdlib.h>

/* PLaMo 1 orders queries by their number for a key head first, llama.cpp by the key head. conversion/plamo.py has the
 * sizes of 13B, the only model, as constants; here they follow from config.json. */

#define PLAMO1_LAYER "model.layers.layers.{}."

static const struct relation_row plamo1_tensors[] = {
    {PLAMO1_LAYER "norm", "blk.{}.attn_norm"},
    {PLAMO1_LAYER "self_attn.q_proj.weight", "blk.{}.attn_q.weight", "(query kv_head d) c -> (kv_head query d) c",
     "kv_head/query"},
    {PLAMO1_LAYER "self_attn.k_proj", "blk.{}.attn_k", "(kv_head d) ...", "kv_head"},
    {PLAMO1_LAYER "self_attn.v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {PLAMO1_LAYER "self_attn.o_proj.weight", "blk.{}.attn_output.weight", "c (query kv_head d) -> c (kv_head query d)",
     "kv_head/query"},
    {PLAMO1_LAYER "mlp.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {PLAMO1_LAYER "mlp.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {PLAMO1_LAYER "mlp.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

static bool compute_kv_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = (double)dimensions_get(&builder->dimensions, "kv_head");
    return *ret_value > 0 ||
           error_set(error, "config.json: num_attention_heads is missing, or less than n_shared_head");
}

static const struct key_row plamo1_keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = 4096},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, .compute = compute_kv_heads},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    FILE_TYPE_KEY,
    {.emit = note_lost_rope},
    {0},
};

/* Corrects config.json's wrong num_key_value_heads. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    enum { N_SHARED = 8, MAX_SHARED = 1 << 16 };
    struct error unused;
    uint64_t n_shared;
    if (!hparams_count(hparams, "n_shared_head", 1, MAX_SHARED, &n_shared, &unused))
        n_shared = N_SHARED;
    dimensions_set(dimensions, "query", n_shared);
    dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head") / n_shared);
}

const struct family plamo_family = {
    .name = "plamo",
    .summary = "PLaMo 1",
    .hf = FAMILY_NAMES({"PlamoForCausalLM"}),
    .tensors = {plamo1_tensors, decoder_tensors},
    .keys = {plamo1_keys},
    .vocabs = {&spm_vocab},
    .add_dimensions = add_dimensions,
};

/* PLaMo 2: layers of Mamba and of attention. conversion/plamo.py. */

/* Adds a number, which is rounded to F16 for F16 tensors. */
static const struct view *add(struct arena *arena, enum direction direction, const struct view *view, float number)
{
    bool is_half = view->dtype == &f16_dtype;
    if (is_half)
        number = f16_to_f32(f16_from_f32(number));
    view = view_combine_number(arena, view, direction == FORWARD ? ADD : SUBTRACT, number);
    return view_convert(arena, view, is_half ? &f16_dtype : &f32_dtype);
}

static const struct view *add_fifth(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const struct view *view)
{
    return add(arena, direction, view, 0.2f);
}

static const struct view *add_root(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const struct view *view)
{
    return add(arena, direction, view, 0.08944271909999159f);
}

static const struct elementwise plus_fifth = {
    .forward_text = "x + 1/5",
    .backward_text = "x - 1/5",
    .apply = add_fifth,
    .exactness = "as that of x + 1",
};

static const struct elementwise plus_root_of_fifth = {
    .forward_text = "x + 1/5^1.5",
    .backward_text = "x - 1/5^1.5",
    .apply = add_root,
    .exactness = "as that of x + 1",
};

#define PLAMO2_LAYER "model.layers.layers.{}."
#define MIXER        PLAMO2_LAYER "mixer."

static const struct relation_row plamo2_tensors[] = {
    {"model.norm", "output_norm", .map = &plus_one},
    {PLAMO2_LAYER "pre_mixer_norm", "blk.{}.attn_norm", .map = &plus_one},
    {PLAMO2_LAYER "post_mixer_norm.weight", "blk.{}.post_attention_norm", .map = &plus_fifth},
    {PLAMO2_LAYER "pre_mlp_norm", "blk.{}.ffn_norm", .map = &plus_one},
    {PLAMO2_LAYER "post_mlp_norm.weight", "blk.{}.post_ffw_norm", .map = &plus_root_of_fifth},
    {PLAMO2_LAYER "mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {PLAMO2_LAYER "mlp.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {MIXER "qkv_proj", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...", "head kv_head"},
    {MIXER "o_proj", "blk.{}.attn_output", .parallel = "column"},
    {0},
};

static const struct relation_row plamo2_layer_tensors[] = {
    {MIXER "q_weight", "blk.{}.attn_q_norm.weight"},
    {MIXER "k_weight", "blk.{}.attn_k_norm.weight"},
    {MIXER "in_proj", "blk.{}.ssm_in", .parallel = "row"},
    {MIXER "conv1d.weight", "blk.{}.ssm_conv1d.weight", "c 1 k -> c k", "c"},
    {MIXER "bcdt_proj", "blk.{}.ssm_x", .parallel = "column"},
    {MIXER "dt_proj.weight", "blk.{}.ssm_dt.weight", .parallel = "row"},
    {MIXER "dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"},
    {MIXER "A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {MIXER "D", "blk.{}.ssm_d", .parallel = "row"},
    {MIXER "out_proj", "blk.{}.ssm_out", .parallel = "column"},
    {MIXER "dt_norm_weight", "blk.{}.ssm_dt_norm"},
    {MIXER "B_norm_weight", "blk.{}.ssm_b_norm"},
    {MIXER "C_norm_weight", "blk.{}.ssm_c_norm"},
    {0},
};

static bool emit_heads(struct model_builder *builder, struct error *error)
{
    struct layers heads, kv_heads;
    double step, n_heads, n_kv_heads;
    if (json_is(hparams_get(builder->model->hparams, "mamba_enabled"), JSON_FALSE))
        return true;
    if (!layers_new(builder, &heads, error) || !layers_new(builder, &kv_heads, error) ||
        !builder_number(builder, "mamba_step", 2, &step, error) ||
        !builder_number(builder, "num_attention_heads", 32, &n_heads, error) ||
        !builder_number(builder, "num_key_value_heads", 4, &n_kv_heads, error))
        return false;
    if (!(step >= 1 && step <= INT32_MAX))
        return error_set(error, "config.json: mamba_step is not a number of layers");
    uint64_t period = (uint64_t)step, offset = period / 2;
    for (uint64_t i = 0; i < heads.n; i++) {
        bool has_attention = heads.n <= offset ? i == heads.n - 1 : i % period == offset;
        heads.values[i] = has_attention ? n_heads : 0;
        kv_heads.values[i] = has_attention ? n_kv_heads : 0;
    }
    return layers_set_i32(builder, "attention.head_count_kv", &kv_heads, error) &&
           layers_set_i32(builder, "attention.head_count", &heads, error);
}

static const struct key_row plamo2_keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {.emit = emit_heads},
    {"context_length", GGUF_U32, OR_DEFAULT, "max_position_embeddings", 2048},
    {"embedding_length", GGUF_U32, OR_DEFAULT, "hidden_size", 4096},
    {"attention.key_length", GGUF_U32, OR_DEFAULT, "hidden_size_per_head", 128},
    {"attention.value_length", GGUF_U32, OR_DEFAULT, "hidden_size_per_head", 128},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-6},
    {"rope.freq_base", GGUF_F32, OR_DEFAULT, "rope.rope_theta", 10000},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "mamba_d_state", 64},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "mamba_d_conv", 4},
    {"ssm.time_step_rank", GGUF_U32, OR_DEFAULT, "mamba_num_heads", 64},
    {"ssm.inner_size", GGUF_U32, OR_DEFAULT, "mamba_num_heads", 64, .by = "hidden_size_per_head", .otherwise = 128},
    {"ssm.group_count", GGUF_U32, ALWAYS, .value = 0},
    {"feed_forward_length", GGUF_U32, OR_DEFAULT, "intermediate_size", 13312},
    FILE_TYPE_KEY,
    {0},
};

const struct family plamo2_family = {
    .name = "plamo2",
    .summary = "PLaMo 2",
    .hf = FAMILY_NAMES({"Plamo2ForCausalLM"}, {"PLaMo2ForCausalLM"}),
    .tensors = {plamo2_layer_tensors, plamo2_tensors, decoder_tensors},
    .keys = {plamo2_keys},
    .vocabs = {&plamo_vocab},
};

/* PLaMo 3. conversion/plamo.py. */

/* Sets the layers with a window: a period, or a list. */
static bool emit_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row window_rows[] = {
        {"attention.sliding_window", GGUF_U32, REQUIRED, "window_size|sliding_window"}, {0}};
    static const struct key_row period_rows[] = {
        {"attention.sliding_window_pattern", GGUF_U32, REQUIRED, "sliding_window_pattern"}, {0}};
    const struct hparams *hparams = builder->model->hparams;
    const struct json *window = hparams_find(hparams, "window_size|sliding_window"),
                      *pattern = hparams_get(hparams, "sliding_window_pattern");
    struct layers layers;
    if (window == NULL || json_is(window, JSON_NULL))
        return true;
    if (!builder_emit(builder, window_rows, error))
        return false;
    if (!json_is(pattern, JSON_ARRAY))
        return builder_emit(builder, period_rows, error);
    if (!layers_new(builder, &layers, error))
        return false;
    if (json_count(pattern) != layers.n)
        return error_set(error, "config.json: sliding_window_pattern is not a list with a value for each layer");
    layers_fill(&layers, pattern);
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool add_chat_template(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    struct document *config;
    size_t length;
    bool absent;
    char *text = document_text(input->checkpoint, "chat_template.jinja", &length, &absent, error);
    if (text != NULL) {
        length = unify_newlines(text, length);
        if (length > 0)
            gguf_set_string(kvs, "tokenizer.chat_template", text, length);
        free(text);
        return true;
    }
    if (!absent || !document_open(input->checkpoint, "tokenizer_config.json", &config, error))
        return false;
    const char *said = json_string(json_get(document_root(config), "chat_template"), &length);
    if (said != NULL && length > 0)
        gguf_set_string(kvs, "tokenizer.chat_template", said, length);
    document_close(config);
    return true;
}

/* Adds the YaRN that the model's code makes of flat keys of config.json. */
static bool add_yarn(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t length;
    double factor;
    if (!builder_number(builder, "rope_scaling_factor", 1, &factor, error))
        return false;
    bool has_type = hparams_rope(model->hparams, "rope_type") != NULL;
    if (factor == 1 || has_type || !follows(&model->references, PLAMO_YARN))
        return true;
    if (!hparams_count(model->hparams, "initial_context_length", 1, INT32_MAX, &length, error))
        return false;
    const char *scaling =
        arena_printf(model->arena,
                     "{'rope_scaling': {'rope_type': 'yarn', 'factor': %.17g, "
                     "'original_max_position_embeddings': %llu, 'beta_fast': 32.0, 'beta_slow': 1.0}}",
                     factor, (unsigned long long)length);
    return hparams_default(model->hparams, scaling, error);
}

/* Returns the layers with a window, a list or a period, as the key has them; NULL: it is missing. */
static const char *make_pattern(const struct config_material *material)
{
    static const char key[] = "plamo3.attention.sliding_window_pattern";
    struct gguf_array array;
    struct error unused;
    uint64_t period;
    const char *list = "";
    if (gguf_get_u64(material->kvs, key, &period))
        return arena_printf(material->arena, "%" PRIu64, period);
    if (!gguf_get_array(material->kvs, key, material->arena, &array, &unused) || array.count > MAX_LISTED_LAYERS)
        return NULL;
    for (uint64_t i = 0; i < array.count && gguf_array_u64(&array, i, &period); i++)
        list = arena_printf(material->arena, "%s%s%s", list, i > 0 ? ", " : "", period != 0 ? "true" : "false");
    return arena_printf(material->arena, "[%s]", list);
}

static const struct config_row config_rows[] = {
    {"window_size", FROM_KEY, "attention.sliding_window"},
    {"sliding_window_pattern", .make = make_pattern},
    {"head_dim", FROM_KEY, "attention.key_length"},
    {"rope_local_theta", FROM_KEY, "rope.freq_base_swa"},
    {"rope_scaling_factor", FROM_KEY, "rope.scaling.factor"},
    {"initial_context_length", FROM_KEY, "rope.scaling.original_context_length"},
    {0},
};

const struct family plamo3_family = {
    .name = "plamo3",
    .summary = "PLaMo 3",
    .hf = FAMILY_NAMES({"Plamo3ForCausalLM"}, {"PLaMo3ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.layers.{}.mixer.q_norm", "blk.{}.attn_q_norm", .map = &plus_one},
                        {"model.layers.layers.{}.mixer.k_norm", "blk.{}.attn_k_norm", .map = &plus_one}),
                plamo2_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Plamo3ForCausalLM", "plamo3", NULL, CONFIG_TABLES(silu_rows, config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"}, {.emit = emit_window})},
    .vocabs = {&plamo_vocab},
    .adjust = add_yarn,
    .after_vocab = add_chat_template,
};
