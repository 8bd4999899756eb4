/* Step3-VL and Step 3.7: vision encoder. conversion/step3.py, Step3VLVisionModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"vision_model.conv1", "v.patch_embd"},
    {"vision_model.positional_embedding", "v.position_embd.weight"},
    {"vision_model.ln_pre", "v.pre_ln"},
    {"vision_model.transformer.resblocks.{}.ln_1", "v.blk.{}.ln1"},
    {"vision_model.transformer.resblocks.{}.ln_2", "v.blk.{}.ln2"},
    {"vision_model.transformer.resblocks.{}.ls_1.gamma", "v.blk.{}.ls1.weight"},
    {"vision_model.transformer.resblocks.{}.ls_2.gamma", "v.blk.{}.ls2.weight"},
    {"vision_model.transformer.resblocks.{}.attn.in_proj_weight", "v.blk.{}.attn_qkv.weight"},
    {"vision_model.transformer.resblocks.{}.attn.in_proj_bias", "v.blk.{}.attn_qkv.bias"},
    {"vision_model.transformer.resblocks.{}.attn.out_proj", "v.blk.{}.attn_out"},
    {"vision_model.transformer.resblocks.{}.mlp.c_fc", "v.blk.{}.ffn_up"},
    {"vision_model.transformer.resblocks.{}.mlp.c_proj", "v.blk.{}.ffn_down"},
    {"vision_model.vit_downsampler1", "mm.0"},
    {"vision_model.vit_downsampler2", "mm.1"},
    {"vit_large_projector.weight", "mm.model.fc.weight"},
    {0},
};

enum { LARGEST_IMAGE = 3024 }; /* the model's own processor shrinks larger images to it */

/* Recognizes the sizes of Step3-VL-10B, the only model that the converter accepts. */
static bool is_validated(const struct hparams *hparams)
{
    struct error unused;
    uint64_t image, width, n_layers;
    return hparams_count(hparams, "image_size", 728, 728, &image, &unused) &&
           hparams_count(hparams, "hidden_size|width", 1536, 1536, &width, &unused) &&
           hparams_count(hparams, "num_hidden_layers|layers", 47, 47, &n_layers, &unused);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    uint64_t width;
    if (!is_validated(hparams))
        checkpoint_note(builder->model->checkpoint, SUBJECT_PROJECTOR,
                        "the converter takes no other Step3-VL than that whose"
                        " vision tower has 47 layers of 1536, for images of 728");
    bool is_said = json_u64(hparams_get(hparams, "intermediate_size"), &width) && width > 0;
    return is_said || projector_inner_width(builder, 8960.0 / 1536, error);
}

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double stride;
    if (!builder_number(builder, "outer.understand_projector_stride", 0, &stride, error))
        return false;
    *ret_value = stride * stride;
    return stride >= 1 || error_set(error, "config.json: understand_projector_stride is missing, or not above 0");
}

static const struct key_row keys[] = {
    {.emit = emit_normalization_or_clip},
    PROJECTOR_TYPE("step3vl"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {"vision.preproc_image_size", GGUF_U32, ALWAYS, .value = LARGEST_IMAGE},
    {0},
};

static const struct tower tower = {.config = {.vision = "vision_config"},
                                   .parts = TEXTS("vision_model.", "vit_large_projector.weight"),
                                   .f16_or_f32_names = TEXTS("mm.0.weight", "mm.1.weight")};

const struct family step3vl_projector = {
    .name = "step3vl",
    .summary = "Step3-VL and Step 3.7 (vision encoder)",
    .hf = FAMILY_NAMES({"StepVLForConditionalGeneration"}, {"Step3p7ForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_size_keys, keys},
    .tower = &tower,
    .adjust = adjust,
};
