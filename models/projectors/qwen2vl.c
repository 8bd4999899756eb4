/* Qwen2-VL, also for Sarashina 2.2 Vision, and Qwen2.5-VL, also for Fast-dVLM: vision encoders. conversion/qwenvl.py,
 * Qwen2VLVisionModel. */
#include "models/projectors/projector.h"

#include <inttypes.h>

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

static const struct key_row second_keys[] = {
    PROJECTOR_TYPE("qwen2.5vl_merger"),
    FLAG("use_silu"),
    {"vision.n_wa_pattern", GGUF_U32, .compute = compute_window_pattern},
    {0},
};

static const char *const dropped_prefixes[] = {"model.", NULL};
static const struct tower tower = {.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")};

const struct family qwen2vl_projector = {
    .name = "qwen2vl_merger",
    .summary = "Qwen2-VL and Sarashina 2.2 Vision (vision encoder)",
    .hf = names,
    .tensors = {qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, first_keys, last_keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
    .applies = is_first,
    .adjust = adjust_first,
};

const struct family qwen2_5vl_projector = {
    .name = "qwen2.5vl_merger",
    .summary = "Qwen2.5-VL (vision encoder)",
    .hf = names,
    .tensors = {qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, second_keys, last_keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
    .applies = is_second,
    .adjust = adjust_second,
};

const struct family fast_dvlm_projector = {
    .name = "qwen2.5vl_merger, Fast-dVLM",
    .summary = "Fast-dVLM (vision encoder)",
    .hf = names,
    .tensors = {qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, second_keys,
             KEYS({"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
                  {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"}),
             last_keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
    .applies = is_fast,
    .adjust = adjust_second,
};
