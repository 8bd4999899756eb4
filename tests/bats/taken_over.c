/* What code that has taken over a program could do as soon as the program reads the first bytes of a file. For programs
 * that load this with LD_PRELOAD:
 *
 *     TAKEN_OVER_AT=NAME      the end of that file's path
 *     TAKEN_OVER_OPENS=PATHS  files that it tries to open for reading, separated by ':'; it also tries to connect to a
 *                             port of this machine, and to make the file TAKEN_OVER_MAKES
 *     TAKEN_OVER_REPORT=PATH  gets a line for each attempt: "open PATH: done" or "...: refused"
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what is below replaces functions of libraries */

enum { FIRST_NUMBER = 500 }; /* of our descriptor, beyond those of the program */

/* Read at the start: the program forgets its environment, and may open few paths. */
static char at[PATH_MAX], opens[PATH_MAX], makes[PATH_MAX];
static int report = -1;

static void copy_variable(const char *name, char to[PATH_MAX])
{
    const char *value = getenv(name);
    if (value != NULL && strlen(value) < PATH_MAX)
        strcpy(to, value);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *path = getenv("TAKEN_OVER_REPORT");
    copy_variable("TAKEN_OVER_AT", at);
    copy_variable("TAKEN_OVER_OPENS", opens);
    copy_variable("TAKEN_OVER_MAKES", makes);
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    report = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, FIRST_NUMBER) : -1;
    close(file);
}

static void tell(const char *what, const char *path, bool done)
{
    dprintf(report, "%s%s: %s\n", what, path, done ? "done" : "refused");
}

static bool connects(void)
{
    const struct sockaddr_in nobody = {
        .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && (connect(fd, (const struct sockaddr *)&nobody, sizeof nobody) == 0 || errno == ECONNREFUSED);
}

static void try_all(void)
{
    char *rest = NULL;
    for (const char *path = strtok_r(opens, ":", &rest); path != NULL; path = strtok_r(NULL, ":", &rest)) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        tell("open ", path, fd >= 0);
        close(fd);
    }
    tell("connect", "", connects());
    tell("make ", makes, open(makes, O_WRONLY | O_CREAT, 0600) >= 0);
}

static bool is_file(int file)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    size_t end = strlen(at);
    return length >= (ssize_t)end && end > 0 && memcmp(path + length - end, at, end) == 0;
}

ssize_t pread(int file, void *out, size_t size, off_t offset) /* pread64, as everything here is compiled */
{
    static atomic_flag is_done = ATOMIC_FLAG_INIT;
    int before = errno;
    if (report >= 0 && is_file(file) && !atomic_flag_test_and_set(&is_done))
        try_all();
    errno = before;
    return syscall(SYS_pread64, file, out, size, offset);
}
