/* LFM2-VL: what sees, a SigLIP 2. conversion/lfm2.py, LFM2VLModel. */
#include "models/projectors/projector.h"

static const struct family_name names[] = {{"Lfm2VlForConditionalGeneration"}, {0}};

enum { PATCH = 16, IMAGE = 256 };

/* A patch is a row of pixels with their colours, where ggml wants planes. */
static const struct relation_row tensors[] = {
    {"^embeddings.patch_embedding.weight", "v.patch_embd.weight", "o (y x c) -> o c y x"},
    {"multi_modal_projector.layer_norm", "mm.input_norm"},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {"^head.*", NULL},
    {0},
};

static void add_facts(struct facts *facts, const struct hparams *hparams)
{
    (void)hparams;
    facts_set(facts, "y", PATCH);
    facts_set(facts, "x", PATCH);
}

/* Its images are of any size; the key must be there. */
static bool adjust(struct draft *draft, struct error *error)
{
    return hparams_override(draft->model->hparams, "image_size", IMAGE, error);
}

/* What comes out of the layer that vision_feature_layer counts from the end is used. */
static bool compute_used_layers(const struct draft *draft, double *ret_value, struct error *error)
{
    double n_layers, last;
    if (!draft_number(draft, VISION_BLOCK_COUNT, 0, &n_layers, error) ||
        !draft_number(draft, "outer.vision_feature_layer", -1, &last, error))
        return false;
    *ret_value = n_layers + last + 1;
    return true;
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("lfm2"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, OR_DEFAULT, "outer.downsample_factor", 2},
    FLAG("use_gelu"),
    {"vision.block_count", GGUF_U32, .compute = compute_used_layers},
    {0},
};

static const char *const parts[] = {"model.vision_tower.", "model.multi_modal_projector.", "vision_tower.",
                                    "multi_modal_projector.", NULL};
static const char *const dropped_prefixes[] = {"model.", "vision_tower.vision_model.", NULL};
static const struct tower tower = {.config = {.vision = "vision_config"}, .parts = parts};

const struct family lfm2vl_projector = {
    .name = "lfm2",
    .architecture = "clip",
    .summary = "the vision tower of LFM2-VL",
    .hf = names,
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
    .add_facts = add_facts,
    .adjust = adjust,
};
