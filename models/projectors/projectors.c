#include "models/projectors/projector.h"

#include <string.h>

extern const struct family cogvlm_projector;
extern const struct family deepseek_ocr_projector;
extern const struct family deepseek_ocr2_projector;
extern const struct family dots_ocr_projector;
extern const struct family exaone4_5_projector;
extern const struct family fast_dvlm_projector;
extern const struct family gemma3_projector;
extern const struct family gemma3n_projector;
extern const struct family gemma4_projector;
extern const struct family gemma4_unified_projector;
extern const struct family glm4v_projector;
extern const struct family glm_asr_projector;
extern const struct family granite4_vision_projector;
extern const struct family granite_speech_projector;
extern const struct family hunyuanvl_projector;
extern const struct family internvl_projector;
extern const struct family janus_projector;
extern const struct family kimik25_projector;
extern const struct family kimivl_projector;
extern const struct family lfm2_audio_projector;
extern const struct family lfm2vl_projector;
extern const struct family lighton_ocr_projector;
extern const struct family llama4_projector;
extern const struct family meralion_projector;
extern const struct family mimo_projector;
extern const struct family minicpmv_projector;
extern const struct family minimax_m3_projector;
extern const struct family mistral_vision_projector;
extern const struct family musicflamingo_projector;
extern const struct family nemotron_vl_projector;
extern const struct family paddleocr_projector;
extern const struct family phi4_projector;
extern const struct family pixtral_projector;
extern const struct family qwen2_audio_projector;
extern const struct family qwen2_5_omni_projector;
extern const struct family qwen2vl_projector;
extern const struct family qwen2_5vl_projector;
extern const struct family qwen3_asr_projector;
extern const struct family qwen3_omni_projector;
extern const struct family qwen3vl_projector;
extern const struct family smolvlm_projector;
extern const struct family step3vl_projector;
extern const struct family ultravox_projector;
extern const struct family voxtral_projector;
extern const struct family youtuvl_projector;

/* One row a line. */
/* clang-format off */
const struct family *const projectors[] = {
    &cogvlm_projector,
    &deepseek_ocr_projector,
    &deepseek_ocr2_projector,
    &dots_ocr_projector,
    &exaone4_5_projector,
    &fast_dvlm_projector,
    &gemma3_projector,
    &gemma3n_projector,
    &gemma4_projector,
    &gemma4_unified_projector,
    &glm4v_projector,
    &glm_asr_projector,
    &granite4_vision_projector,
    &granite_speech_projector,
    &hunyuanvl_projector,
    &internvl_projector,
    &janus_projector,
    &kimik25_projector,
    &kimivl_projector,
    &lfm2_audio_projector,
    &lfm2vl_projector,
    &lighton_ocr_projector,
    &llama4_projector,
    &meralion_projector,
    &mimo_projector,
    &minicpmv_projector,
    &minimax_m3_projector,
    &mistral_vision_projector,
    &musicflamingo_projector,
    &nemotron_vl_projector,
    &paddleocr_projector,
    &phi4_projector,
    &pixtral_projector,
    &qwen2_audio_projector,
    &qwen2_5_omni_projector,
    &qwen2vl_projector,
    &qwen2_5vl_projector,
    &qwen3_asr_projector,
    &qwen3_omni_projector,
    &qwen3vl_projector,
    &smolvlm_projector,
    &step3vl_projector,
    &ultravox_projector,
    &voxtral_projector,
    &youtuvl_projector,
    NULL,
};
/* clang-format on */

const struct family *projector_find(const struct hparams *text, const struct family_name **ret_name,
                                    struct error *error)
{
    const char *architecture = hparams_tower_architecture(text);
    for (const struct family *const *projector = projectors; architecture != NULL && *projector != NULL; projector++)
        for (const struct family_name *hf = (*projector)->hf; hf->name != NULL; hf++)
            if (strcmp(hf->name, architecture) == 0 && ((*projector)->applies == NULL || (*projector)->applies(text))) {
                *ret_name = hf;
                return *projector;
            }
    error_set(error, "no projector is known for %s", architecture != NULL ? architecture : "a model without a name");
    return NULL;
}

bool projector_is_described(const struct hparams *text)
{
    static const char *const keys[] = {"vision_config",  "audio_config",  "thinker_config", "vision_encoder",
                                       "whisper_config", "speech_config", "vision_tower"};
    const struct family_name *name;
    struct error unused;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_is(json_get(hparams_raw(text), keys[i]), JSON_OBJECT))
            return true;
    const struct family *projector = projector_find(text, &name, &unused);
    return projector != NULL && hparams_has_tower(text, &projector->tower->config);
}

void tower_count_layers(struct facts *facts, const struct hparams *hparams)
{
    static const char *const keys[] = {VISION_BLOCK_COUNT, AUDIO_BLOCK_COUNT};
    struct error error;
    uint64_t n_layers;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hparams_count(hparams, keys[i], 1, UINT32_MAX, &n_layers, &error) && n_layers > facts->n_layers)
            facts->n_layers = n_layers;
}
