/* GLM-ASR: audio encoder, Whisper's. conversion/ultravox.py, GlmASRWhisperEncoderModel. */
#include "models/projectors/projector.h"

/* Leaves out a matrix that only training uses, as the converter intends to, but fails. */
static const struct relation_row tensors[] = {
    {"audio_encoder.layer_norm", "mm.a.norm_pre"},
    {"audio_encoder.adapting.layer_norm", "mm.a.norm_pre", .forward_only = true},
    {"audio_encoder.adapting.0", "mm.a.mlp.1"},
    {"audio_encoder.adapting.2", "mm.a.mlp.2"},
    {"audio_encoder.audio_bos_eos_token.weight", "v.boi, v.eoi", "(even + odd) c -> (even c), (odd c)"},
    {"audio_encoder.proj.*", NULL},
    {"audio_encoder.adapting.proj.*", NULL},
    {0},
};

static const char *rename_encoder(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    return rename_whisper(arena, direction, name, "audio_encoder.whisper.");
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    if (tensor_set_find_text(builder->model->checkpoint->tensors, "audio_encoder.proj.weight") != NULL)
        checkpoint_note(builder->model->checkpoint, SUBJECT_PROJECTOR,
                        "audio_encoder.proj is left out, where the converter "
                        "fails");
    return true;
}

static const struct key_row keys[] = {
    WHISPER_KEYS("glma"),
    {"audio.projector.stack_factor", GGUF_U32, REQUIRED, "outer.merge_factor"},
    {0},
};

const struct family glm_asr_projector = {
    .name = "glma",
    .summary = "GLM-ASR (audio encoder)",
    .hf = FAMILY_NAMES({"GlmasrModel"}),
    .tensors = {tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, keys},
    .tower = TOWER(.config = {.audio = "whisper_config|audio_config"}, .parts = TEXTS("audio_encoder.")),
    .stored_types = whisper_stored_types,
    .rename = rename_encoder,
    .adjust = adjust,
};
