/* Towers that hear, which are encoders of Whisper: Qwen2-Audio, Ultravox, Voxtral. conversion/ultravox.py. */
#include "models/projectors/projector.h"

static const struct family_name qwen2_audio_names[] = {{"Qwen2AudioForConditionalGeneration"}, {0}};
static const struct family_name ultravox_names[] = {{"UltravoxModel"}, {0}};
static const struct family_name voxtral_names[] = {{"VoxtralForConditionalGeneration"}, {0}};

/* Biases of the convolutions are columns there. */
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

static const struct relation_row tensors[] = {
    {"multi_modal_projector.linear", "mm.a.fc"},       {"multi_modal_projector.linear_1", "mm.a.mlp.1"},
    {"multi_modal_projector.linear_2", "mm.a.mlp.2"},  {"multi_modal_projector.ln_pre", "mm.a.norm_pre"},
    {"multi_modal_projector.ln_mid", "mm.a.norm_mid"}, {0},
};

static const struct stored_type stored_types[] = {
    {"a.conv1d.1.weight", &f16_dtype},
    {"a.conv1d.2.weight", &f16_dtype},
    {0},
};

#define WHISPER_KEYS(kind)                                                                                             \
    PROJECTOR_TYPE(kind), {"audio.num_mel_bins", GGUF_U32, REQUIRED, "num_mel_bins"},                                  \
    {                                                                                                                  \
        "audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5                             \
    }

static const struct key_row qwen2_audio_keys[] = {WHISPER_KEYS("qwen2a"), {0}};
static const struct key_row ultravox_keys[] = {
    WHISPER_KEYS("ultravox"), {"audio.projector.stack_factor", GGUF_U32, REQUIRED, "outer.stack_factor"}, {0}};
static const struct key_row voxtral_keys[] = {
    WHISPER_KEYS("voxtral"), {"audio.projector.stack_factor", GGUF_U32, ALWAYS, .value = 4}, {0}};

static const char *const parts[] = {"audio_tower.", "multi_modal_projector.", "model.audio_tower.",
                                    "model.multi_modal_projector.", NULL};
static const char *const dropped_prefixes[] = {"model.", NULL};
static const struct tower tower = {
    .config = {.audio = "whisper_config|audio_config"}, .parts = parts, .stored_types = stored_types};

#define WHISPER_PROJECTOR(label, people, hf_names, key_rows)                                                           \
    {                                                                                                                  \
        .name = label, .architecture = "clip", .summary = people, .hf = hf_names,                                      \
        .tensors = {tensors, whisper_tensors}, .keys = {tower_keys, audio_keys, key_rows},                             \
        .dropped_prefixes = dropped_prefixes, .tower = &tower                                                          \
    }

const struct family qwen2_audio_projector =
    WHISPER_PROJECTOR("qwen2a", "the audio tower of Qwen2-Audio", qwen2_audio_names, qwen2_audio_keys);
const struct family ultravox_projector =
    WHISPER_PROJECTOR("ultravox", "the audio tower of Ultravox", ultravox_names, ultravox_keys);
const struct family voxtral_projector =
    WHISPER_PROJECTOR("voxtral", "the audio tower of Voxtral", voxtral_names, voxtral_keys);
