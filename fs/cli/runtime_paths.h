/* The files that a confined process opens itself, besides its sources: those of its libraries. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

/* Reads what libraries would read later, where the sandbox does not let them: the user's directory, the time zone, and
 * with `network` the library for servers, which LD_LIBRARY_PATH may name. */
void runtime_paths_prepare(bool network);

/* Returns the paths to read, in the arena; NULL at the end: the tables of this process and of mounts, and the time
 * zone. With `network` also what libcurl, the resolver and TLS read, tokens and keys. Single files of /etc: root may
 * read the others, too. */
const char *const *runtime_paths(bool network, struct arena *arena);
