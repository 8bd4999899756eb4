/* The steps of checkpoint_open() that live in different files. */
#pragma once

#include "formats/checkpoint.h"

/* An empty checkpoint with its arena. */
struct checkpoint *checkpoint_new(const char *path);

/* Sorts the tensors for checkpoint_find(); refuses a name that stands twice, and says in which sources. For readers
 * that need to search before they are done, too: no tensor may be added behind it, and once more does nothing. */
bool checkpoint_index_tensors(struct checkpoint *checkpoint, struct error *error);
