/* InternVL: vision encoder, an InternViT, under its authors' names and under transformers'. conversion/internvl.py. */
#include "models/projectors/projector.h"

#include <string.h>

static const struct relation_row tensors[] = {
    {"vision_model.embeddings.class_embedding", "v.class_embd", .when = "!renamed"},
    {"vision_model.embeddings.patch_embedding", "v.patch_embd", .when = "!renamed"},
    {"vision_model.embeddings.position_embedding", "v.position_embd.weight", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.norm1", "v.blk.{}.ln1", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.norm2", "v.blk.{}.ln2", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.ls1", "v.blk.{}.ls1.weight", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.ls2", "v.blk.{}.ls2.weight", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.attn.qkv", "v.blk.{}.attn_q, v.blk.{}.attn_k, v.blk.{}.attn_v", THIRDS,
     .when = "!renamed"},
    {"vision_model.encoder.layers.{}.attn.proj", "v.blk.{}.attn_out", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.attn.q_norm", "v.blk.{}.attn_q_norm", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.attn.k_norm", "v.blk.{}.attn_k_norm", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.mlp.fc1", "v.blk.{}.ffn_up", .when = "!renamed"},
    {"vision_model.encoder.layers.{}.mlp.fc2", "v.blk.{}.ffn_down", .when = "!renamed"},
    {"mlp1.0", "mm.model.mlp.0", .when = "!renamed"},
    {"mlp1.1", "mm.model.mlp.1", .when = "!renamed"},
    {"mlp1.3", "mm.model.mlp.3", .when = "!renamed"},

    {"vision_tower.embeddings.cls_token", "v.class_embd", .when = "renamed"},
    {"vision_tower.embeddings.patch_embeddings.projection", "v.patch_embd", .when = "renamed"},
    {"vision_tower.embeddings.position_embeddings", "v.position_embd.weight", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.layernorm_before", "v.blk.{}.ln1", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.layernorm_after", "v.blk.{}.ln2", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.lambda_1", "v.blk.{}.ls1.weight", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.lambda_2", "v.blk.{}.ls2.weight", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.attention.q_proj", "v.blk.{}.attn_q", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.attention.k_proj", "v.blk.{}.attn_k", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.attention.v_proj", "v.blk.{}.attn_v", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.attention.projection_layer", "v.blk.{}.attn_out", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.attention.q_norm", "v.blk.{}.attn_q_norm", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.attention.k_norm", "v.blk.{}.attn_k_norm", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.mlp.fc1", "v.blk.{}.ffn_up", .when = "renamed"},
    {"vision_tower.encoder.layer.{}.mlp.fc2", "v.blk.{}.ffn_down", .when = "renamed"},
    {"multi_modal_projector.layer_norm", "mm.model.mlp.0", .when = "renamed"},
    {"multi_modal_projector.linear_1", "mm.model.mlp.1", .when = "renamed"},
    {"multi_modal_projector.linear_2", "mm.model.mlp.3", .when = "renamed"},
    {0},
};

/* Replaces a size given as height and width by the first number. */
static bool use_first(struct hparams *hparams, const char *key, struct error *error)
{
    const struct json *size = hparams_get(hparams, key);
    uint64_t first;
    if (!json_is(size, JSON_ARRAY))
        return true;
    if (!json_u64(json_first(size), &first))
        return error_set(error, "config.json: %s does not begin with a whole number", key);
    return hparams_override(hparams, key, first, error);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (strstr(set->tensors[i].name, "vision_tower.") != NULL)
            dimensions_set(&builder->dimensions, "renamed", 1);
    return use_first(hparams, "image_size", error) && use_first(hparams, "patch_size", error);
}

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return projector_scale_factor(builder, "outer.downsample_ratio", ret_value, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("internvl"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {.emit = emit_activation},
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {"vision.preproc_min_tiles", GGUF_U32, IF_TRUE, "outer.min_dynamic_patch"},
    {"vision.preproc_max_tiles", GGUF_U32, IF_TRUE, "outer.max_dynamic_patch"},
    {0},
};

const struct family internvl_projector = {
    .name = "internvl",
    .summary = "InternVL (vision encoder)",
    .hf = FAMILY_NAMES({"InternVisionModel"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("vision_model.", "mlp1.", "model.vision_tower.", "model.multi_modal_projector.",
                                  "vision_tower.", "multi_modal_projector.")),
    .adjust = adjust,
};
