#include "fs/mount/device.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Gets the last line that was written to a pipe, or "", and closes the pipe. */
static void last_line(int pipe, char words[FUSERMOUNT_WORDS])
{
    FILE *said = fdopen(pipe, "re");
    char line[FUSERMOUNT_WORDS];
    *words = '\0';
    if (said == NULL) {
        close(pipe);
        return;
    }
    while (fgets(line, sizeof line, said) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (*line != '\0')
            strcpy(words, line);
    }
    fclose(said);
}

/* Makes a pipe that does not block: a process that keeps the other end open delays no reader. */
static bool make_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;
}

bool fusermount_mount(struct fuse_session *fuse, const char *path, char words[FUSERMOUNT_WORDS])
{
    int ends[2], before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    *words = '\0';
    if (before < 0 || !make_pipe(ends)) {
        if (before >= 0)
            close(before);
        return fuse_session_mount(fuse, path) == 0;
    }
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    bool mounted = fuse_session_mount(fuse, path) == 0;
    dup2(before, STDERR_FILENO);
    close(before);
    last_line(ends[0], words);
    return mounted;
}

/* How long a process is waited for, if a user has as many as are allowed: of a server that ends, threads and processes
 * still count for a moment, and nobody else detaches its mount. */
enum { START_TRIES = 40, START_NANOSECONDS = 50 * 1000 * 1000 };

/* Starts fusermount3 with the pipe as its stderr. Returns 0 or an errno. */
static int start(const char *path, bool lazy, int said, pid_t *ret_child)
{
    char *own = memory_strdup(path), *const arguments[] = {"fusermount3", lazy ? "-uz" : "-u", "--", own, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
    int reason = EAGAIN;
    for (int i = 0; i < START_TRIES && reason == EAGAIN; i++) {
        reason = posix_spawnp(ret_child, arguments[0], &actions, NULL, arguments, environ);
        if (reason == EAGAIN)
            nanosleep(&(struct timespec){.tv_nsec = START_NANOSECONDS}, NULL);
    }
    posix_spawn_file_actions_destroy(&actions);
    free(own);
    return reason;
}

bool fusermount_unmount(const char *path, bool lazy, struct error *error)
{
    int ends[2], status;
    pid_t child;
    char words[FUSERMOUNT_WORDS];
    if (!make_pipe(ends))
        return error_set_errno(error, errno, "%s: cannot be unmounted", path);
    int reason = start(path, lazy, ends[1], &child);
    close(ends[1]);
    if (reason != 0) {
        close(ends[0]);
        return error_set_errno(error, reason, "%s: cannot be unmounted without fusermount3", path);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    last_line(ends[0], words);
    return status == 0 || error_set(error, "%s: %s", path, *words ? words : "fusermount3 could not unmount it");
}
