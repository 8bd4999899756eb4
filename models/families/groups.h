/* Families grouped by their maker, for documentation, and the list of families with golden files.
 *
 * A family is in the first group with a beginning of its name, so that a new family of a known maker needs no row. */
#pragma once

#include "models/families/shared.h"

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
