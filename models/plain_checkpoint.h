/* A packed checkpoint as a plain one, for good: the model unpacked and saved again, for who changes its weights.
 *
 * The parts of packed weights are not there any more, each weight is in the dtype of before it was packed, and no side
 * file says that it is packed. */
#pragma once

#include "models/packings/packing.h"

/* Changes a checkpoint that nobody uses yet; a note says so. `*ret_plain` is what its tensors are now, those that are
 * as stored where nothing was packed. Where it fails the checkpoint is good for nothing but to be closed. */
bool plain_checkpoint_make(struct checkpoint *checkpoint, struct plain_set *ret_plain, struct error *error);
