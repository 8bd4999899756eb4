/* Granite 4 Vision: vision encoder, a SigLIP, and a Q-Former for each text layer that gets its results.
 * conversion/granite.py, Granite4VisionMmprojModel. */
#include "base/text.h"
#include "models/families/granite.h"
#include "models/families/layers.h"
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A checkpoint counts projectors by kind, a GGUF all together: see `rename`. */
static const struct relation_row tensors[] = {
    {"image_newline", "v.image_newline"},
    {"projectors.{}.image_positions", "v.proj_blk.{}.img_pos"},
    {"projectors.{}.query", "v.proj_blk.{}.query"},
    {"projectors.{}.norm", "v.proj_blk.{}.norm"},
    {"projectors.{}.out_linear", "v.proj_blk.{}.linear"},
    {"projectors.{}.qformer.layernorm", "v.proj_blk.{}.post_norm"},
    {"projectors.{}.qformer.encoder.layer.0.attention.attention.query", "v.proj_blk.{}.self_attn_q"},
    {"projectors.{}.qformer.encoder.layer.0.attention.attention.key", "v.proj_blk.{}.self_attn_k"},
    {"projectors.{}.qformer.encoder.layer.0.attention.attention.value", "v.proj_blk.{}.self_attn_v"},
    {"projectors.{}.qformer.encoder.layer.0.attention.output.dense", "v.proj_blk.{}.self_attn_out"},
    {"projectors.{}.qformer.encoder.layer.0.attention.output.LayerNorm", "v.proj_blk.{}.self_attn_norm"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.attention.query", "v.proj_blk.{}.cross_attn_q"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.attention.key", "v.proj_blk.{}.cross_attn_k"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.attention.value", "v.proj_blk.{}.cross_attn_v"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.output.dense", "v.proj_blk.{}.cross_attn_out"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.output.LayerNorm", "v.proj_blk.{}.cross_attn_norm"},
    {"projectors.{}.qformer.encoder.layer.0.intermediate_query.dense", "v.proj_blk.{}.ffn_up"},
    {"projectors.{}.qformer.encoder.layer.0.output_query.dense", "v.proj_blk.{}.ffn_down"},
    {"projectors.{}.qformer.encoder.layer.0.output_query.LayerNorm", "v.proj_blk.{}.ffn_norm"},
    {"^head.*", NULL},
    {0},
};

/* Dimensions with each projector's number in a GGUF plus one, since 0 is unknown. */
static const char *const number_dimensions[GRANITE_VISION_KINDS][GRANITE_VISION_MOST] = {
    {"layerwise 0", "layerwise 1", "layerwise 2", "layerwise 3", "layerwise 4", "layerwise 5", "layerwise 6",
     "layerwise 7"},
    {"spatial 0", "spatial 1", "spatial 2", "spatial 3", "spatial 4", "spatial 5", "spatial 6", "spatial 7"},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    struct granite_projectors projectors;
    struct error unused;
    if (!granite_projectors_read(hparams_raw(hparams), &projectors, &unused))
        return;
    for (unsigned i = 0; i < projectors.n; i++)
        dimensions_set(dimensions, number_dimensions[projectors.list[i].kind][projectors.list[i].number], i + 1);
}

static const char *rename_projector(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const char *name)
{
    static const char *const kinds[] = {"layerwise_projectors.", "spatial_projectors."}, all[] = "projectors.";
    for (unsigned kind = 0; kind < GRANITE_VISION_KINDS; kind++)
        for (unsigned i = 0; i < GRANITE_VISION_MOST; i++) {
            char from[40], to[40];
            uint64_t number = dimensions_get(dimensions, number_dimensions[kind][i]);
            if (number == 0)
                continue;
            snprintf(from, sizeof from, "%s%u.", kinds[kind], i);
            snprintf(to, sizeof to, "%s%" PRIu64 ".", all, number - 1);
            const char *old = direction == FORWARD ? from : to;
            if (text_starts_with(name, old))
                return arena_printf(arena, "%s%s", direction == FORWARD ? to : from, name + strlen(old));
        }
    return name;
}

static bool emit_rate(struct model_builder *builder, struct error *error)
{
    const char *rate = json_string(hparams_get(builder->model->hparams, "outer.downsample_rate"), NULL);
    uint32_t query, window;
    char rest;
    if (rate == NULL || sscanf(rate, "%" SCNu32 "/%" SCNu32 "%c", &query, &window, &rest) != 2)
        return error_set(error, "config.json: downsample_rate is not as in \"1/4\"");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "vision.projector.query_side"), query);
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "vision.projector.window_side"), window);
    return true;
}

static bool emit_layers(struct model_builder *builder, struct error *error)
{
    double vision_layers[GRANITE_VISION_ALL], offsets[GRANITE_VISION_ALL];
    struct granite_projectors projectors;
    if (!granite_projectors_read(hparams_raw(builder->model->hparams), &projectors, error))
        return false;
    for (unsigned i = 0; i < projectors.n; i++) {
        const struct granite_projector *one = &projectors.list[i];
        vision_layers[i] = (double)one->vision_layer;
        offsets[i] = one->kind == GRANITE_SPATIAL ? (double)one->number : -1;
    }
    return layers_set_i32(builder, "vision.feature_layer", &(struct layers){projectors.n, vision_layers}, error) &&
           layers_set_i32(builder, "vision.projector.spatial_offsets", &(struct layers){projectors.n, offsets}, error);
}

/* Sets the sizes of images, which config.json lists with the height first. */
static bool emit_pinpoints(struct model_builder *builder, struct error *error)
{
    const struct json *list = hparams_get(builder->model->hparams, "outer.image_grid_pinpoints");
    struct layers sizes = {.n = 0};
    if (json_count(list) == 0)
        return true;
    sizes.values = arena_array(builder->model->arena, 2 * json_count(list), sizeof *sizes.values);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        uint64_t height, width;
        if (json_count(item) != 2 || !json_u64(json_first(item), &height) ||
            !json_u64(json_next(json_first(item)), &width) || height > INT32_MAX || width > INT32_MAX)
            return error_set(error,
                             "config.json: image_grid_pinpoints has an element that is not a height and a width");
        sizes.values[sizes.n++] = (double)width;
        sizes.values[sizes.n++] = (double)height;
    }
    return layers_set_i32(builder, "vision.image_grid_pinpoints", &sizes, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("granite4_vision"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    FLAG("use_gelu"),
    {"vision.preproc_image_size", GGUF_U32, OR_DEFAULT, "image_size", 384},
    {.emit = emit_rate},
    {.emit = emit_layers},
    {.emit = emit_pinpoints},
    {0},
};

const struct family granite4_vision_projector = {
    .name = "granite4_vision",
    .summary = "Granite 4 Vision (vision encoder)",
    .hf = FAMILY_NAMES({"Granite4VisionForConditionalGeneration"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.", "vision_tower.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.layerwise_projectors.", "model.spatial_projectors.",
                                  "model.image_newline")),
    .rename = rename_projector,
    .add_dimensions = add_dimensions,
};
