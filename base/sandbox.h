/* The sandbox: what a process gives up before it reads what strangers wrote.
 *
 * A bug in a parser must not become more than wrong bytes. sandbox_enter() takes rights away for good, from the process
 * and from all that it starts: set-user-ID programs have no effect, all capabilities but those named are gone, system
 * calls that the process' role has no use for fail with EPERM (seccomp, by a list of those that are allowed), and only
 * named paths can be opened and named ports reached (Landlock). Each layer that the kernel lacks is skipped: a sandbox
 * never makes a command fail. Paths, ports and capabilities bind the calling thread and those it starts, so threads
 * should not run yet.
 *
 * Builds with a sanitizer may also debug and make processes: the search for leaks needs that. docs/security.md has the
 * threats. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox_paths {
    /* NULL-terminated, or NULL; missing paths are ignored */
    const char *const *readable; /* to read, with all below */
    const char *const *listed;   /* directories to list, with those below, but not to read */
    const char *const *writable; /* to change, with all below */
    const char *const *devices;  /* to read and write, without new names */
    const uint16_t *ports;       /* of TCP, to connect to, up to a 0; NULL: all, and listening too */
    bool listens;                /* at any port */
    /* names move from one writable directory to another, which the first version of Landlock forbids: no restriction */
    bool moves_names;
};

/* Opens the paths that can be used in a sandbox, and names its ports, from Linux 6.7 on. From Linux 6.12 on, a process
 * with paths can send signals to itself alone. Files and directories count, not names: call it before a mount hides
 * them. Returns a descriptor for sandbox_enter(), which closes it; 0 if the kernel has no such layer. */
int sandbox_open_paths(const struct sandbox_paths *paths);

/* What a process does, which tells the system calls that it needs. */
enum sandbox_role {
    SANDBOX_READER,  /* reads models, and writes to the store and to outputs */
    SANDBOX_OPENER,  /* opens files for a reader (opener.h) */
    SANDBOX_MOUNTER, /* detaches a mount, and gives files of it to the kernel (fs/mount/mounter.h) */
};

/* What a reader may do besides. */
enum sandbox_use { SANDBOX_CONNECTS = 1, SANDBOX_LISTENS = 2 };

/* Two requests to /dev/fuse, which the headers of Debian 12 lack. Source: include/uapi/linux/fuse.h of Linux 6.9. */
enum { SANDBOX_BACKING_OPEN = 0x4010e501, SANDBOX_BACKING_CLOSE = 0x4004e502 };

struct sandbox {
    enum sandbox_role role;
    unsigned uses;         /* a sum of enum sandbox_use */
    uint64_t capabilities; /* to keep, of those that the process has: 1 << CAP_SYS_ADMIN ... */
    int paths;             /* of sandbox_open_paths(); 0: all paths stay open */
    int written;           /* for an opener: the only descriptor that it may write to; -1: none */
};

/* The capabilities of commands: root reads files of any user; and of one that copies or serves: it replaces them, too,
 * and listens at a low port. */
extern const uint64_t sandbox_reading, sandbox_copying;

enum sandbox_layer { SANDBOX_PRIVILEGES = 1, SANDBOX_CALLS = 2, SANDBOX_PATHS = 4 };

/* Enters the sandbox, and returns the layers that are in force. */
unsigned sandbox_enter(const struct sandbox *sandbox);

/* Keeps only some of the process' capabilities, as sandbox_enter() does. Reports whether the kernel agreed. */
bool sandbox_keep_capabilities(uint64_t kept);

/* Leaves only the paths of a descriptor of sandbox_open_paths(), which it closes, to a process that is in the sandbox
 * and entered it with all paths. Reports whether the layer is in force. */
bool sandbox_restrict_paths(int paths);

/* Removes and overwrites all environment variables but those that wfs and its libraries read later: a server's
 * environment may hold secrets of its caller. For a process with one thread. `names` may be NULL; it lists more
 * variables to keep, up to a NULL. */
void sandbox_clear_environment(const char *const *names);

/* Removes and overwrites all environment variables but those that begin with `kept`, NULL: none. */
void sandbox_empty_environment(const char *kept);

/* The system calls of the sandbox: what sandbox.c gives to the kernel as a seccomp filter. */

/* Leaves the calls of a role to all threads of the process, for good. Every other call fails with EPERM; clone3() fails
 * with ENOSYS, after which libraries use clone(). Returns false if the kernel has no seccomp. */
bool sandbox_filter_calls(const struct sandbox *sandbox);
