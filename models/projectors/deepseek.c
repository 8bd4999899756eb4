/* The encoders of DeepSeek's models. conversion/deepseek.py. */
#include "models/projectors/projector.h"
#include "quant/blocks/dtype.h"

#include <math.h>
#include <string.h>

/* DeepSeek V4 with pictures: vision encoder, which config.json describes by keys of its own. conversion/deepseek.py,
 * DeepseekV4FlashVisionModel. */

#define BLOCK "vision.blocks.{}."

static const struct relation_row tensors[] = {
    {"vision.patch_embed.proj.weight", "v.patch_embd.weight", "o (part y x) -> o part y x"},
    {"vision.patch_embed.proj.bias", "v.patch_embd.bias"},
    {"vision.norm", "v.post_ln"},
    {BLOCK "norm1", "v.blk.{}.ln1"},
    {BLOCK "norm2", "v.blk.{}.ln2"},
    {BLOCK "attn.wqkv", "v.blk.{}.attn_qkv"},
    {BLOCK "attn.wo", "v.blk.{}.attn_out"},
    {BLOCK "mlp.w1.weight", "v.blk.{}.ffn_gate.weight, v.blk.{}.ffn_up.weight", "(gate + up) c -> gate c, up c"},
    {BLOCK "mlp.w1.bias", "v.blk.{}.ffn_gate.bias, v.blk.{}.ffn_up.bias", "(gate + up) -> gate, up"},
    {BLOCK "mlp.w2", "v.blk.{}.ffn_down"},
    {"aligner.w{}", "mm.{}"},
    {"image_newline", "v.image_newline"},
    {"image_start", "v.token_embd.img_start"},
    {"image_end", "v.token_embd.img_end"},
    {"image_pad", "v.token_embd.img_pad"},
    {0},
};

/* Checks what llama.cpp has as constants, and counts the layers, which are not those of the text model. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    uint64_t n_layers, n_tokens, ratio;
    const struct hparams *hparams = builder->model->hparams;
    if (!hparams_count(hparams, "vision_n_layers", 1, UINT32_MAX, &n_layers, error) ||
        !hparams_count(hparams, "vision_max_n_token", 0, UINT32_MAX, &n_tokens, error) ||
        !hparams_count(hparams, "vision_max_wh_ratio", 0, UINT32_MAX, &ratio, error))
        return false;
    builder->dimensions.n_layers = n_layers;
    return (n_tokens == 384 && ratio == 8) ||
           error_set(error, "config.json: vision_max_n_token is not 384, or vision_max_wh_ratio not 8, which llama.cpp "
                            "takes for granted");
}

static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    static const double half[3] = {0.5, 0.5, 0.5};
    return emit_normalization_or(builder, half, half, error);
}

static const struct key_row deepseek4v_keys[] = {
    FLAG("has_vision_encoder"),
    {"vision.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"vision.image_size", GGUF_U32, REQUIRED, "vision_patch_size", .by = "vision_downsample_ratio", .times = 16},
    {"vision.patch_size", GGUF_U32, REQUIRED, "vision_patch_size"},
    {"vision.embedding_length", GGUF_U32, REQUIRED, "vision_dim"},
    {"vision.feed_forward_length", GGUF_U32, REQUIRED, "vision_inter_dim"},
    {"vision.block_count", GGUF_U32, REQUIRED, "vision_n_layers"},
    {"vision.attention.head_count", GGUF_U32, REQUIRED, "vision_n_heads"},
    {.emit = emit_normalization},
    PROJECTOR_TYPE("deepseek4v"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    FLAG("use_silu"),
    {"vision.projector.scale_factor", GGUF_U32, REQUIRED, "vision_downsample_ratio"},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "vision_min_pixels"},
    {0},
};

const struct family deepseek4v_projector = {
    .name = "deepseek4v",
    .summary = "DeepSeek V4 (vision encoder)",
    .since = 11549,
    .hf = FAMILY_NAMES({"DeepseekV4ForCausalLM"}),
    .tensors = {tensors},
    .keys = {tower_keys, deepseek4v_keys},
    .tower = TOWER(.config = {.vision_layers = "vision_n_layers"}, .parts = TEXTS("vision.", "aligner.", "image_")),
    .dimensions = {DIMENSIONS({"y", "vision_patch_size"}, {"x", "vision_patch_size"})},
    .adjust = adjust,
};

/* DeepSeek-OCR, Unlimited-OCR and DeepSeek-OCR 2: vision encoders, a SAM followed by a CLIP, or by layers of Qwen2.
 * conversion/deepseek.py, DeepseekOCRVisionModel and DeepseekOCR2VisionModel. */

