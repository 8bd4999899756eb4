/* What sources and options name, found from the words alone, before anything is opened: for the sandbox
 * (base/sandbox.h) and the opener (base/opener.h). */
#pragma once

#include "fs/options/options.h"

/* Returns the directories and files that may be opened, without links, in the arena; NULL at the end: the folder of
 * each source (in a hub cache, that of its repository), what options name, the hub cache, and the installed layouts.
 * What links in a directory of models and in the hub cache name counts, too: users keep models elsewhere so. With
 * `is_library` the sources may be such directories. Reads no file. */
const char *const *source_roots(const char *const *sources, size_t n, bool is_library, const struct options *options,
                                struct arena *arena);

/* Reports whether one of these is a file in the root directory, which is then listed as a folder of a source is. */
bool roots_are_at_top(const char *const *roots);

/* Returns the part of these that the hub cache is: its directory, and what links in it name. */
const char *const *hub_cache_roots(struct arena *arena);

/* Returns the texts of an option's value that may name a file, in the arena; NULL at the end: of "DIR", "DIR:SCALE" and
 * "LAYOUT:PARAMETER=FILE,..." the whole and its parts. */
const char *const *texts_of_value(const char *value, struct arena *arena);

/* Returns the descriptors that texts name, /dev/fd/N or /proc/self/fd/N, in the arena; -1 at the end. */
const int *source_descriptors(const char *const *sources, size_t n, struct arena *arena);

/* Reports whether the sources or the options need the network: one is or holds a URL, or is a recipe, whose models may
 * be named by URLs with -o follow-links. */
bool sources_need_network(const char *const *sources, size_t n, const struct options *options);

/* Returns the TCP ports that the sources' servers have, by their URLs and the environment's endpoints and proxies, and
 * those of HTTPS, HTTP, and DNS, in the arena; 0 at the end. NULL: they cannot be known. */
const uint16_t *source_ports(const char *const *sources, size_t n, const struct options *options, struct arena *arena);
