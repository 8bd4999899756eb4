/* The encoders of Qwen's models, and of models that have them with a projector of their own. */
#include "base/text.h"
#include "models/families/layers.h"
#include "models/projectors/projector.h"
#include "quant/arithmetic/torch_functions.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Qwen2-VL, also for Sarashina 2.2 Vision, and Qwen2.5-VL, also for Fast-dVLM: vision encoders. conversion/qwenvl.py,
 * Qwen2VLVisionModel. */

static const struct family_name names[] = {{"Qwen2VLModel"},
                                           {"Qwen2VLForConditionalGeneration"},
                                           {"Qwen2_5_VLForConditionalGeneration"},
                                           {"Fast_dVLMForConditionalGeneration"},
                                           {"Sarashina2VisionForCausalLM"},
                                           {0}};

const struct relation_row qwen2_vision_tensors[] = {
    {"visual.patch_embed.proj.weight", "v.patch_embd.weight, v.patch_embd.weight.1", TWO_FRAMES},
    {"visual.blocks.{}.attn.qkv", "v.blk.{}.attn_q, v.blk.{}.attn_k, v.blk.{}.attn_v", THIRDS},
    {"visual.blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {"visual.blocks.{}.norm1", "v.blk.{}.ln1"},
    {"visual.blocks.{}.norm2", "v.blk.{}.ln2"},
    {"visual.blocks.{}.mlp.gate_proj", "v.blk.{}.ffn_gate", .when = "gated"},
    {"visual.blocks.{}.mlp.up_proj", "v.blk.{}.ffn_up", .when = "gated"},
    {"visual.blocks.{}.mlp.down_proj", "v.blk.{}.ffn_down", .when = "gated"},
    {"visual.blocks.{}.mlp.fc1", "v.blk.{}.ffn_up", .when = "!gated"},
    {"visual.blocks.{}.mlp.fc2", "v.blk.{}.ffn_down", .when = "!gated"},
    {"visual.merger.ln_q", "v.post_ln"},
    {"visual.merger.mlp.0", "mm.0"},
    {"visual.merger.mlp.2", "mm.2"},
    {0},
};

static bool is_first(const struct hparams *text)
{
    return json_string_is(json_get(hparams_raw(text), "model_type"), "qwen2_vl") ||
           json_string_is(json_first(json_get(hparams_raw(text), "architectures")), "Sarashina2VisionForCausalLM");
}

static bool is_second(const struct hparams *text)
{
    return json_string_is(json_get(hparams_raw(text), "model_type"), "qwen2_5_vl");
}

static bool is_fast(const struct hparams *text)
{
    return json_string_is(json_get(hparams_raw(text), "model_type"), "fast_dvlm");
}

/* Qwen2-VL's hidden_size is the width of the result; the converter uses it as the width of the inner layers.
 */
static bool adjust_first(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t width, hidden;
    if (!hparams_default(hparams, "{'image_size': 560}", error))
        return false;
    if (!json_u64(hparams_get(hparams, "embed_dim"), &width))
        return true;
    return hparams_count(hparams, "hidden_size", 1, UINT32_MAX, &hidden, error) &&
           hparams_override(hparams, "intermediate_size", hidden, error) &&
           hparams_override(hparams, "hidden_size", width, error);
}

static bool adjust_second(struct model_builder *builder, struct error *error)
{
    dimensions_set(&builder->dimensions, "gated", 1);
    return hparams_default(builder->model->hparams, "{'image_size': 560}", error);
}

bool compute_window_pattern(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *full = json_first(hparams_get(builder->model->hparams, "fullatt_block_indexes"));
    uint64_t first, index, previous;
    if (!json_u64(full, &first) || first >= UINT32_MAX)
        return error_set(error,
                         "config.json: fullatt_block_indexes is missing, or has an element that is not a number");
    previous = first;
    while ((full = json_next(full)) != NULL) {
        if (!json_u64(full, &index) || index - previous != first + 1)
            return error_set(error, "config.json: fullatt_block_indexes are not %" PRIu64 " apart", first + 1);
        previous = index;
    }
    *ret_value = (double)(first + 1);
    return true;
}

static const struct key_row first_keys[] = {PROJECTOR_TYPE("qwen2vl_merger"), {0}};

static const struct key_row last_keys[] = {
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "outer.rms_norm_eps", 1e-6}, {0}};

