/* Paths that a file of a checkpoint names: of other files, in the same directory or below. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reports whether a path stays in its directory: relative, not empty, without NUL, and without a component that is
 * empty, "." or "..". Links are the location's matter. */
bool inner_path(const char *path, size_t length);
