/* Janus-Pro: what sees, a SigLIP, not what it makes images with. conversion/januspro.py. */
#include "models/projectors/projector.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const struct family_name names[] = {{"JanusForConditionalGeneration"}, {0}};

static const struct relation_row tensors[] = {
    {"^encoder.layers.{}.self_attn.projection_layer", "v.blk.{}.attn_out"},
    {"model.aligner.{}", "mm.{}"},
    {0},
};

/* The layers of the projector are counted from its first one, which has a name of its own. */
static const char *rename_aligner(struct arena *arena, const struct facts *facts, enum direction direction,
                                  const char *name)
{
    static const char first[] = "model.aligner.fc1.", others[] = "model.aligner.hidden_layers.";
    (void)facts;
    if (direction == FORWARD && text_starts_with(name, first))
        return arena_printf(arena, "model.aligner.0.%s", name + strlen(first));
    if (direction != FORWARD || !text_starts_with(name, others))
        return name;
    char *rest;
    unsigned long number = strtoul(name + strlen(others), &rest, 10);
    return number < UINT32_MAX ? arena_printf(arena, "model.aligner.%lu%s", number + 1, rest) : name;
}

static bool adjust(struct draft *draft, struct error *error)
{
    const struct hparams *hparams = draft->model->hparams;
    bool is_said = hparams_get(hparams, "intermediate_size") != NULL || hparams_get(hparams, "mlp_ratio") == NULL;
    return is_said || projector_inner_width(draft, 1, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("janus_pro"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {.emit = emit_known_activation},
    {0},
};

static const char *const parts[] = {"model.vision_model.", "model.aligner.", NULL};
static const char *const dropped_prefixes[] = {"model.vision_model.", NULL};
static const struct tower tower = {.config = {.vision = "vision_config"}, .parts = parts};

const struct family janus_projector = {
    .name = "janus_pro",
    .architecture = "clip",
    .summary = "the vision tower of Janus-Pro",
    .hf = names,
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "model.vision_model.",
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
    .rename = rename_aligner,
    .adjust = adjust,
};
