/* The projectors that are known. */
#pragma once

#include "models/family/family.h"

/* All projectors, NULL at the end. */
extern const struct family *const projectors[];

/* The projector of the model that `text` describes; NULL, with an error that says why there is none. *ret_name is the
 * row of its architecture. */
const struct family *projector_find(const struct hparams *text, const struct family_name **ret_name,
                                    struct error *error);

/* Reports whether config.json says anything of a part that sees or hears. */
bool projector_is_described(const struct hparams *text);
