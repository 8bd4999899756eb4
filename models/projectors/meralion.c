/* MERaLiON 2: audio encoder, Whisper's. conversion/ultravox.py, MERaLiONWhisperEncoderModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"ln_speech", "mm.a.norm_pre"},
    {"speech_audio_adapter.mlp_adapter.0", "mm.a.mlp.0"},
    {"speech_audio_adapter.gate_proj", "mm.a.mlp.1"},
    {"speech_audio_adapter.pool_proj", "mm.a.mlp.2"},
    {"speech_audio_adapter.out_proj", "mm.a.mlp.3"},
    {"speech_audio_adapter.*", NULL},
    {0},
};

static const char *rename_encoder(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    return rename_whisper(arena, direction, name, "speech_encoder.");
}

static const struct key_row keys[] = {
    WHISPER_KEYS("meralion"),
    {"audio.projector.stack_factor", GGUF_U32, OR_DEFAULT, "outer.speech_mlp_scale_factor", 15},
    {0},
};

const struct family meralion_projector = {
    .name = "meralion",
    .summary = "MERaLiON 2 (audio encoder)",
    .hf = FAMILY_NAMES({"MERaLiON2ForConditionalGeneration"}),
    .tensors = {tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, keys},
    .tower = TOWER(.config = {.audio = "speech_config"},
                   .parts = TEXTS("speech_encoder.", "ln_speech.", "speech_audio_adapter.")),
    .stored_types = whisper_stored_types,
    .rename = rename_encoder,
};
