/* The sandbox (base/sandbox.h) of commands without a mount. They enter it once their words are understood, before
 * anything that the words name is read: what may be opened follows from the words alone (source_roots.h). */
#pragma once

#include "fs/options/options.h"

/* What a command reads and writes, besides what its options name. */
struct command_needs {
    const char *const *sources; /* paths, names of repositories, URLs */
    size_t n_sources;
    bool is_library;            /* the sources are models, or directories of them */
    const char *destination;    /* to write to: a file, a device or a directory, which may be new; NULL: none */
    bool writes_beside;         /* also to new files in the folder of the destination */
    const char *const *removed; /* files and directories that are removed, up to a NULL; NULL: none */
    bool fills_hub_cache;
    bool uses_store; /* the store of kept bytes, even if no source is on a server and no option asks for it */
    bool listens;    /* accepts connections */
};

/* Enters the sandbox, before threads are started: reads only the folders of the sources and of what options name, the
 * hub cache and the layouts (with -o follow-links everything), writes only to the destination and to the store, and
 * connects only if a source or an option names a server, to the ports of these. Clears the environment if nothing
 * connects. Makes the directories of the store and of the hub cache if they are to be filled. */
void enter_command_sandbox(const struct command_needs *needs, const struct options *options);

/* The sandbox (base/sandbox.h) of commands that serve a mount. */

/* Starts the opener of a server's sources, and enters the sandbox, before anything of a source is read and before
 * threads are started: no capabilities, no new files but by the opener and in the store, no network unless a source or
 * an option names a server. Clears the environment, unless the network needs it. */
bool enter_server_sandbox(const char *const *sources, size_t n, const struct options *options, struct error *error);
