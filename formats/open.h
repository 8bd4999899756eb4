/* The step of checkpoint_open() that lives in another file. */
#pragma once

#include "formats/checkpoint.h"

/* An empty checkpoint with its arena. */
struct checkpoint *checkpoint_new(const char *path);
