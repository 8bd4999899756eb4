/* The sandbox: what a process gives up before it reads what strangers wrote.
 *
 * A bug in a parser must not become more than wrong bytes. sandbox_enter() takes rights away for good, from the process
 * and from all that it starts: no new privileges by set-user-ID programs, only the capabilities in use, no programs, no
 * debugging, no kernel modules, namespaces or mounts, no network unless asked for (seccomp); and only named paths
 * (Landlock). Each layer that the kernel lacks is skipped: a sandbox never makes a command fail. Paths and capabilities
 * bind the calling thread and those it starts, so threads should not run yet.
 *
 * Builds with a sanitizer may also debug: the search for leaks needs that. docs/security.md has the threats. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox_paths {
    const char *const *readable, *const *writable; /* NULL-terminated, or NULL; missing paths are ignored */
};

/* Opens the paths that can be used in a sandbox; system directories (/usr, /etc, /proc, /dev ...) can always be read.
 * Files and directories count, not names: call it before a mount hides them. Returns a descriptor for sandbox_enter(),
 * which closes it; 0 if the kernel has no such layer. */
int sandbox_open_paths(const struct sandbox_paths *paths);

struct sandbox {
    bool network;          /* sockets of the internet are needed */
    uint64_t capabilities; /* to keep besides those for reading and copying files: 1 << CAP_KILL ... */
    int paths;             /* of sandbox_open_paths(); 0: all paths stay open */
    const char *emptied;   /* a directory from which directories may be removed, too; NULL: none */
};

enum sandbox_layer { SANDBOX_PRIVILEGES = 1, SANDBOX_CALLS = 2, SANDBOX_PATHS = 4 };

/* Enters the sandbox, and returns the layers that are in force. */
unsigned sandbox_enter(const struct sandbox *sandbox);

/* Leaves only the paths of a descriptor of sandbox_open_paths(), which it closes, to a process that is in the sandbox
 * and entered it with all paths. Reports whether the layer is in force. */
bool sandbox_restrict_paths(int paths);

/* Removes and overwrites all environment variables but those that wfs and its libraries read later: a server's
 * environment may hold secrets of its caller. For a process with one thread. `names` may be NULL; it lists more
 * variables to keep, up to a NULL. */
void sandbox_clear_environment(const char *const *names);
