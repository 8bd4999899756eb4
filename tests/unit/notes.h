/* The notes of a checkpoint, for tests. */
#pragma once

#include "formats/checkpoint.h"

#include <string.h>

/* Reports whether a note has that text in it. */
static inline bool has_note(const struct checkpoint *checkpoint, const char *part)
{
    for (size_t i = 0; i < checkpoint_notes(checkpoint); i++)
        if (strstr(checkpoint_note_at(checkpoint, i).text, part) != NULL)
            return true;
    return false;
}
