/* Processes that serve or use a mount, from /proc: root finds all of them, other users find their own, and no process
 * finds itself. Nothing in the mount is touched, so a stopped server delays no caller. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROCESS_NAME = 80, PROCESS_USE = 512 };

struct process {
    pid_t pid;
    char name[PROCESS_NAME]; /* as ps shows it, safe on a terminal */
    bool stopped;            /* by SIGSTOP or ^Z, until a SIGCONT */
};

/* Looks up a process by its number; returns false if it has ended. */
bool process_find(pid_t pid, struct process *ret_process);

/* Calls see() with the target of each descriptor of a process, until see() returns false. Returns whether it never did.
 */
typedef bool see_descriptor(void *context, const char *target);
bool process_each_descriptor(pid_t pid, see_descriptor *see, void *context);

/* Finds the process that serves the mount at an absolute path: it has /dev/fuse open, and the directory under the mount
 * (mountpoint.h); of several, as after `umount -l`, the one that started last. Returns false if none is visible. */
bool process_serving(const char *mountpoint, struct process *ret_process);

/* Counts the processes that have their working directory in the mount, or files of it open or mapped, except the server
 * `except` (0: none). `ret_first` and `use` ("maps model.gguf") describe the first one, if any. */
size_t processes_using(const char *mountpoint, pid_t except, struct process *ret_first, char use[PROCESS_USE]);

/* Which layers of the sandbox bind a server, told to other processes: the kernel tells of some of them alone.
 *
 * A server keeps a file in memory open whose name says so, which those who may look at its descriptors can read, just
 * as they find the server by them (processes.h). */

struct confinement {
    unsigned layers; /* a sum of enum sandbox_layer */
    bool network;    /* it may connect to servers */
    bool opens_all;  /* its opener opens what any link leads to */
};

/* Shows the confinement of this process, for its life. */
void confinement_show(const struct confinement *confinement);

/* Finds out the confinement that a process shows; false: none, or it cannot be seen. */
bool confinement_of(pid_t process, struct confinement *ret_confinement);
