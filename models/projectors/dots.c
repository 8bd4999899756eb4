/* The encoders of the dots models. */
#include "models/families/layers.h"
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <string.h>

/* dots.ocr: vision encoder. conversion/dotsocr.py. */

static const struct relation_row dots_ocr_tensors[] = {
    {"vision_tower.patch_embed.patchifier.proj", "v.patch_embd"},
    {"vision_tower.patch_embed.patchifier.norm", "v.pre_ln"},
    {"vision_tower.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"},
    {"vision_tower.blocks.{}.attn.proj", "v.blk.{}.attn_out"},
    {"vision_tower.blocks.{}.norm1", "v.blk.{}.ln1"},
    {"vision_tower.blocks.{}.norm2", "v.blk.{}.ln2"},
    {"vision_tower.blocks.{}.mlp.fc1", "v.blk.{}.ffn_gate"},
    {"vision_tower.blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"vision_tower.blocks.{}.mlp.fc3", "v.blk.{}.ffn_up"},
    {"vision_tower.post_trunk_norm", "mm.post_norm"},
    {"vision_tower.merger.ln_q", "mm.input_norm"},
    {"vision_tower.merger.mlp.{}", "mm.{}"},
    {0},
};

/* Sets image_size, a required key, to 0: images have any size. */
static bool dots_ocr_adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "image_size", 0, error);
}

static const struct key_row dots_ocr_keys[] = {
    PROJECTOR_TYPE("dots_ocr"),
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, REQUIRED, "spatial_merge_size"},
    FLAG("use_silu"),
    {0},
};

const struct family dots_ocr_projector = {
    .name = "dots_ocr",
    .summary = "dots.ocr (vision encoder)",
    .hf = FAMILY_NAMES({"DotsOCRForCausalLM"}),
    .tensors = {dots_ocr_tensors},
    .keys = {tower_keys, vision_keys, dots_ocr_keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("vision_tower.")),
    .adjust = dots_ocr_adjust,
};

/* dots3-note: vision encoder, with experts in some blocks, and audio encoder. conversion/dots3.py,
 * Dots3NoteMmprojModel. */

#define BLOCK  "vision_encoder.blocks.{}."
#define SPEECH "audio_encoder.dots_encoder.speech_encoder."

static const struct relation_row dots3note_tensors[] = {
    {"vision_encoder.patch_embed.proj", "v.patch_embd"},
    {"vision_encoder.patch_embed.norm", "v.pre_ln"},
    {"vision_encoder.post_trunk_norm", "mm.post_norm"},
    {"vision_encoder.adapter.ln_q", "mm.input_norm"},
    {"vision_encoder.adapter.mlp.{}", "mm.{}"},
    {BLOCK "norm_1", "v.blk.{}.ln1"},
    {BLOCK "norm_2", "v.blk.{}.ln2"},
    {BLOCK "attn.qkv", "v.blk.{}.attn_qkv"},
    {BLOCK "attn.proj", "v.blk.{}.attn_out"},
    {BLOCK "attn.q_norm", "v.blk.{}.attn_q_norm"},
    {BLOCK "attn.k_norm", "v.blk.{}.attn_k_norm"},
    {BLOCK "mlp.fc1", "v.blk.{}.ffn_gate"},
    {BLOCK "mlp.fc2", "v.blk.{}.ffn_down"},
    {BLOCK "mlp.fc3", "v.blk.{}.ffn_up"},
    {BLOCK "mlp.gate_weight", "v.blk.{}.ffn_gate_inp.weight"},
    {BLOCK "mlp.router_bias", "v.blk.{}.exp_probs_b.weight"},
    {BLOCK "mlp.experts.{}.fc1.weight", "v.blk.{}.ffn_gate_exps.{}.weight"}, /* see stack_experts() */
    {BLOCK "mlp.experts.{}.fc2.weight", "v.blk.{}.ffn_down_exps.{}.weight"},
    {BLOCK "mlp.experts.{}.fc3.weight", "v.blk.{}.ffn_up_exps.{}.weight"},
    {SPEECH "conv2d{}", "a.conv2d.{}"},
    {SPEECH "conv_out", "a.conv_out"},
    {SPEECH "layer_norm", "a.post_ln"},
    {SPEECH "layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"},
    {SPEECH "layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"},
    {SPEECH "layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"},
    {SPEECH "layers.{}.self_attn.out_proj", "a.blk.{}.attn_out"},
    {SPEECH "layers.{}.self_attn_layer_norm", "a.blk.{}.ln1"},
    {SPEECH "layers.{}.final_layer_norm", "a.blk.{}.ln2"},
    {SPEECH "layers.{}.fc1.weight", "a.blk.{}.ffn_gate.weight, a.blk.{}.ffn_up.weight",
     "(gate + up) c -> gate c, up c"},
    {SPEECH "layers.{}.fc1.bias", "a.blk.{}.ffn_gate.bias, a.blk.{}.ffn_up.bias", "(gate + up) -> gate, up"},
    {SPEECH "layers.{}.fc2", "a.blk.{}.ffn_down"},
    {"audio_encoder.audio_adapter.proj.0", "mm.a.norm_pre"},
    {"audio_encoder.audio_adapter.proj.{}", "mm.a.mlp.{}"},
    {0},
};

