/* Names the obstacle that keeps the system from mounting, with the remedy. */
#pragma once

#include "base/error.h"

/* Sets the error for a mount that failed: what is found to be in the way, else `words`, which fusermount3 or libfuse
 * said. Returns false. */
bool obstacle_explain(const char *mountpoint, const char *words, struct error *error);
