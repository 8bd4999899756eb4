/* MiMo-V2: sinks in layers with a window. conversion/mimo.py.
 *
 * The configuration lacks the number of layers that predict: the converter assumes 3. */
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/packings/packings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { N_PREDICTING = 3 };

/* Renames layers that predict, which are below model.mtp, and have another name for a norm. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char stored[] = "model.mtp.layers.", counted[] = "model.layers.";
    const char *prefix = direction == FORWARD ? stored : counted;
    uint64_t numbers[PATTERN_NUMBERS], first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    size_t length = strlen(prefix), digits;
    if (strncmp(name, prefix, length) != 0)
        return name;
    digits = strspn(name + length, "0123456789");
    if (name[length + digits] != '.' || !pattern_match("{}", name + length, digits, numbers))
        return name;
    if (direction == FORWARD)
        return arena_printf(arena, "%s%" PRIu64 "%s", counted, first + numbers[0], name + length + digits);
    if (numbers[0] < first)
        return name;
    const char *rest = name + length + digits;
    if (strcmp(rest, ".post_attention_layernorm.weight") == 0)
        rest = ".pre_mlp_layernorm.weight";
    return arena_printf(arena, "%s%" PRIu64 "%s", stored, numbers[0] - first, rest);
}

/* Marks the layers with a window, including those that predict; transformers 5 names the kinds of layers. */
static bool mark_window(const struct model_builder *builder, struct layers *layers, struct error *error)
{
    const struct json *pattern = hparams_get(builder->model->hparams, "hybrid_layer_pattern"),
                      *types = hparams_get(builder->model->hparams, "layer_types");
    if (!layers_new(builder, layers, error))
        return false;
    if (!json_is(pattern, JSON_ARRAY) && !json_is(types, JSON_ARRAY))
        return error_set(error, "config.json: hybrid_layer_pattern is missing, or not a list");
    if (json_is(pattern, JSON_ARRAY))
        layers_fill(layers, pattern);
    else
        layers_mark(layers, types, "sliding_attention");
    for (uint64_t i = layers->n - dimensions_get(&builder->dimensions, "nextn"); i < layers->n; i++)
        layers->values[i] = 1;
    return true;
}

static bool emit_windows(struct model_builder *builder, struct error *error)
{
    struct layers window, kv_heads;
    double n_full, n_window, size;
    /* the class of transformers 5 has no key for its twice as many heads */
    bool has_types = hparams_get(builder->model->hparams, "hybrid_layer_pattern") == NULL;
    if (!mark_window(builder, &window, error) || !layers_new(builder, &kv_heads, error) ||
        !builder_number(builder, "num_key_value_heads", -1, &n_full, error) ||
        !builder_number(builder, "swa_num_key_value_heads", has_types ? 2 * n_full : -1, &n_window, error) ||
        !builder_number(builder, "sliding_window", -1, &size, error))
        return false;
    if (n_full < 0 || n_window < 0 || !(size >= 0 && size <= UINT32_MAX))
        return error_set(error,
                         "config.json: num_key_value_heads, swa_num_key_value_heads or sliding_window is missing");
    for (uint64_t i = 0; i < window.n; i++)
        kv_heads.values[i] = window.values[i] == 1 ? n_window : n_full;
    if (!layers_set_i32(builder, "attention.head_count_kv", &kv_heads, error))
        return false;
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), (uint32_t)size);
    return layers_set_i32(builder, "attention.sliding_window_pattern", &window, error);
}

static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return rotary_of_head_dim(builder, NAN, ret_value, error);
}

/* The class of transformers 5 has another key for it. */
static bool compute_epsilon(const struct model_builder *builder, double *ret_value, struct error *error)
{
    bool has_types = hparams_get(builder->model->hparams, "hybrid_layer_pattern") == NULL;
    return builder_number(builder, has_types ? "layernorm_epsilon|rms_norm_eps" : "layernorm_epsilon", 1e-5, ret_value,
                          error);
}

static const struct key_row keys[] = {
    {.emit = emit_windows},
    {"attention.value_length", GGUF_U32, REQUIRED, "v_head_dim"},
    {"expert_count", GGUF_U32, REQUIRED, "n_routed_experts"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, .compute = compute_epsilon},
    {"attention.value_scale", GGUF_F32, IF_PRESENT, "attention_value_scale"},
    {.emit = nextn_emit},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    nextn_set(dimensions, N_PREDICTING);
}

static const char *make_rope(const struct config_material *material)
{
    double rotary, head_dim, base = 1e4, base_window = 1e4;
    char digits[3][JSON_FLOAT_TEXT];
    if (!config_number_of_layer(material, "rope.dimension_count", 0, &rotary) ||
        !config_number_of_layer(material, "attention.key_length", 0, &head_dim) || head_dim <= 0)
        return NULL;
    gguf_get_f64(material->kvs, "mimo2.rope.freq_base", &base);
    gguf_get_f64(material->kvs, "mimo2.rope.freq_base_swa", &base_window);
    static const char text[] = "\n      \"partial_rotary_factor\": %s,\n      \"rope_theta\": %s,"
                               "\n      \"rope_type\": \"default\"\n    }";
    const char *share = json_f64_text(rotary / head_dim, digits[0]),
               *full = arena_printf(material->arena, text, share, json_f32_text((float)base, digits[1])),
               *window = arena_printf(material->arena, text, share, json_f32_text((float)base_window, digits[2]));
    return arena_printf(material->arena, "{\n    \"full_attention\": {%s,\n    \"sliding_attention\": {%s\n  }", full,
                        window);
}