static bool is_text(const struct hparams *hparams, const char *key, const char *text)
{
    return json_string_is(hparams_get(hparams, key), text);
}

static bool is_on(const struct hparams *hparams, const char *key)
{
    double number;
    const struct json *value = hparams_get(hparams, key);
    return json_double(value, &number) ? number != 0 : json_bool(value, false);
}

static bool check_vision(const struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double scale, frames;
    if (!builder_number(builder, "router_scale", 1, &scale, error) ||
        !builder_number(builder, "temporal_patch_size", 1, &frames, error))
        return false;
    bool is_sigmoid =
        hparams_get(hparams, "router_scoring_func") == NULL || is_text(hparams, "router_scoring_func", "sigmoid");
    if (!is_text(hparams, "adapter_type", "patch_merger") || !is_on(hparams, "pre_pixel_shuffle"))
        return error_set(error, "config.json: adapter_type of the vision encoder is not 'patch_merger', or "
                                "pre_pixel_shuffle not true: other adapters are not supported");
    if (!is_sigmoid || scale != 1)
        return error_set(error, "config.json: router_scoring_func of the vision encoder is not 'sigmoid', or "
                                "router_scale not 1: other routers are not supported");
    return (frames == 1 && !is_on(hparams, "use_bias") && is_on(hparams, "use_qk_norm")) ||
           error_set(error, "config.json: this vision encoder (temporal_patch_size, use_bias, use_qk_norm) is not "
                            "supported");
}

#define AUDIO "outer.audio_config."

static bool check_audio(const struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double factor, seconds, share, base;
    if (!builder_number(builder, AUDIO "merge_factor", 1, &factor, error) ||
        !builder_number(builder, AUDIO "chunk_seconds", 0, &seconds, error) ||
        !builder_number(builder, AUDIO "rope_parameters.partial_rotary_factor", 0, &share, error) ||
        !builder_number(builder, AUDIO "rope_parameters.rope_theta", 0, &base, error))
        return false;
    bool is_known = is_on(hparams, AUDIO "use_conv2d_stem") && is_on(hparams, AUDIO "use_rope") &&
                    is_on(hparams, AUDIO "use_rms_norm") && !is_on(hparams, AUDIO "use_causal") &&
                    is_text(hparams, "audio.activation_function", "swiglu");
    if (!is_known)
        return error_set(error, "config.json: this audio encoder (use_conv2d_stem, use_rope, use_rms_norm, use_causal, "
                                "activation_function) is not supported");
    return (factor == 1 && seconds == 60 && share == 0.5 && base == 10000) ||
           error_set(error, "config.json: this audio encoder (merge_factor, chunk_seconds, rope_parameters) is not "
                            "supported");
}

enum { N_LAYERS = 128 }; /* the converter's count of a model with two towers */

/* Returns how many experts config.json gives a block: 0 for a dense one. */
static uint64_t count_experts(const struct model_builder *builder, uint64_t block)
{
    int64_t n_experts;
    const struct json *list = hparams_get(builder->model->hparams, "pyramid_num_routed");
    bool is_listed = block < N_LAYERS && json_is(list, JSON_ARRAY) && block < json_count(list);
    return is_listed && json_i64(json_at(list, block), &n_experts) && n_experts > 0 ? (uint64_t)n_experts : 0;
}