static const struct relation_row sam_tensors[] = {
    {"model.sam_model.pos_embed", "v.sam.pos_embd.weight"},
    {"model.sam_model.patch_embed.proj", "v.sam.patch_embd"},
    {"model.sam_model.blocks.{}.norm1", "v.sam.blk.{}.pre_ln"},
    {"model.sam_model.blocks.{}.norm2", "v.sam.blk.{}.post_ln"},
    {"model.sam_model.blocks.{}.attn.rel_pos_h", "v.sam.blk.{}.attn.pos_h.weight"},
    {"model.sam_model.blocks.{}.attn.rel_pos_w", "v.sam.blk.{}.attn.pos_w.weight"},
    {"model.sam_model.blocks.{}.attn.qkv", "v.sam.blk.{}.attn.qkv"},
    {"model.sam_model.blocks.{}.attn.proj", "v.sam.blk.{}.attn.out"},
    {"model.sam_model.blocks.{}.mlp.lin1", "v.sam.blk.{}.mlp.lin1"},
    {"model.sam_model.blocks.{}.mlp.lin2", "v.sam.blk.{}.mlp.lin2"},
    {"model.sam_model.neck.{}", "v.sam.neck.{}"},
    {"model.sam_model.net_2", "v.sam.net_2"},
    {"model.sam_model.net_3", "v.sam.net_3"},
    {"model.projector.layers", "mm.model.fc"},
    {"model.view_seperator", "v.view_seperator", "c -> 1 c"},
    {"model.image_newline", "v.image_newline"},
    {0},
};

