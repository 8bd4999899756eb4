#include "models/projectors/projectors.h"

/* One row a line. */
/* clang-format off */
#define PROJECTORS(ROW) \
    ROW(cogvlm) \
    ROW(cohere2v) \
    ROW(deepseek4v) \
    ROW(deepseek_ocr) \
    ROW(deepseek_ocr2) \
    ROW(dots3note) \
    ROW(dots_ocr) \
    ROW(exaone4_5) \
    ROW(fast_dvlm) \
    ROW(gemma3) \
    ROW(gemma3n) \
    ROW(gemma4) \
    ROW(gemma4_unified) \
    ROW(glm4v) \
    ROW(glm5v) \
    ROW(glm_asr) \
    ROW(granite4_vision) \
    ROW(granite_speech) \
    ROW(hunyuanvl) \
    ROW(internvl) \
    ROW(janus) \
    ROW(kimik25) \
    ROW(kimivl) \
    ROW(lfm2_audio) \
    ROW(lfm2vl) \
    ROW(lighton_ocr) \
    ROW(ling3vl) \
    ROW(llama4) \
    ROW(meralion) \
    ROW(mimo) \
    ROW(minicpmv) \
    ROW(minimax_m3) \
    ROW(mistral_vision) \
    ROW(musicflamingo) \
    ROW(muse_glimmer) \
    ROW(nemotron_vl) \
    ROW(paddleocr) \
    ROW(phi4) \
    ROW(pixtral) \
    ROW(pockettts) \
    ROW(qwen2_audio) \
    ROW(qwen2_5_omni) \
    ROW(qwen2vl) \
    ROW(qwen2_5vl) \
    ROW(qwen3_asr) \
    ROW(qwen3_omni) \
    ROW(qwen3tts) \
    ROW(qwen3vl) \
    ROW(smolvlm) \
    ROW(step3vl) \
    ROW(ultravox) \
    ROW(voxtral) \
    ROW(youtuvl)
/* clang-format on */

#define DECLARE(name) extern const struct family name##_projector;
PROJECTORS(DECLARE)

#define ADDRESS(name) &name##_projector,
const struct family *const projectors[] = {PROJECTORS(ADDRESS) NULL};

const struct family *projector_find(const struct hparams *text, const struct family_name **ret_name,
                                    struct error *error)
{
    const char *class_name = hparams_tower_class(text);
    const struct family *found = family_among(projectors, class_name, text, ret_name);
    if (found == NULL)
        error_set(error, "no mmproj.gguf is known for %s", class_name != NULL ? class_name : "a model without a name");
    return found;
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
