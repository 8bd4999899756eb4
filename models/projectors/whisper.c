/* Audio towers that are Whisper encoders: Qwen2-Audio, Ultravox, Voxtral, Audio Flamingo 3 and Music Flamingo.
 * conversion/ultravox.py. */
#include "base/text.h"
#include "models/projectors/projector.h"

#include <string.h>

static const struct family_name qwen2_audio_names[] = {{"Qwen2AudioForConditionalGeneration"}, {0}};
static const struct family_name ultravox_names[] = {{"UltravoxModel"}, {0}};
static const struct family_name voxtral_names[] = {{"VoxtralForConditionalGeneration"}, {0}};
static const struct family_name flamingo_names[] = {{"AudioFlamingo3ForConditionalGeneration"}, {0}};

/* In a GGUF the biases of the convolutions are columns. */
const struct relation_row whisper_tensors[] = {
    {"audio_tower.conv1.weight", "a.conv1d.1.weight"},
    {"audio_tower.conv1.bias", "a.conv1d.1.bias", "c -> c 1"},
    {"audio_tower.conv2.weight", "a.conv1d.2.weight"},
    {"audio_tower.conv2.bias", "a.conv1d.2.bias", "c -> c 1"},
    {"audio_tower.embed_positions", "a.position_embd"},
    {"audio_tower.layer_norm", "a.post_ln"},
    {"audio_tower.layers.{}.self_attn_layer_norm", "a.blk.{}.ln1"},
    {"audio_tower.layers.{}.final_layer_norm", "a.blk.{}.ln2"},
    {"audio_tower.layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"},
    {"audio_tower.layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"},
    {"audio_tower.layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"},
    {"audio_tower.layers.{}.self_attn.out_proj", "a.blk.{}.attn_out"},
    {"audio_tower.layers.{}.fc1", "a.blk.{}.ffn_up"},
    {"audio_tower.layers.{}.fc2", "a.blk.{}.ffn_down"},
    {0},
};

static const struct relation_row whisper_projector_tensors[] = {
    {"multi_modal_projector.linear", "mm.a.fc"},       {"multi_modal_projector.linear_1", "mm.a.mlp.1"},
    {"multi_modal_projector.linear_2", "mm.a.mlp.2"},  {"multi_modal_projector.ln_pre", "mm.a.norm_pre"},
    {"multi_modal_projector.ln_mid", "mm.a.norm_mid"}, {0},
};

const struct stored_type whisper_stored_types[] = {
    {"a.conv1d.1.weight", &f16_dtype},
    {"a.conv1d.2.weight", &f16_dtype},
    {0},
};

static const struct stored_type flamingo_stored_types[] = {
    {"a.conv1d.1.weight", &f32_dtype},
    {"a.conv1d.2.weight", &f32_dtype},
    {0},
};

const char *rename_whisper(struct arena *arena, enum direction direction, const char *name, const char *prefix)
{
    static const char tower[] = "audio_tower.";
    const char *from = direction == FORWARD ? prefix : tower, *to = direction == FORWARD ? tower : prefix;
    return text_starts_with(name, from) ? arena_printf(arena, "%s%s", to, name + strlen(from)) : name;
}

static const struct key_row qwen2_audio_keys[] = {WHISPER_KEYS("qwen2a"), {0}};
static const struct key_row ultravox_keys[] = {
    WHISPER_KEYS("ultravox"), {"audio.projector.stack_factor", GGUF_U32, REQUIRED, "outer.stack_factor"}, {0}};
static const struct key_row voxtral_keys[] = {
    WHISPER_KEYS("voxtral"), {"audio.projector.stack_factor", GGUF_U32, ALWAYS, .value = 4}, {0}};

static const struct key_row flamingo_keys[] = {WHISPER_KEYS("musicflamingo"), {0}};

static const char *const parts[] = {"audio_tower.", "multi_modal_projector.", "model.audio_tower.",
                                    "model.multi_modal_projector.", NULL};
static const struct tower tower = {.config = {.audio = "whisper_config|audio_config"}, .parts = parts};
static const struct tower flamingo_tower = {.config = {.audio = "audio_config"}, .parts = parts};

#define WHISPER_PROJECTOR(label, people, hf_names, key_rows, its_tower, types)                                         \
    {                                                                                                                  \
        .name = label, .summary = people, .hf = hf_names, .tensors = {whisper_projector_tensors, whisper_tensors},     \
        .keys = {tower_keys, audio_keys, key_rows}, .dropped_prefixes = TEXTS("model."), .tower = &its_tower,          \
        .stored_types = types                                                                                          \
    }

const struct family qwen2_audio_projector = WHISPER_PROJECTOR(
    "qwen2a", "Qwen2-Audio (audio encoder)", qwen2_audio_names, qwen2_audio_keys, tower, whisper_stored_types);
const struct family ultravox_projector = WHISPER_PROJECTOR("ultravox", "Ultravox (audio encoder)", ultravox_names,
                                                           ultravox_keys, tower, whisper_stored_types);
const struct family voxtral_projector =
    WHISPER_PROJECTOR("voxtral", "Voxtral (audio encoder)", voxtral_names, voxtral_keys, tower, whisper_stored_types);
const struct family musicflamingo_projector =
    WHISPER_PROJECTOR("musicflamingo", "Audio Flamingo 3 and Music Flamingo (audio encoder)", flamingo_names,
                      flamingo_keys, flamingo_tower, flamingo_stored_types);

/* MERaLiON 2: audio encoder, Whisper's. conversion/ultravox.py, MERaLiONWhisperEncoderModel. */

static const struct relation_row meralion_tensors[] = {
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
    .tensors = {meralion_tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, keys},
    .tower = TOWER(.config = {.audio = "speech_config"},
                   .parts = TEXTS("speech_encoder.", "ln_speech.", "speech_audio_adapter.")),
    .stored_types = whisper_stored_types,
    .rename = rename_encoder,
};