static const struct key_row qwen2vl_second_keys[] = {
    PROJECTOR_TYPE("qwen2.5vl_merger"),
    FLAG("use_silu"),
    {"vision.n_wa_pattern", GGUF_U32, .compute = compute_window_pattern},
    {0},
};

static const char *const qwen2vl_dropped_prefixes[] = {"model.", NULL};
static const struct tower qwen2vl_tower = {.config = {.vision = "vision_config"},
                                           .parts = TEXTS("visual.", "model.visual.")};

const struct family qwen2vl_projector = {
    .name = "qwen2vl_merger",
    .summary = "Qwen2-VL and Sarashina 2.2 Vision (vision encoder)",
    .hf = names,
    .tensors = {qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, first_keys, last_keys},
    .dropped_prefixes = qwen2vl_dropped_prefixes,
    .tower = &qwen2vl_tower,
    .applies = is_first,
    .adjust = adjust_first,
};

const struct family qwen2_5vl_projector = {
    .name = "qwen2.5vl_merger",
    .summary = "Qwen2.5-VL (vision encoder)",
    .hf = names,
    .tensors = {qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, qwen2vl_second_keys, last_keys},
    .dropped_prefixes = qwen2vl_dropped_prefixes,
    .tower = &qwen2vl_tower,
    .applies = is_second,
    .adjust = adjust_second,
};

