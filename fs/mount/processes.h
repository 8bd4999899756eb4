/* Processes that serve a mount, or use it, as /proc tells: all of them to root, to others their own. Nothing in the
 * mount is touched, so that a server that is stopped holds up nobody. */
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

/* Looks up a process by its number; false where it has ended. */
bool process_find(pid_t pid, struct process *ret_process);

/* Finds the wfs that serves the mount at an absolute path: it has /dev/fuse open, and the directory under the mount
 * (hold.h). Of several, as after `umount -l`, it is the one that was started last. False where none is to be seen. */
bool process_serving(const char *mountpoint, struct process *ret_process);

/* Counts the processes but the server `except` (0: none) that work in the mount, or have files of it open or mapped.
 * `ret_first` and `use` ("maps model.gguf") are those of the first, if any. */
size_t processes_using(const char *mountpoint, pid_t except, struct process *ret_first, char use[PROCESS_USE]);
