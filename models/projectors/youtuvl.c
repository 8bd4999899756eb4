/* Youtu-VL: vision encoder, a SigLIP 2. conversion/youtuvl.py. */
#include "models/projectors/projector.h"

/* Leaves out unknown tensors, as the converter does. */
static const struct relation_row other_tensors[] = {{"*", NULL}, {0}};

static bool adjust(struct model_builder *builder, struct error *error)
{
    return hparams_default(builder->model->hparams, "{'image_size': 560}", error);
}

static bool emit_any_activation(struct model_builder *builder, struct error *error)
{
    static const char *const gelus[] = {"gelu", "gelu_pytorch_tanh", "gelu_fast", "gelu_new", "gelu_accurate"};
    static const struct key_row gelu[] = {FLAG("use_gelu"), {0}};
    const struct json *function = hparams_get(builder->model->hparams, "hidden_act");
    bool is_gelu = function == NULL;
    for (size_t i = 0; i < sizeof gelus / sizeof *gelus; i++)
        is_gelu |= json_string_is(function, gelus[i]);
    return is_gelu ? builder_emit(builder, gelu, error) : emit_activation(builder, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("youtuvl"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {.emit = emit_any_activation},
    {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "spatial_merge_size", 2},
    {"vision.window_size", GGUF_U32, IF_PRESENT, "window_size"},
    {"vision.wa_layer_indexes", GGUF_U32, REQUIRED, "fullatt_block_indexes"},
    {0},
};

const struct family youtuvl_projector = {
    .name = "youtuvl",
    .summary = "Youtu-VL (vision encoder)",
    .hf = FAMILY_NAMES({"YoutuVLForConditionalGeneration"}),
    .tensors = {TENSORS({"^embeddings.position_embedding.*", NULL}, {"merger.ln_q", "mm.input_norm"},
                        {"merger.mlp.{}", "mm.{}"}),
                siglip_tensors, other_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "siglip2.vision_model.",
    .dropped_prefixes = TEXTS("siglip2.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("siglip2.", "merger.")),
    .adjust = adjust,
};