const struct family fast_dvlm_projector = {
    .name = "qwen2.5vl_merger, Fast-dVLM",
    .summary = "Fast-dVLM (vision encoder)",
    .hf = names,
    .tensors = {qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, qwen2vl_second_keys,
             KEYS({"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
                  {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"}),
             last_keys},
    .dropped_prefixes = qwen2vl_dropped_prefixes,
    .tower = &qwen2vl_tower,
    .applies = is_fast,
    .adjust = adjust_second,
};

/* Qwen3-VL and Qwen 3.5: vision encoder. conversion/qwen3vl.py, Qwen3VLVisionModel. */

/* A checkpoint numbers deepstack_merger_list from 0, a GGUF by the layers that feed it: see `rename`. */
const struct relation_row qwen3_vision_tensors[] = {
    {"visual.patch_embed.proj.weight", "v.patch_embd.weight, v.patch_embd.weight.1", TWO_FRAMES},
    {"visual.patch_embed.proj.bias", "v.patch_embd.bias"},
    {"visual.pos_embed", "v.position_embd"},
    {"visual.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"},
    {"visual.blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {"visual.blocks.{}.norm1", "v.blk.{}.ln1"},
    {"visual.blocks.{}.norm2", "v.blk.{}.ln2"},
    {"visual.blocks.{}.mlp.linear_fc1", "v.blk.{}.ffn_up"},
    {"visual.blocks.{}.mlp.linear_fc2", "v.blk.{}.ffn_down"},
    {"visual.deepstack_merger_list.{}.norm", "v.deepstack.{}.norm"},
    {"visual.deepstack_merger_list.{}.linear_fc1", "v.deepstack.{}.fc1"},
    {"visual.deepstack_merger_list.{}.linear_fc2", "v.deepstack.{}.fc2"},
    {"visual.merger.norm", "v.post_ln"},
    {"visual.merger.linear_fc1", "mm.0"},
    {"visual.merger.linear_fc2", "mm.2"},
    {0},
};

/* Dimensions with the layers of deepstack_visual_indexes plus one, since 0 is unknown. */
static const char *const deepstack_dimensions[] = {"deepstack 0", "deepstack 1", "deepstack 2", "deepstack 3",
                                                   "deepstack 4", "deepstack 5", "deepstack 6", "deepstack 7"};
enum { MAX_DEEPSTACK = sizeof deepstack_dimensions / sizeof *deepstack_dimensions };

void add_deepstack_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    const struct json *item = json_first(hparams_get(hparams, "deepstack_visual_indexes"));
    for (size_t i = 0; item != NULL && i < MAX_DEEPSTACK; item = json_next(item), i++) {
        uint64_t layer;
        if (json_u64(item, &layer) && layer < MAX_LISTED_LAYERS)
            dimensions_set(dimensions, deepstack_dimensions[i], layer + 1);
    }
}

const char *rename_deepstack(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                             const char *name)
{
    static const char pattern[] = "visual.deepstack_merger_list.{}.*";
    uint64_t numbers[PATTERN_NUMBERS];
    if (!pattern_match(pattern, name, strlen(name), numbers))
        return name;
    const char *rest = strchr(name + strlen("visual.deepstack_merger_list."), '.');
    for (size_t i = 0; i < MAX_DEEPSTACK; i++) {
        uint64_t layer = dimensions_get(dimensions, deepstack_dimensions[i]);
        if (layer != 0 && numbers[0] == (direction == FORWARD ? i : layer - 1))
            return arena_printf(arena, "visual.deepstack_merger_list.%" PRIu64 "%s",
                                direction == FORWARD ? layer - 1 : i, rest);
    }
    return name;
}

bool emit_deepstack(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    struct layers layers;
    uint64_t n_layers;
    if (!hparams_count(hparams, "depth", 0, MAX_LISTED_LAYERS, &n_layers, error))
        return false;
    if (n_layers == 0)
        return true;
    builder->dimensions.n_layers = n_layers;
    if (!layers_new(builder, &layers, error))
        return false;
    const struct json *list = hparams_get(hparams, "deepstack_visual_indexes"), *item = json_first(list);
    if (json_count(list) > MAX_DEEPSTACK)
        return error_set(error, "config.json: deepstack_visual_indexes has %zu layers; the limit is %d",
                         json_count(list), MAX_DEEPSTACK);
    for (; item != NULL; item = json_next(item)) {
        uint64_t layer;
        if (!json_u64(item, &layer) || layer >= n_layers)
            return error_set(error, "config.json: deepstack_visual_indexes has an element that is not a layer");
        layers.values[layer] = 1;
    }
    layers_set(builder, "vision.is_deepstack_layers", GGUF_BOOL, &layers);
    return true;
}

static const struct key_row qwen3vl_keys[] = {
    PROJECTOR_TYPE("qwen3vl_merger"),
    FLAG("use_gelu"),
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "spatial_merge_size"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "text.rms_norm_eps", 1e-6},
    {.emit = emit_deepstack},
    {0},
};

const struct family qwen3vl_projector = {
    .name = "qwen3vl_merger",
    .summary = "Qwen3-VL (vision encoder)",
    .hf = FAMILY_NAMES({"Qwen3VLForConditionalGeneration"}, {"Qwen3VLMoeForConditionalGeneration"},
                       {"Qwen3_5ForConditionalGeneration"}, {"Qwen3_5MoeForConditionalGeneration"},
                       {"Qwen4ExpForConditionalGeneration", .since = 10662}),
    .tensors = {qwen3_vision_tensors},
    .keys = {tower_keys, vision_keys, qwen3vl_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .rename = rename_deepstack,
    .add_dimensions = add_deepstack_dimensions,
    .adjust = adjust_image_of_positions,
};

/* Qwen2.5-Omni, Qwen3-Omni and Qwen3-ASR: vision encoder, and audio encoder, Whisper's with computed positions.
 * conversion/qwenvl.py, Qwen25OmniModel, and conversion/qwen3vl.py, Qwen3OmniMmprojModel.
 *
 * The converter fails for Qwen3-Omni's vision encoder, because of a name that it gives the tensors itself; wfs writes
 * the names of Qwen3-VL. */

static const struct relation_row second_tensors[] = {
    {"visual.blocks.{}.attn.q", "v.blk.{}.attn_q"},
    {"visual.blocks.{}.attn.k", "v.blk.{}.attn_k"},
    {"visual.blocks.{}.attn.v", "v.blk.{}.attn_v"},
    {"audio_tower.ln_post", "a.post_ln"},
    {"audio_tower.proj", "mm.a.fc"},
    {"audio_tower.audio_bos_eos_token.*", NULL},
    {0},
};

/* Three convolutions first treat sound as an image. */
static const struct relation_row third_tensors[] = {
    {"audio_tower.conv2d{}.weight", "a.conv2d.{}.weight"},
    {"audio_tower.conv2d{}.bias", "a.conv2d.{}.bias", "c -> c 1 1"},
    {"audio_tower.conv_out", "a.conv_out"},
    {"audio_tower.ln_post", "a.post_ln"},
    {"audio_tower.proj{}", "mm.a.mlp.{}"},
    {0},
};

static const struct stored_type stored_types[] = {
    {"a.conv1d.{}.weight", &f16_dtype},
    {"a.conv2d.{}.weight", &f16_dtype},
    {"a.conv_out.weight", &f16_dtype},
    {0},
};

enum { N_POSITIONS = 1500, LEAST_WIDTH = 4, MOST_WIDTH = 1 << 13 }; /* the largest model has 1280 */

/* Computes the sines of each position and then the cosines, at frequencies from 1 down to 1/10000. Rounds where torch
 * rounds; but torch's sines are MKL's, which differ in the last bit for one value in twenty. */
static void compute_positions(float *positions, uint64_t width)
{
    uint64_t n = width / 2;
    float step = (float)-(log(10000) / (double)(n - 1));
    for (uint64_t i = 0; i < n; i++) {
        float frequency = exponential(step * (float)i);
        for (uint64_t at = 0; at < N_POSITIONS; at++) {
            float angle = (float)at * frequency;
            positions[at * 2 * n + i] = (float)sin((double)angle);
            positions[at * 2 * n + n + i] = (float)cos((double)angle);
        }
    }
}

static bool add_positions(struct model_builder *builder, struct error *error)
{
    struct arena *arena = builder->model->arena;
    uint64_t width;
    if (!hparams_count(builder->model->hparams, "audio.d_model", LEAST_WIDTH, MOST_WIDTH, &width, error))
        return false;
    uint64_t shape[] = {N_POSITIONS, width / 2 * 2};
    float *positions = arena_array(arena, N_POSITIONS * width, sizeof *positions);
    compute_positions(positions, width);
    tensor_set_add_view(builder->model->tensors, "a.position_embd.weight", view_numbers(arena, 2, shape, positions));
    return true;
}

/* Replaces the later models' vision names, which are Qwen2.5-VL's. */
static const char *rename_merger(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const here[] = {"ln_q.", "mlp.0.", "mlp.2."}, *const there[] = {"norm.", "linear_fc1.",
                                                                                       "linear_fc2."};
    static const char list[] = "visual.merger_list.", merger[] = "visual.merger.";
    if (direction == FORWARD && text_starts_with(name, list))
        name = arena_printf(arena, "visual.deepstack_merger_list.%s", name + strlen(list));
    bool is_merger = text_starts_with(name, merger) || strstr(name, "_merger_list.") != NULL;
    for (size_t i = 0; direction == FORWARD && is_merger && i < sizeof here / sizeof *here; i++) {
        const char *found = strstr(name, here[i]);
        if (found != NULL)
            name = arena_printf(arena, "%.*s%s%s", (int)(found - name), name, there[i], found + strlen(here[i]));
    }
    return rename_deepstack(arena, dimensions, direction, name);
}

static bool adjust_third(struct model_builder *builder, struct error *error)
{
    checkpoint_note(builder->model->checkpoint, SUBJECT_PROJECTOR,
                    "the part that sees is written as that of Qwen3-VL is, "
                    "where the converter fails");
    return adjust_image_of_positions(builder, error);
}

static const struct key_row sound_keys[] = {
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "audio.num_mel_bins"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "audio.layer_norm_eps", 1e-5},
    {0},
};

static const struct key_row qwen_omni_second_keys[] = {
    PROJECTOR_TYPE("qwen2.5o"),
    FLAG("use_silu"),
    {"vision.n_wa_pattern", GGUF_U32, .compute = compute_window_pattern},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "outer.rms_norm_eps", 1e-6},
    {0},
};

static const struct key_row third_keys[] = {
    FLAG("use_gelu"),
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "spatial_merge_size"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "text.rms_norm_eps", 1e-6},
    {.emit = emit_deepstack},
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "qwen3vl_merger"},
    {0},
};

