/* MiniCPM-V 4.6: vision encoder, a SigLIP with a merger between its layers. conversion/minicpm.py,
 * MiniCPMV4_6VisionModel. */
#include "models/families/layers.h"
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"^vit_merger.layer_norm1", "v.vit_merger.ln1", .when = "!sparse"},
    {"^vit_merger.self_attn.q_proj", "v.vit_merger.attn_q", .when = "!sparse"},
    {"^vit_merger.self_attn.k_proj", "v.vit_merger.attn_k", .when = "!sparse"},
    {"^vit_merger.self_attn.v_proj", "v.vit_merger.attn_v", .when = "!sparse"},
    {"^vit_merger.self_attn.out_proj", "v.vit_merger.attn_out", .when = "!sparse"},
    {"^vit_merger.pre_norm", "v.vit_merger.ds_ln", .when = "!sparse"},
    {"^vit_merger.linear_1", "v.vit_merger.ds_ffn_up", .when = "!sparse"},
    {"^vit_merger.linear_2", "v.vit_merger.ds_ffn_down", .when = "!sparse"},
    {"^vit_merger.*", NULL, .when = "sparse"},
    {"model.merger.mlp.0.pre_norm", "mm.input_norm"},
    {"model.merger.mlp.0.linear_1", "mm.up"},
    {"model.merger.mlp.0.linear_2", "mm.down"},
    {0},
};

/* Sets the size of an image's slices from the preprocessor, which may also drop the merger between the layers. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct json *mode = hparams_get(hparams, "preprocessor.downsample_mode");
    uint64_t size;
    if (json_string_is(mode, "4x"))
        dimensions_set(&builder->dimensions, "sparse", 1);
    else if (mode != NULL && !json_string_is(mode, "16x"))
        return error_set(error, "preprocessor_config.json: downsample_mode is neither 4x nor 16x");
    return !json_u64(hparams_get(hparams, "preprocessor.scale_resolution"), &size) ||
           hparams_override(hparams, "image_size", size, error);
}

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = dimensions_get(&builder->dimensions, "sparse") != 0 ? 2 : 4;
    return true;
}

static bool emit_merger_place(struct model_builder *builder, struct error *error)
{
    double layer;
    if (!builder_number(builder, "outer.insert_layer_id|insert_layer_id", 6, &layer, error))
        return false;
    const struct layers layers = {.n = 1, .values = &layer};
    return layers_set_i32(builder, "vision.wa_layer_indexes", &layers, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("minicpmv4_6"),
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {.emit = emit_merger_place},
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {0},
};

const struct family minicpmv_projector = {
    .name = "minicpmv4_6",
    .summary = "MiniCPM-V 4.6 (vision encoder)",
    .hf = FAMILY_NAMES({"MiniCPMV4_6ForConditionalGeneration"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "model.vision_tower.",
    .dropped_prefixes = TEXTS("model.vision_tower."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_tower.", "model.merger.")),
    .adjust = adjust,
};
