/* The table of families. */
#pragma once

#include "models/families/shared.h"
#include "models/family/family.h"

/* All families, NULL at the end. */
extern const struct family *const families[];

/* Returns the family of the model that `hparams` describe, or NULL; *ret_name is the row of its class. The chosen build
 * may be older than both: family_is_known(). models/facts.h has the family of a checkpoint. */
const struct family *family_find(const struct hparams *hparams, const struct family_name **ret_name);

/* Families grouped by their maker, for documentation, and the list of families with golden files.
 *
 * A family is in the first group with a beginning of its name, so that a new family of a known maker needs no row. */

enum { GROUP_MAX_BEGINNINGS = 12 };

struct family_group {
    const char *title;
    const char *beginnings[GROUP_MAX_BEGINNINGS]; /* of families' names, up to a NULL; none: all others */
};

/* Up to one without a title. */
extern const struct family_group family_groups[];

const struct family_group *family_group_of(const struct family *family);

/* Reports whether tests/interop/test_golden.py compares files of the family with the converter's, byte for byte except
 * where README.md limits exactness. */
bool family_is_golden(const struct family *family);