static const struct key_row asr_keys[] = {{"audio.projector_type", GGUF_STRING, ALWAYS, .text = "qwen3a"}, {0}};

static const char *const parts[] = {"thinker.visual.", "thinker.audio_tower.", "visual.", "audio_tower.", NULL};
static const char *const qwen_omni_dropped_prefixes[] = {"thinker.", NULL};

#define AUDIO_CONFIG "thinker_config.audio_config"
static const struct tower both = {.config = {.vision = "thinker_config.vision_config", .audio = AUDIO_CONFIG},
                                  .parts = parts};

const struct family qwen2_5_omni_projector = {
    .name = "qwen2.5o",
    .summary = "Qwen2.5-Omni (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Qwen2_5OmniModel"}, {"Qwen2_5OmniForConditionalGeneration"}),
    .tensors = {second_tensors, qwen2_vision_tensors, whisper_tensors},
    .keys = {tower_keys, vision_keys, audio_keys, sound_keys, qwen_omni_second_keys},
    .dropped_prefixes = qwen_omni_dropped_prefixes,
    .tower = &both,
    .stored_types = stored_types,
    .add_extras = add_positions,
    .adjust = adjust_second,
};

const struct family qwen3_omni_projector = {
    .name = "qwen3o",
    .summary = "Qwen3-Omni (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Qwen3OmniMoeForConditionalGeneration"}),
    .tensors = {third_tensors, qwen3_vision_tensors, whisper_tensors},
    .keys = {tower_keys, vision_keys, audio_keys, sound_keys, third_keys, asr_keys},
    .dropped_prefixes = qwen_omni_dropped_prefixes,
    .tower = &both,
    .stored_types = stored_types,
    .add_extras = add_positions,
    .add_dimensions = add_deepstack_dimensions,
    .rename = rename_merger,
    .adjust = adjust_third,
};

