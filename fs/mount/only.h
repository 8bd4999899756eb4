/* The paths that a mount lists, for those who read whatever they find: backups, indexers, virus scanners. The names of
 * a model's files cost nothing, but reading all of them computes the model some forty times. Paths that are not listed
 * can still be opened by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Patterns as `wfs ls` takes them: each part between slashes is a pattern of fnmatch() for one name. */
struct only {
    const char *const *patterns;
    size_t n_patterns; /* 0: everything is listed */
};

/* Reports whether a path of the mount is listed: a pattern matches it or a directory above it, or it is a directory
 * that leads to what one may match. */
bool only_lists(const struct only *only, const char *path, bool is_directory);
