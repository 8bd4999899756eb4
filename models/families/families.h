/* The table of families. */
#pragma once

#include "models/family/family.h"

/* All families, NULL at the end. */
extern const struct family *const families[];

/* Returns the family of the model that `hparams` describe, or NULL; *ret_name is the row of its class. The chosen build
 * may be older than both: family_is_known(). models/facts.h has the family of a checkpoint. */
const struct family *family_find(const struct hparams *hparams, const struct family_name **ret_name);