static const char *const parts[] = {BLOCK "mlp.experts.{}.fc1.weight", BLOCK "mlp.experts.{}.fc2.weight",
                                    BLOCK "mlp.experts.{}.fc3.weight"};

enum { N_PARTS = sizeof parts / sizeof *parts };

/* Checks that the next expert of the block has that part, too, of the same shape, and this expert the next part: so
 * that, where a block has one expert, it has all. */
static bool check_expert(const struct model_builder *builder, const struct tensor *tensor, size_t part,
                         uint64_t numbers[PATTERN_NUMBERS], struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    struct arena *arena = builder->model->arena;
    uint64_t n_experts = count_experts(builder, numbers[0]);
    if (numbers[1] >= n_experts)
        return error_set(error, "tensor '%s': pyramid_num_routed in config.json has %" PRIu64 " experts for this block",
                         tensor->name, n_experts);
    const char *beside = pattern_fill(arena, parts[(part + 1) % N_PARTS], numbers, "");
    numbers[1] = (numbers[1] + 1) % n_experts;
    const struct tensor *next = tensor_set_find_text(set, pattern_fill(arena, parts[part], numbers, ""));
    if (next == NULL || next->rank != tensor->rank || next->dtype != tensor->dtype ||
        memcmp(next->shape, tensor->shape, tensor->rank * sizeof *tensor->shape) != 0)
        return error_set(error, "tensor '%s': that of expert %" PRIu64 " is missing, or differs in shape or type",
                         tensor->name, numbers[1]);
    return tensor_set_find_text(set, beside) != NULL ||
           error_set(error, "tensor '%s' is missing beside '%s'", beside, tensor->name);
}

static bool check_experts(const struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < set->n_tensors; i++)
        for (size_t part = 0; part < N_PARTS; part++)
            if (pattern_match(parts[part], set->tensors[i].name, set->tensors[i].name_length, numbers) &&
                !check_expert(builder, &set->tensors[i], part, numbers, error))
                return false;
    return true;
}

/* Reports whether a tensor is part of an expert, and of which: the numbers are the block and the expert. */
static bool is_of_expert(const struct tensor *tensor, size_t *ret_part, uint64_t numbers[PATTERN_NUMBERS])
{
    static const char *const there[N_PARTS] = {"v.blk.{}.ffn_gate_exps.{}.weight", "v.blk.{}.ffn_down_exps.{}.weight",
                                               "v.blk.{}.ffn_up_exps.{}.weight"};
    for (*ret_part = 0; *ret_part < N_PARTS; ++*ret_part)
        if (pattern_match(there[*ret_part], tensor->name, tensor->name_length, numbers))
            return true;
    return false;
}

/* The experts of a block, until all are there. */
struct block_experts {
    const struct view **views[N_PARTS]; /* by expert */
    uint64_t n_left;
};

static void stack_block(struct model_builder *builder, struct tensor_set *set, const struct block_experts *block,
                        uint64_t number, uint64_t n_experts)
{
    static const char *const stacked[N_PARTS] = {"v.blk.{}.ffn_gate_exps.weight", "v.blk.{}.ffn_down_exps.weight",
                                                 "v.blk.{}.ffn_up_exps.weight"};
    struct arena *arena = builder->model->arena;
    const uint64_t numbers[PATTERN_NUMBERS] = {number};
    for (size_t part = 0; part < N_PARTS; part++)
        tensor_set_add_view(set, pattern_fill(arena, stacked[part], numbers, ""),
                            view_stack(arena, block->views[part], n_experts));
}

/* Stacks the experts of each block where its last tensor was: blocks differ in how many they have, which rows of the
 * table cannot say. */
