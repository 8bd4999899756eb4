/* Qwen3-VL and Qwen 3.5: vision encoder. conversion/qwen3vl.py, Qwen3VLVisionModel. */
#include "models/families/layers.h"
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <string.h>

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

static const struct key_row keys[] = {
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
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .rename = rename_deepstack,
    .add_dimensions = add_deepstack_dimensions,
    .adjust = adjust_image_of_positions,
};
