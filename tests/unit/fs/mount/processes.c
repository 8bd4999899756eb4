/* Processes as /proc tells of them: children that use a directory in each way, which stands for a mount. */
#include "fs/mount/processes.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum use { NOTHING, WORKS_IN, OPEN_FILE, OPEN_DIRECTORY, MAPS_FILE, SERVES };

static void use_mount(enum use use, const char *path)
{
    int fd = use == OPEN_FILE || use == MAPS_FILE ? open(path, O_RDONLY) : -1;
    if (use == WORKS_IN)
        files_must(chdir(path) == 0, path);
    if (use == OPEN_DIRECTORY || use == SERVES)
        open(path, O_RDONLY | O_DIRECTORY);
    if (use == SERVES)
        open("/dev/fuse", O_RDWR);
    if (use == MAPS_FILE) {
        files_must(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED, path);
        close(fd);
    }
}

/* A child with that name; returns once it does what it is to do, which it goes on with until it is killed. */
static pid_t begin(enum use use, const char *path, const char *name)
{
    int ready[2];
    char byte;
    files_must(pipe(ready) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, name);
        use_mount(use, path);
        files_must(write(ready[1], "", 1) == 1, "write");
        for (;;)
            pause();
    }
    files_must(child > 0 && read(ready[0], &byte, 1) == 1, "fork");
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void found(void)
{
    struct process process;
    int status;
    pid_t child = begin(NOTHING, NULL, "a) T (\x1b[0m");
    CHECK(process_find(child, &process) && process.pid == child && !process.stopped);
    CHECK_NAMED(strstr(process.name, "a) T (") == process.name && strchr(process.name, '\x1b') == NULL,
                "a name with parentheses, safe on a terminal");
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    CHECK(process_find(child, &process) && process.stopped);
    kill(child, SIGCONT);
    files_must(ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, child, NULL, NULL) == 0,
               "ptrace");
    waitpid(child, &status, 0);
    CHECK_NAMED(process_find(child, &process) && !process.stopped, "one that a tracer holds, as a leak checker does");
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    CHECK_NAMED(!process_find(child, &process), "one that has ended, and was not waited for");
    waitpid(child, NULL, 0);
    CHECK(!process_find(child, &process));
}

static const struct {
    enum use use;
    const char *path, *expected;
} uses[] = {
    {WORKS_IN, "mount", "works in the mount"},
    {WORKS_IN, "mount/tensors", "works in tensors"},
    {OPEN_FILE, "mount/model.gguf", "has model.gguf open"},
    {OPEN_DIRECTORY, "mount", "has the mount open"},
    {MAPS_FILE, "mount/a b", "maps a b"},
    {OPEN_FILE, "mounted/file", NULL}, /* whose path only begins alike */
    {WORKS_IN, ".", NULL},
};

static void users(const char *mount)
{
    struct process first;
    char use[PROCESS_USE];
    CHECK(processes_using(mount, 0, &first, use) == 0);
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        pid_t child = begin(uses[i].use, uses[i].path, "user");
        size_t count = processes_using(mount, 0, &first, use);
        CHECK_NAMED(count == (uses[i].expected != NULL), uses[i].path);
        if (count > 0) {
            CHECK(first.pid == child && strcmp(first.name, "user") == 0);
            CHECK_TEXT(use, uses[i].expected);
            CHECK(processes_using(mount, child, &first, use) == 0);
        }
        end(child);
    }
    pid_t some = begin(WORKS_IN, "mount", "one"), other = begin(OPEN_DIRECTORY, "mount", "two");
    CHECK(processes_using(mount, 0, &first, use) == 2 && (first.pid == some || first.pid == other));
    CHECK(processes_using(mount, some, &first, use) == 1 && first.pid == other);
    end(some);
    end(other);
}

static void servers(const char *mount)
{
    struct process server;
    pid_t child = begin(OPEN_DIRECTORY, "mount", "no server");
    CHECK(!process_serving(mount, &server));
    end(child);
    if (access("/dev/fuse", R_OK | W_OK) != 0) {
        check_skip("the server of a mount", "/dev/fuse cannot be opened");
        return;
    }
    pid_t older = begin(SERVES, "mount", "older"), elsewhere;
    usleep(50 * 1000); /* several ticks */
    pid_t newer = begin(SERVES, "mount", "newer");
    elsewhere = begin(SERVES, "mounted", "elsewhere");
    CHECK(process_serving(mount, &server) && server.pid == newer);
    end(newer);
    CHECK(process_serving(mount, &server) && server.pid == older);
    end(older);
    CHECK(!process_serving(mount, &server));
    end(elsewhere);
}

int main(void)
{
    files_begin();
    files_write_text("mount/model.gguf", "text");
    files_write_text("mount/a b", "text");
    files_write_text("mount/tensors/a", "text");
    files_write_text("mounted/file", "text");
    char *mount = realpath("mount", NULL);
    found();
    users(mount);
    servers(mount);
    free(mount);
    files_remove();
    return check_done();
}