static void stack_experts(struct model_builder *builder)
{
    struct arena *arena = builder->model->arena;
    const struct tensor_set *before = builder->model->tensors;
    struct tensor_set *set = tensor_set_new(arena);
    struct block_experts *blocks = arena_array(arena, N_LAYERS, sizeof *blocks);
    uint64_t numbers[PATTERN_NUMBERS];
    size_t part;
    memset(blocks, 0, N_LAYERS * sizeof *blocks);
    for (size_t i = 0; i < before->n_tensors; i++) {
        const struct tensor *tensor = &before->tensors[i];
        if (!is_of_expert(tensor, &part, numbers)) {
            tensor_set_add(set, tensor);
            continue;
        }
        struct block_experts *block = &blocks[numbers[0]];
        uint64_t n_experts = count_experts(builder, numbers[0]);
        if (block->views[0] == NULL) {
            for (size_t j = 0; j < N_PARTS; j++)
                block->views[j] = arena_array(arena, n_experts, sizeof *block->views[j]);
            block->n_left = n_experts * N_PARTS;
        }
        block->views[part][numbers[1]] = tensor_view(tensor, arena);
        if (--block->n_left == 0)
            stack_block(builder, set, block, numbers[0], n_experts);
    }
    builder->model->tensors = set;
}

/* Takes the width of the tower, which is embed_dim; images have any size. */
static bool dots3note_adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t width;
    if (!check_vision(builder, error) || !check_audio(builder, error) || !check_experts(builder, error) ||
        !hparams_count(hparams, "embed_dim", 1, UINT32_MAX, &width, error))
        return false;
    builder->dimensions.n_layers = N_LAYERS;
    return hparams_override(hparams, "hidden_size", width, error) && hparams_override(hparams, "image_size", 0, error);
}

/* Sets image_mean and image_std, of a section of the preprocessor's file or of the whole. */
static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    static const char *const rows[][3] = {
        {"vision.image_mean", "preprocessor.vision_config.image_mean", "preprocessor.image_mean"},
        {"vision.image_std", "preprocessor.vision_config.image_std", "preprocessor.image_std"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool has_own = hparams_get(builder->model->hparams, rows[i][1]) != NULL;
        if (!set_channels(builder, rows[i][0], rows[i][has_own ? 1 : 2], error))
            return false;
    }
    return true;
}

/* Sets the number of experts of each block; a negative one means a dense block, too. */
static bool emit_pyramid(struct model_builder *builder, struct error *error)
{
    const struct json *list = hparams_get(builder->model->hparams, "pyramid_num_routed");
    struct layers layers;
    if (!json_is(list, JSON_ARRAY))
        return error_set(error, "config.json: pyramid_num_routed of the vision encoder is missing, or not a list");
    if (!layers_of_list(builder, list, &layers, error))
        return false;
    layers_fill(&layers, list);
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = layers.values[i] > 0 ? layers.values[i] : 0;
    return layers_set_i32(builder, "vision.expert_count_per_layer", &layers, error);
}

static const struct key_row dots3note_keys[] = {
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "dots3note_v"},
    FLAG("use_silu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"vision.spatial_merge_size", GGUF_U32, REQUIRED, "spatial_merge_size"},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.vision_config.min_pixels|preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.vision_config.max_pixels|preprocessor.max_pixels"},
    {.emit = emit_pyramid},
    {"vision.expert_used_count", GGUF_U32, REQUIRED, "capacity_factor"},
    {"audio.projector_type", GGUF_STRING, ALWAYS, .text = "dots3note_a"},
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "audio.num_mel_bins"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    {0},
};

/* Routers' scores are close to each other, and convolutions come first. */
static const struct stored_type stored_types[] = {{"v.blk.{}.ffn_gate_inp.weight", &f32_dtype},
                                                  {"a.conv2d.{}.weight", &f32_dtype},
                                                  {"a.conv_out.weight", &f32_dtype},
                                                  {0}};

const struct family dots3note_projector = {
    .name = "dots3note_v",
    .summary = "dots3-note (vision and audio encoders)",
    .since = 10593,
    .hf = FAMILY_NAMES({"Dots3NoteForCausalLM"}, {"Dots3NoteForConditionalGeneration"}),
    .tensors = {dots3note_tensors},
    .keys = {tower_keys, vision_size_keys, KEYS({.emit = emit_normalization}), audio_keys, dots3note_keys},
    .tower = TOWER(.config = {.vision = "vision_config", .audio = "audio_config.whisper_config"},
                   .parts = TEXTS("vision_encoder.", "audio_encoder.")),
    .stored_types = stored_types,
    .adjust = dots3note_adjust,
    .arrange = stack_experts,
};
