/* What is shown of a checkpoint: its tensors as stored, and those that are packed put together besides.
 *
 * An unpacked tensor of a new name comes after all others. One that is called as one of its parts, as FP8 is, takes its
 * place, and has the part: raw is bytes, views are values. One that does not fit is there, too, refused, and says why.
 */
#pragma once

#include "models/packings/packing.h"

struct shown {
    const struct tensor_set *set;           /* sealed; the checkpoint's own where nothing is packed */
    const struct unpacked *const *unpacked; /* of each tensor; NULL: it is as stored. NULL: nothing is packed */
};

/* Everything is made in the arena. What a configuration that cannot be read would have said is not known then: others
 * say so. */
struct shown shown_of(const struct checkpoint *checkpoint, struct arena *arena);
