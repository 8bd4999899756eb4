#include "models/config/constants.h"

#include <stdlib.h>

enum { FIRST_MAJOR = 5 };

#define SIGMOID "{'scoring_func': 'sigmoid'}"

/* `keys` are those that may spell it, as in hparams_find(). */
static const struct {
    const char *model_type, *keys, *added;
} constants[] = {
    {"afmoe", "route_norm", "{'route_norm': true}"},
    {"cohere2", "rotary_pct|partial_rotary_factor", "{'rotary_pct': 1.0}"},
    {"deepseek_v3", "scoring_func", SIGMOID},
    {"deepseek_v32", "scoring_func", SIGMOID},
    {"dots1", "scoring_func", SIGMOID},
    {"exaone_moe", "scoring_func", SIGMOID},
    {"minimax_m2", "scoring_func", SIGMOID},
    {"solar_open", "partial_rotary_factor|rope_parameters.partial_rotary_factor", "{'partial_rotary_factor': 1.0}"},
};

bool hparams_add_constants(struct hparams *hparams, const char **ret_added, struct error *error)
{
    const char *version = json_string(json_get(hparams_raw(hparams), "transformers_version"), NULL);
    *ret_added = NULL;
    if (version == NULL || strtol(version, NULL, 10) < FIRST_MAJOR)
        return true;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (json_string_is(hparams_get(hparams, "model_type"), constants[i].model_type) &&
            hparams_find(hparams, constants[i].keys) == NULL) {
            *ret_added = constants[i].added;
            return hparams_default(hparams, constants[i].added, error);
        }
    return true;
}
