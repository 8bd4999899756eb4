#include "models/projectors/projectors.h"

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
