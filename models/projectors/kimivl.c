/* Kimi-VL, Kimi-K2.5 and GLM-5V: vision encoder, a MoonViT. conversion/kimivl.py. */
#include "models/projectors/projector.h"

#include <string.h>

static const struct relation_row moonvit_tensors[] = {
    {"vision_tower.patch_embed.proj", "v.patch_embd"},
    {"vision_tower.encoder.blocks.{}.wo", "v.blk.{}.attn_out"},
    {"vision_tower.encoder.blocks.{}.norm0", "v.blk.{}.ln1"},
    {"vision_tower.encoder.blocks.{}.norm1", "v.blk.{}.ln2"},
    {"vision_tower.encoder.blocks.{}.mlp.fc0", "v.blk.{}.ffn_up"},
    {"vision_tower.encoder.blocks.{}.mlp.fc1", "v.blk.{}.ffn_down"},
    {"vision_tower.encoder.final_layernorm", "v.post_ln"},
    {0},
};

static const struct relation_row first_tensors[] = {
    {"vision_tower.patch_embed.pos_emb.weight", "v.position_embd.weight", "y x c -> (y x) c"},
    {"vision_tower.encoder.blocks.{}.wqkv", "v.blk.{}.attn_q, v.blk.{}.attn_k, v.blk.{}.attn_v", THIRDS},
    {"multi_modal_projector.pre_norm", "mm.input_norm"},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {0},
};

/* Separates the rotary pairs of height and width, which alternate. */
static const struct relation_row second_tensors[] = {
    {"vision_tower.patch_embed.pos_emb", "v.position_embd"},
    {"vision_tower.encoder.blocks.{}.wqkv", "v.blk.{}.attn_qkv",
     "(query head n half pair + key head n half pair + value head n half pair) ... -> "
     "(query head half n pair + key head half n pair + value head n half pair) ..."},
    {"mm_projector.pre_norm", "mm.input_norm"},
    {"mm_projector.proj.0", "mm.1"},
    {"mm_projector.proj.2", "mm.2"},
    {0},
};

enum { IMAGE = 64 * 14, LEAST_PATCHES = 8 };

/* Replaces GLM-5V's names for the layers of the projector, which have numbers. */
static const char *rename_projector(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const char *name)
{
    static const char *const glm[] = {"mm_projector.linear_1", "mm_projector.linear_2"};
    static const char *const kimi[] = {"mm_projector.proj.0", "mm_projector.proj.2"};
    for (size_t i = 0; direction == FORWARD && i < sizeof glm / sizeof *glm; i++)
        if (strncmp(name, glm[i], strlen(glm[i])) == 0)
            return arena_printf(arena, "%s%s", kimi[i], name + strlen(glm[i]));
    return name;
}

/* Sets image_size, a required key, although images have any size. */
static bool adjust_first(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "image_size", IMAGE, error);
}

static bool adjust_second(struct model_builder *builder, struct error *error)
{
    double height, patch, n_heads;
    if (!builder_number(builder, "init_pos_emb_height", 64, &height, error) ||
        !builder_number(builder, "patch_size", 14, &patch, error) ||
        !builder_number(builder, "num_attention_heads", 16, &n_heads, error))
        return false;
    if (!(height * patch >= 0 && height * patch <= UINT32_MAX && n_heads >= 1 && n_heads <= UINT32_MAX))
        return error_set(error, "config.json: init_pos_emb_height, patch_size or num_attention_heads is out of range");
    dimensions_set(&builder->dimensions, "head", (uint64_t)n_heads);
    return hparams_override(builder->model->hparams, "image_size", (uint64_t)(height * patch), error);
}

static const struct key_row first_keys[] = {
    PROJECTOR_TYPE("kimivl"),
    FLAG("use_gelu"),
    {"vision.projector.scale_factor", GGUF_U32, ALWAYS, .value = 2},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {0},
};

static bool compute_gelu(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *function = hparams_get(builder->model->hparams, "projector_hidden_act");
    *ret_value = function == NULL || json_string_is(function, "gelu");
    return true;
}

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *sizes = hparams_get(builder->model->hparams, "merge_kernel_size");
    uint64_t first = 2;
    if (sizes != NULL && !json_u64(json_first(sizes), &first))
        return error_set(error, "config.json: merge_kernel_size does not begin with a whole number");
    *ret_value = (double)first;
    return true;
}

static bool compute_pixels(const struct model_builder *builder, double n_patches, double *ret_value,
                           struct error *error)
{
    double patch;
    if (!builder_number(builder, "patch_size", 14, &patch, error))
        return false;
    *ret_value = n_patches * patch * patch;
    return true;
}

static bool compute_least_pixels(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_pixels(builder, LEAST_PATCHES, ret_value, error);
}

static bool compute_most_pixels(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double n_patches;
    return builder_number(builder, "preprocessor.in_patch_limit", 16384, &n_patches, error) &&
           compute_pixels(builder, n_patches, ret_value, error);
}

static const struct key_row second_keys[] = {
    PROJECTOR_TYPE("kimik25"),
    {".vision.pos_emb_height", GGUF_U32, OR_DEFAULT, "init_pos_emb_height", 64},
    {".vision.pos_emb_width", GGUF_U32, OR_DEFAULT, "init_pos_emb_width", 64},
    {".vision.pos_emb_time", GGUF_U32, OR_DEFAULT, "init_pos_emb_time", 4},
    {"use_gelu", GGUF_BOOL, .compute = compute_gelu},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "projector_ln_eps", 1e-5},
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {"vision.image_min_pixels", GGUF_U32, .compute = compute_least_pixels},
    {"vision.image_max_pixels", GGUF_U32, .compute = compute_most_pixels},
    {0},
};

const struct family kimivl_projector = {
    .name = "kimivl",
    .summary = "Kimi-VL (vision encoder)",
    .hf = FAMILY_NAMES({"KimiVLForConditionalGeneration"}),
    .tensors = {first_tensors, moonvit_tensors},
    .keys = {tower_keys, vision_keys, first_keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("vision_tower.", "multi_modal_projector.")),
    .dimensions = {DIMENSIONS({"y", "init_pos_emb_height", .kept = true}, {"x", "init_pos_emb_width", .kept = true})},
    .adjust = adjust_first,
};

const struct family kimik25_projector = {
    .name = "kimik25",
    .summary = "Kimi-K2.5 and GLM-5V (vision encoder)",
    .hf = FAMILY_NAMES({"KimiK25ForConditionalGeneration"}, {"Glm5vForConditionalGeneration"}),
    .tensors = {second_tensors, moonvit_tensors},
    .keys = {tower_keys, vision_keys, second_keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("vision_tower.", "mm_projector.")),
    .rename = rename_projector,
    .dimensions = {qkv_dimensions, DIMENSIONS({"pair", NULL, 2})},
    .adjust = adjust_second,
};
