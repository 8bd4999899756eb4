/* The table of families. */
#pragma once

#include "models/family/family.h"

/* All families, NULL at the end. */
extern const struct family *const families[];

/* Returns the family of the model that `hparams` describe, or NULL; *ret_name is the row of its class. A family or
 * class that is younger than the chosen build is unknown; NULL for `references`: the newest build. What is no file of
 * llama.cpp does not depend on its build, and passes NULL. */
const struct family *family_find(const struct hparams *hparams, const struct references *references,
                                 const struct family_name **ret_name);
