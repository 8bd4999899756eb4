/* MERaLiON 2: what hears, an encoder of Whisper. conversion/ultravox.py, MERaLiONWhisperEncoderModel. */
#include "models/projectors/projector.h"

static const struct family_name names[] = {{"MERaLiON2ForConditionalGeneration"}, {0}};

static const struct relation_row tensors[] = {
    {"ln_speech", "mm.a.norm_pre"},
    {"speech_audio_adapter.mlp_adapter.0", "mm.a.mlp.0"},
    {"speech_audio_adapter.gate_proj", "mm.a.mlp.1"},
    {"speech_audio_adapter.pool_proj", "mm.a.mlp.2"},
    {"speech_audio_adapter.out_proj", "mm.a.mlp.3"},
    {"speech_audio_adapter.*", NULL},
    {0},
};

static const char *rename_encoder(struct arena *arena, const struct facts *facts, enum direction direction,
                                  const char *name)
{
    (void)facts;
    return rename_whisper(arena, direction, name, "speech_encoder.");
}

static const struct key_row keys[] = {
    WHISPER_KEYS("meralion"),
    {"audio.projector.stack_factor", GGUF_U32, OR_DEFAULT, "outer.speech_mlp_scale_factor", 15},
    {0},
};

static const char *const parts[] = {"speech_encoder.", "ln_speech.", "speech_audio_adapter.", NULL};
static const struct tower tower = {
    .config = {.audio = "speech_config"}, .parts = parts, .stored_types = whisper_stored_types};

const struct family meralion_projector = {
    .name = "meralion",
    .architecture = "clip",
    .summary = "the audio tower of MERaLiON 2",
    .hf = names,
    .tensors = {tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, keys},
    .tower = &tower,
    .rename = rename_encoder,
};
