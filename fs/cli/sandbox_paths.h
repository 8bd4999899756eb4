/* The files that a confined process opens itself, besides its sources: those of its libraries. */
#pragma once

#include "base/arena.h"
#include "base/record_file.h"
#include "fs/options/options.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads what libraries would read later, where the sandbox does not let them: the user's directory, the time zone, and
 * with `network` the library for servers, which LD_LIBRARY_PATH may name. */
void runtime_paths_prepare(bool network);

/* Returns the paths to read, in the arena; NULL at the end: the tables of this process and of mounts, and the time
 * zone. With `network` also what libcurl, the resolver and TLS read, tokens and keys. Single files of /etc: root may
 * read the others, too. */
const char *const *runtime_paths(bool network, struct arena *arena);

/* A list of paths that grows in an arena, for the sandbox, whose lists end with NULL. */

struct path_list {
    struct arena *arena;
    const char **items;
    size_t count;
};

/* Adds a path, which is not copied. */
void path_list_add(struct path_list *list, const char *path);

/* Adds the paths of another list, up to its NULL. */
void path_list_add_all(struct path_list *list, const char *const *paths);

/* Ends the list, and returns its paths. */
const char *const *path_list_end(struct path_list *list);

/* The records of sizes (base/record_file.h) of commands that serve files, opened before they enter the sandbox. */

/* Opens the file with these flags. It is none if the options keep no sizes, or it cannot be used: nothing is said then.
 * The scope is that of the words: what these sources are called, without links. */
struct record_file open_records(int flags, const char *const *sources, size_t n, const struct options *options);