const struct family qwen3_asr_projector = {
    .name = "qwen3a",
    .summary = "Qwen3-ASR (audio encoder)",
    .hf = FAMILY_NAMES({"Qwen3ASRForConditionalGeneration"}),
    .tensors = {third_tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, sound_keys, asr_keys},
    .dropped_prefixes = qwen_omni_dropped_prefixes,
    .tower = TOWER(.config = {.audio = AUDIO_CONFIG}, .parts = parts),
    .stored_types = stored_types,
    .add_extras = add_positions,
};

/* EXAONE 4.5: vision encoder, a Qwen2.5-VL whose heads share keys. conversion/exaone.py, Exaone4_5VisionModel. */

static bool exaone4_5_adjust(struct model_builder *builder, struct error *error)
{
    dimensions_set(&builder->dimensions, "gated", 1);
    return hparams_default(builder->model->hparams, "{'image_size': 560}", error);
}

static bool emit_windows(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"vision.n_wa_pattern", GGUF_U32, .compute = compute_window_pattern}, {0}};
    const struct json *full = hparams_get(builder->model->hparams, "fullatt_block_indexes");
    return !json_is(full, JSON_ARRAY) || json_count(full) == 0 || builder_emit(builder, rows, error);
}

static const struct key_row exaone4_5_keys[] = {
    PROJECTOR_TYPE("exaone4_5"),
    FLAG("use_silu"),
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {"vision.attention.head_count_kv", GGUF_U32, IF_PRESENT, "num_key_value_heads"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps|outer.rms_norm_eps", 1e-6},
    {"vision.window_size", GGUF_U32, IF_PRESENT, "window_size"},
    {.emit = emit_windows},
    {0},
};

const struct family exaone4_5_projector = {
    .name = "exaone4_5",
    .summary = "EXAONE 4.5 (vision encoder)",
    .hf = FAMILY_NAMES({"Exaone4_5_ForConditionalGeneration"}),
    .tensors = {TENSORS({"visual.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"}), qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, exaone4_5_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .adjust = exaone4_5_adjust,
};

/* Ling 3 VL: Qwen3-VL's vision encoder with a projector of its own. conversion/bailingmoe3.py,
 * BailingMoeV3VLVisionModel. */

static const struct relation_row tensors[] = {
    {"visual.merger.norm", "mm.input_norm"},
    {"linear_proj.0", "mm.0"},
    {"linear_proj.2", "mm.2"},
    {0},
};

static bool ling3vl_adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *width = hparams_get(hparams, "out_hidden_size");
    if (!json_bool(hparams_get(hparams, "disable_merger_proj"), false) || width == NULL || json_is(width, JSON_NULL))
        return error_set(error, "config.json: disable_merger_proj of the vision encoder is not true, or its "
                                "out_hidden_size is missing");
    return adjust_image_of_positions(builder, error);
}

static const struct key_row ling3vl_keys[] = {
    PROJECTOR_TYPE("ling3vl"),
    FLAG("use_gelu"),
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "spatial_merge_size"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "outer.text_config.rms_norm_eps", 1e-6},
    {0},
};

const struct family ling3vl_projector = {
    .name = "ling3vl",
    .summary = "Ling 3 VL (vision encoder)",
    .hf = FAMILY_NAMES({"BailingMoeV3VLForConditionalGeneration", .since = 11173}),
    .tensors = {tensors, qwen3_vision_tensors},
    .keys = {tower_keys, vision_keys, ling3vl_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.", "linear_proj.")),
    .rename = rename_deepstack,
    .add_dimensions = add_deepstack_dimensions,
    .adjust = ling3vl_adjust,
};
