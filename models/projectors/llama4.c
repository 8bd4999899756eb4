/* Llama 4: vision encoder. conversion/llama4.py.
 *
 * The converter writes post_attention_layernorm under a name for one of Gemma 4's tensors, where llama.cpp does not
 * look for it: clip.cpp reads ln2, so wfs writes ln2. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
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

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return projector_scale_factor(builder, "pixel_shuffle_ratio", ret_value, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("llama4"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {.emit = emit_activation},
    {0},
};

const struct family llama4_projector = {
    .name = "llama4",
    .summary = "Llama 4 (vision encoder)",
    .hf = FAMILY_NAMES({"Llama4ForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("vision_model.", "multi_modal_projector.", "model.vision_model.",
                                  "model.multi_modal_projector.")),
    .note = "the norm after attention is called ln2, as llama.cpp reads it, where the converter writes attn_post_norm",
};
