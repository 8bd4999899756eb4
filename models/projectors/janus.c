/* Janus-Pro: vision encoder, a SigLIP, without the image generator. conversion/januspro.py. */
#include "models/projectors/projector.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Numbers the layers of the projector from its first one, which has a name of its own. */
static const char *rename_aligner(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    static const char first[] = "model.aligner.fc1.", others[] = "model.aligner.hidden_layers.";
    if (direction == FORWARD && text_starts_with(name, first))
        return arena_printf(arena, "model.aligner.0.%s", name + strlen(first));
    if (direction != FORWARD || !text_starts_with(name, others))
        return name;
    char *rest;
    unsigned long number = strtoul(name + strlen(others), &rest, 10);
    return number < UINT32_MAX ? arena_printf(arena, "model.aligner.%lu%s", number + 1, rest) : name;
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    bool is_said = hparams_get(hparams, "intermediate_size") != NULL || hparams_get(hparams, "mlp_ratio") == NULL;
    return is_said || projector_inner_width(builder, 1, error);
}

const struct family janus_projector = {
    .name = "janus_pro",
    .summary = "Janus-Pro (vision encoder)",
    .hf = FAMILY_NAMES({"JanusForConditionalGeneration"}),
    .tensors = {TENSORS({"^encoder.layers.{}.self_attn.projection_layer", "v.blk.{}.attn_out"},
                        {"model.aligner.{}", "mm.{}"}),
                siglip_tensors},
    .keys = {tower_keys, vision_keys,
             KEYS(PROJECTOR_TYPE("janus_pro"),
                  {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
                  {.emit = emit_known_activation})},
    .prefix = "model.vision_model.",
    .dropped_prefixes = TEXTS("model.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_model.", "model.aligner.")),
    .rename = rename_aligner,
    .adjust = adjust,
};