/* Rows as released, and transformers' own: its class has twice as many key heads in layers with a window. */
static const struct config_row config_rows[] = {
    {"rms_norm_eps", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {"num_key_value_heads", FROM_UNMARKED, "attention.head_count_kv", "attention.sliding_window_pattern"},
    {"swa_num_attention_heads", FROM_KEY, "attention.head_count"},
    {"swa_num_key_value_heads", FROM_MARKED, "attention.head_count_kv", "attention.sliding_window_pattern"},
    {"swa_head_dim", FROM_KEY, "attention.key_length"},
    {"swa_v_head_dim", FROM_KEY, "attention.value_length"},
    {"rope_theta", FROM_NOWHERE},
    {"rope_parameters", .make = make_rope},
    {"sliding_window", FROM_KEY, "attention.sliding_window"},
    {"sliding_window_size", FROM_KEY, "attention.sliding_window"},
    {"add_swa_attention_sink_bias", FROM_TEXT, .text = "true"},
    {"add_full_attention_sink_bias", FROM_TEXT, .text = "false"},
    {"attention_value_scale", FROM_KEY, "attention.value_scale", .text = "null"},
    {"hybrid_layer_pattern", FROM_LAYERS, "attention.sliding_window_pattern", "1|0"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"moe_layer_freq", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "1|0"},
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"n_shared_experts", FROM_TEXT, .text = "null"},
    {"n_group", FROM_KEY, "expert_group_count", .text = "1"},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {"topk_method", FROM_TEXT, .text = "'noaux_tc'"},
    {"scoring_func", .make = config_gating_function, .text = "'sigmoid'"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {"routed_scaling_factor", FROM_TEXT, .text = "null"},
    {0},
};

static bool has_blocks(const struct gguf_model *model)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (strcmp(model->tensors->tensors[i].view->dtype->name, "MXFP4") == 0)
            return true;
    return false;
}

static bool refuse_blocks(struct model_builder *builder, struct error *error)
{
    return !has_blocks(builder->model) || follows_or_refuse(&builder->model->references, MIMO_MXFP4, error);
}

static bool note_scales(struct model_builder *builder, struct error *error)
{
    const struct packed_weights *packed = packings_of(builder->model->checkpoint);
    (void)error;
    for (size_t i = 0; i < packed->found.n_weights; i++) {
        const struct unpacked *weight = &packed->found.weights[i];
        if (weight->refusal == NULL && weight->forms->mended == MIMO_SCALES) {
            checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                            "the queries, keys and values of the layers that predict have wrong scales, as in files of "
                            "llama.cpp b%u and older builds",
                            change_rows[MIMO_SCALES].absent);
            return true;
        }
    }
    return true;
}

/* Puts experts that keep their blocks first, as the converter does. */
static void arrange(struct model_builder *builder)
{
    enum { FILE_TYPE_MXFP4 = 38 };
    static const char *const experts[] = {"blk.{}.ffn_down_exps.weight", "blk.{}.ffn_gate_exps.weight",
                                          "blk.{}.ffn_up_exps.weight", NULL};
    struct gguf_model *model = builder->model;
    if (!has_blocks(model))
        return;
    builder_put_first(builder, experts);
    model->packed_file_type = FILE_TYPE_MXFP4;
}

const struct family mimo2_family = {
    .name = "mimo2",
    .summary = "MiMo-V2",
    .hf = FAMILY_NAMES({"MiMoV2FlashForCausalLM"}, {"MiMoV2ForCausalLM"}),
    .folder = "audio_tokenizer", /* for models/projectors/mimo.c */
    .tensors = {TENSORS(
                    {"model.layers.{}.self_attn.attention_sink_bias", "blk.{}.attn_sinks.weight", .parallel = "row"},
                    {"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv", .parallel = "row"},
                    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm", .forward_only = true},
                    {"model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"}),
                nextn_tensors, expert_gate_first_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"MiMoV2ForCausalLM", "mimo_v2", "tensor:blk.0.attn_qkv.weight",
         CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows), OWN_CLASS_NOTE},
        {"MiMoV2FlashForCausalLM", "mimo_v2_flash", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)}),
    .keys = {base_keys, KEYS({.emit = refuse_blocks, .until = MIMO_MXFP4}, {.emit = note_scales, .until = MIMO_SCALES}),
             keys},
    .exports_mtp = true,
    .mtp_since = MTP_OF_MIMO,
    .vocabs = {&bpe_vocab},
    .keeps_mxfp4 = true,
    .rename = rename_tensor,
    .renamed_late = "model.mtp.",
    .add_dimensions = add_dimensions,
    .adjust = nextn_count_blocks,
    .arrange = arrange,
};
