/* Names the obstacle that keeps the system from mounting, with the remedy. */
#pragma once

#include "base/error.h"

/* Sets the error for a mount that failed: the obstacle that it finds, or else `words`, the message of fusermount3 or
 * libfuse. Returns false. */
bool obstacle_explain(const char *mountpoint, const char *words, struct error *error);