static const struct relation_row clip_tensors[] = {
    {"model.vision_model.embeddings.class_embedding", "v.class_embd"},
    {"model.vision_model.embeddings.patch_embedding", "v.patch_embd"},
    {"model.vision_model.embeddings.position_embedding", "v.position_embd"},
    {"model.vision_model.pre_layrnorm", "v.pre_ln"},
    {"model.vision_model.transformer.layers.{}.layer_norm1", "v.blk.{}.ln1"},
    {"model.vision_model.transformer.layers.{}.layer_norm2", "v.blk.{}.ln2"},
    {"model.vision_model.transformer.layers.{}.self_attn.qkv_proj", "v.blk.{}.attn_qkv"},
    {"model.vision_model.transformer.layers.{}.self_attn.out_proj", "v.blk.{}.attn_out"},
    {"model.vision_model.transformer.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"model.vision_model.transformer.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {0},
};

static const struct relation_row qwen2_tensors[] = {
    {"model.qwen2_model.query_768", "v.resample_query_768"},
    {"model.qwen2_model.query_1024", "v.resample_query_1024"},
    {"model.qwen2_model.model.model.norm", "v.post_ln"},
    {"model.qwen2_model.model.model.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"model.qwen2_model.model.model.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"},
    {"model.qwen2_model.model.model.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"model.qwen2_model.model.model.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"model.qwen2_model.model.model.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"model.qwen2_model.model.model.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"},
    {"model.qwen2_model.model.model.layers.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"},
    {"model.qwen2_model.model.model.layers.{}.mlp.up_proj", "v.blk.{}.ffn_up"},
    {"model.qwen2_model.model.model.layers.{}.mlp.down_proj", "v.blk.{}.ffn_down"},
    {0},
};

/* Sets sizes: the CLIP's own values precede those of the whole tower. Like the converter, takes four times the number
 * of heads as the width of the inner layers. */
static bool adjust_first(struct model_builder *builder, struct error *error)
{
    static const char *const names[][2] = {{"width.clip-l-14-224.image_size", "image_size"},
                                           {"width.clip-l-14-224.patch_size", "patch_size"},
                                           {"width.clip-l-14-224.layers", "layers"},
                                           {"width.clip-l-14-224.width|width", "hidden_size"},
                                           {"width.clip-l-14-224.heads|heads", "num_heads"}};
    struct hparams *hparams = builder->model->hparams;
    uint64_t value, n_heads;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_u64(hparams_find(hparams, names[i][0]), &value) &&
            !hparams_override(hparams, names[i][1], value, error))
            return false;
    tower_count_layers(&builder->dimensions, hparams);
    return !json_u64(hparams_find(hparams, "width.clip-l-14-224.heads|heads"), &n_heads) || n_heads > UINT32_MAX ||
           hparams_override(hparams, "intermediate_size", n_heads * 4, error);
}

/* Sets the sizes of the second model, whose layers are those of Qwen2 0.5B, whatever config.json leaves out. */
static bool adjust_second(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t width;
    return hparams_default(hparams,
                           "{'layers': 24, 'patch_size': 16, 'intermediate_size': 4864, 'num_attention_heads': 14}",
                           error) &&
           adjust_first(builder, error) &&
           hparams_count(hparams, "width.qwen2-0-5b.dim", 1, UINT32_MAX, &width, error) &&
           hparams_override(hparams, "hidden_size", width, error);
}

/* Sets how many patches become one along a side, if not the usual four. */
static bool emit_scale_factor(struct model_builder *builder, struct error *error)
{
    double length, image, patch;
    if (!builder_number(builder, "preprocessor.image_seq_length", 256, &length, error) ||
        !builder_number(builder, "image_size", 0, &image, error) ||
        !builder_number(builder, "patch_size", 0, &patch, error))
        return false;
    if (!(length >= 1 && patch >= 1))
        return error_set(error, "config.json: patch_size is %.17g, and image_seq_length of the preprocessor %.17g",
                         patch, length);
    double factor = floor(floor(image / patch) / floor(sqrt(length)));
    const struct key_row rows[] = {{"vision.projector.scale_factor", GGUF_U32, ALWAYS, .value = factor}, {0}};
    return factor <= 0 || factor == 4 || builder_emit(builder, rows, error);
}

/* How many tiles a picture is cut into at most, which differs by class. */
static bool most_tiles(const struct model_builder *builder, double *ret_value, struct error *error)
{
    static const struct {
        const char *class_name;
        double most;
    } rows[] = {{"DeepseekOCRForCausalLM", 9}, {"UnlimitedOCRForCausalLM", 32}, {"DeepseekOCR2ForCausalLM", 6}};
    (void)error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(builder->hf->name, rows[i].class_name) == 0)
            *ret_value = rows[i].most;
    return true;
}

static const struct key_row first_type[] = {PROJECTOR_TYPE("deepseekocr"), {0}};
static const struct key_row second_type[] = {PROJECTOR_TYPE("deepseekocr2"), {0}};

static const struct key_row deepseek_ocr_keys[] = {
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    FLAG("use_gelu"),
    {.emit = emit_scale_factor},
    {"vision.window_size", GGUF_U32, OR_DEFAULT, "window_size", 14},
    {"vision.preproc_min_tiles", GGUF_U32, ALWAYS, .value = 2},
    {"vision.preproc_max_tiles", GGUF_U32, .compute = most_tiles},
    {"vision.sam.block_count", GGUF_U32, REQUIRED, "width.sam_vit_b.layers"},
    {"vision.sam.embedding_length", GGUF_U32, REQUIRED, "width.sam_vit_b.width"},
    {"vision.sam.head_count", GGUF_U32, REQUIRED, "width.sam_vit_b.heads"},
    {0},
};

static const struct tower tower = {.config = {.vision = "vision_config"},
                                   .parts = TEXTS("model.sam_model.", "model.vision_model.", "model.qwen2_model.",
                                                  "model.projector.", "model.view_seperator", "model.image_newline")};

static const struct stored_type stored_types[] = {
    {"v.patch_embd.weight", &f32_dtype},
    {"v.sam.pos_embd.weight", &f32_dtype},
    {"v.sam.blk.{}.attn.pos_h.weight", &f32_dtype},
    {"v.sam.blk.{}.attn.pos_w.weight", &f32_dtype},
    {"v.sam.neck.{}.weight", &f32_dtype},
    {"v.sam.net_2.weight", &f32_dtype},
    {"v.sam.net_3.weight", &f32_dtype},
    {0},
};

const struct family deepseek_ocr_projector = {
    .name = "deepseekocr",
    .summary = "DeepSeek-OCR (vision encoder)",
    .hf = FAMILY_NAMES({"DeepseekOCRForCausalLM"}, {"UnlimitedOCRForCausalLM"}),
    .tensors = {clip_tensors, sam_tensors},
    .keys = {tower_keys, vision_keys, first_type, deepseek_ocr_keys},
    .tower = &tower,
    .stored_types = stored_types,
    .adjust = adjust_first,
};

const struct family deepseek_ocr2_projector = {
    .name = "deepseekocr2",
    .summary = "DeepSeek-OCR 2 (vision encoder)",
    .hf = FAMILY_NAMES({"DeepseekOCR2ForCausalLM"}),
    .tensors = {qwen2_tensors, sam_tensors},
    .keys = {tower_keys, vision_keys, second_type, deepseek_ocr_keys,
             KEYS({"vision.attention.head_count_kv", GGUF_U32, ALWAYS, .value = 2})},
    .tower = &tower,
    .stored_types = stored_types,
    .adjust = adjust_second,
};
