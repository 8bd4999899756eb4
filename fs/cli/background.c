#include "fs/cli/background.h"

#include "base/opener.h"
#include "base/report.h"
#include "base/system.h"
#include "base/text.h"
#include "fs/cli/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child writes into the pipe. */
static const char is_ready = 'r', is_ending = 'e';

static int await_child(struct background *background, pid_t child, int ready)
{
    char byte;
    int status;
    ssize_t n;
    while ((n = read(ready, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (n == 1 && byte == is_ready)
        return EXIT_SUCCESS;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    background->vanished = n != 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_SUCCESS)
        return WEXITSTATUS(status);
    bool was_killed = WIFSIGNALED(status);
    report("it ended before the mount answered%s%s%s", was_killed ? ": " : "",
           was_killed ? strsignal(WTERMSIG(status)) : "",
           was_killed && WTERMSIG(status) == SIGKILL ? "; if memory ran out, it needs more for this model" : "");
    return EXIT_BAD_INPUT;
}

int background_start(struct background *background)
{
    int ends[2];
    pid_t child = system_pipe(ends) ? fork() : -1;
    if (child < 0) {
        report("cannot go to the background: %s", strerror(errno));
        return EXIT_BAD_INPUT;
    }
    if (child > 0) {
        close(ends[1]);
        return await_child(background, child, ends[0]);
    }
    close(ends[0]);
    background->ready = ends[1];
    report_prepare_syslog(); /* later the sandbox allows no socket */
    return -1;
}

/* Returns the descriptor that a path begins with, or -1. */
static int descriptor_of(const char *path)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (text_starts_with(path, directories[i]))
            return atoi(path + strlen(directories[i]));
    return -1;
}

static bool is_inherited(int fd, const char *const *paths)
{
    int flags = fcntl(fd, F_GETFD);
    bool inherited = fd > STDERR_FILENO && flags >= 0 && !(flags & FD_CLOEXEC);
    for (; inherited && *paths != NULL; paths++)
        inherited = descriptor_of(*paths) != fd;
    return inherited;
}

void background_close_inherited(const struct background *background, const char *const *paths)
{
    DIR *descriptors = background->ready >= 0 ? opendir("/proc/self/fd") : NULL;
    const struct dirent *entry;
    while (descriptors != NULL && (entry = readdir(descriptors)) != NULL)
        if (is_inherited(atoi(entry->d_name), paths))
            close(atoi(entry->d_name));
    if (descriptors != NULL)
        closedir(descriptors);
}

void background_ready(struct background *background, bool keep_stderr)
{
    if (background->ready < 0)
        return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= (keep_stderr ? STDOUT_FILENO : STDERR_FILENO); fd++)
        dup2(null, fd);
    close(null);
    setsid();
    if (!keep_stderr)
        report_to_syslog();
    if (chdir("/") != 0 || write(background->ready, &is_ready, 1) != 1)
        report("nobody waits for the mount any more");
    opener_leave_directory();
    close(background->ready);
    background->ready = -1;
}

void background_end(struct background *background)
{
    if (background->ready < 0)
        return;
    while (write(background->ready, &is_ending, 1) < 0 && errno == EINTR)
        ;
    close(background->ready);
    background->ready = -1;
}
