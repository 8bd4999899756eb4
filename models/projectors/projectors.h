/* The table of projectors. */
#pragma once

#include "models/family/family.h"

/* All projectors, NULL at the end. */
extern const struct family *const projectors[];

/* Returns the projector of the model that `text` describes; *ret_name is the row of its class. Returns NULL, with an
 * error, if no projector has the class. The chosen build may be older than it: family_is_known(). */
const struct family *projector_find(const struct hparams *text, const struct family_name **ret_name,
                                    struct error *error);

/* Reports whether config.json describes a vision or audio part. */
bool projector_is_described(const struct hparams *text);
