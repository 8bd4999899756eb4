/* Vision encoders that differ from the tower of shared.c in a few tensors and keys. */
#include "models/projectors/projector.h"

/* Llama 4: vision encoder. conversion/llama4.py.
 *
 * The converter writes post_attention_layernorm under a name for one of Gemma 4's tensors, where llama.cpp does not
 * look for it: clip.cpp reads ln2, so wfs writes ln2. */

static const struct relation_row llama4_tensors[] = {
    {"vision_model.class_embedding", "v.class_embd"},
    {"vision_model.patch_embedding.linear", "v.patch_embd"},
    {"vision_model.positional_embedding_vlm", "v.position_embd.weight"},
    {"vision_model.layernorm_pre", "v.pre_ln"},
    {"vision_model.layernorm_post", "v.post_ln"},
    {"vision_model.model.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"vision_model.model.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"},
    {"vision_model.model.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"vision_model.model.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"vision_model.model.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"vision_model.model.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"},
    {"vision_model.model.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"vision_model.model.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"vision_model.vision_adapter.mlp.fc1", "mm.model.mlp.1"},
    {"vision_model.vision_adapter.mlp.fc2", "mm.model.mlp.2"},
    {"multi_modal_projector.linear_1", "mm.model.fc"},
    {0},
};

static bool llama4_compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return projector_scale_factor(builder, "pixel_shuffle_ratio", ret_value, error);
}

static const struct key_row llama4_keys[] = {
    PROJECTOR_TYPE("llama4"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, .compute = llama4_compute_scale_factor},
    {.emit = emit_activation},
    {0},
};

const struct family llama4_projector = {
    .name = "llama4",
    .summary = "Llama 4 (vision encoder)",
    .hf = FAMILY_NAMES({"Llama4ForConditionalGeneration"}),
    .tensors = {llama4_tensors},
    .keys = {tower_keys, vision_keys, llama4_keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("vision_model.", "multi_modal_projector.", "model.vision_model.",
                                  "model.multi_modal_projector.")),
    .note = "the norm after attention is called ln2, as llama.cpp reads it, where the converter writes attn_post_norm",
};

/* MiniMax M3: vision encoder. conversion/minimax.py, MiniMaxM3VisionModel. */

/* In each head, all first halves of the rotary pairs of time, height and width precede the second ones: puts both
 * halves of each axis together, before the elements that do not rotate. */
#define PAIRS_OF_AXES "(head (half part n + rest)) ... -> (head (part half n + rest)) ..."

static const struct relation_row minimax_m3_tensors[] = {
    {"^embeddings.patch_embedding.weight", "v.patch_embd.weight, v.patch_embd.weight.1", TWO_FRAMES},
    {"^pre_layrnorm", "v.pre_ln"},
    {"^encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q", PAIRS_OF_AXES},
    {"^encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k", PAIRS_OF_AXES},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {"patch_merge_mlp.linear_1", "mm.merger.fc1"},
    {"patch_merge_mlp.linear_2", "mm.merger.fc2"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    struct error unused;
    uint64_t width, n_heads;
    if (!hparams_count(hparams, "hidden_size", 1, UINT32_MAX, &width, &unused) ||
        !hparams_count(hparams, "num_attention_heads", 1, UINT32_MAX, &n_heads, &unused))
        return;
    uint64_t head_dim = width / n_heads, n_pairs = 2 * (head_dim / 2) / 3 / 2;
    dimensions_set(dimensions, "head", n_heads);
    dimensions_set(dimensions, "n", n_pairs);
    dimensions_set(dimensions, "rest", head_dim - 6 * n_pairs);
}

static const struct key_row minimax_m3_keys[] = {
    PROJECTOR_TYPE("minimax_m3"),
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "img_token_compression_config.spatial_merge_size", 2},
    {0},
};

const struct family minimax_m3_projector = {
    .name = "minimax_m3",
    .summary = "MiniMax M3 (vision encoder)",
    .hf = FAMILY_NAMES({"MiniMaxM3SparseForConditionalGeneration"}, {"MiniMaxM3VLForConditionalGeneration"}),
    .tensors = {minimax_m3_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, minimax_m3_keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("vision_tower.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("vision_tower.", "multi_modal_projector.", "patch_merge_mlp.")),
    .add_dimensions = add_dimensions,
};

/* HunyuanVL and HunyuanOCR: vision encoder. conversion/hunyuan.py, HunyuanVLVisionModel. */

static const struct relation_row hunyuanvl_tensors[] = {
    {"vit.embeddings.patch_embedding", "v.patch_embd"},
    {"vit.embeddings.position_embedding.weight", "v.position_embd.weight", "(padding + row) c -> row c"},
    {"vit.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"vit.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"},
    {"vit.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"vit.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"vit.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"vit.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"},
    {"vit.layers.{}.mlp.dense_h_to_4h", "v.blk.{}.ffn_up"},
    {"vit.layers.{}.mlp.dense_4h_to_h", "v.blk.{}.ffn_down"},
    {"vit.perceive.before_rms", "mm.pre_norm"},
    {"vit.perceive.proj.{}", "mm.{}"},
    {"vit.perceive.mlp", "mm.model.fc"},
    {"vit.perceive.after_rms", "mm.post_norm"},
    {"vit.perceive.image_newline", "v.image_newline"},
    {"vit.perceive.image_sep", "v.view_seperator"},
    {"vit.perceive.image_begin", "mm.image_begin"},
    {"vit.perceive.image_end", "mm.image_end"},
    {0},
};

/* Sets image_size, and drops the first position, that of a class token, which has no use here. */
static bool hunyuanvl_adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    double size;
    dimensions_set(&builder->dimensions, "padding", 1);
    if (!builder_number(builder, "image_size|max_image_size", 2048, &size, error))
        return false;
    if (!(size >= 0 && size <= UINT32_MAX))
        return error_set(error, "config.json: max_image_size is %.17g", size);
    return hparams_override(hparams, "image_size", (uint64_t)size, error);
}

static const struct key_row hunyuanvl_keys[] = {
    PROJECTOR_TYPE("hunyuanvl"),
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-5},
    {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "spatial_merge_size", 2},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {0},
};

const struct family hunyuanvl_projector = {
    .name = "hunyuanvl",
    .summary = "HunyuanVL (vision encoder)",
    .hf = FAMILY_NAMES({"HunYuanVLForConditionalGeneration"}),
    .tensors = {hunyuanvl_tensors},
    .keys = {tower_keys, vision_keys, hunyuanvl_keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("vit."),
                   .f16_or_f32_names = TEXTS("mm.0.weight", "mm.2.weight")),
    .adjust = hunyuanvl_adjust,
};

/* Step3-VL and Step 3.7: vision encoder. conversion/step3.py, Step3VLVisionModel. */

static const struct relation_row step3vl_tensors[] = {
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

static bool step3vl_adjust(struct model_builder *builder, struct error *error)
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

static bool step3vl_compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double stride;
    if (!builder_number(builder, "outer.understand_projector_stride", 0, &stride, error))
        return false;
    *ret_value = stride * stride;
    return stride >= 1 || error_set(error, "config.json: understand_projector_stride is missing, or not above 0");
}

static const struct key_row step3vl_keys[] = {
    {.emit = emit_normalization_or_clip},
    PROJECTOR_TYPE("step3vl"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {"vision.projector.scale_factor", GGUF_U32, .compute = step3vl_compute_scale_factor},
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
    .tensors = {step3vl_tensors},
    .keys = {tower_keys, vision_size_keys, step3vl_keys},
    .tower = &tower,
    .adjust = step3vl_adjust,
};
