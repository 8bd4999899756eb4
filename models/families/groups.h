/* Families as people look for them: by who makes them, and which of them are compared with the converter's own files.
 *
 * A family is in the first group that one of the beginnings of its name is of, so that a new one of a known maker needs
 * no row here. */
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

/* Reports whether the files made of a checkpoint of the family are those that the converter makes, byte for byte but
 * for what README.md says of exactness: tests/interop/test_golden.py compares them. */
bool family_is_golden(const struct family *family);
