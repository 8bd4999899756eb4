#include "fs/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAKEN_OVER_MILLISECONDS = 1000 }; /* no process prevents holds for longer, except on purpose */

static long milliseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
}

static int lock_directory(const char *path, int how, int milliseconds)
{
    struct timespec start;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (directory >= 0) {
        if (flock(directory, how | LOCK_NB) == 0)
            return directory;
        if (errno != EWOULDBLOCK || milliseconds_since(&start) >= milliseconds)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    int reason = errno;
    if (directory >= 0)
        close(directory);
    errno = reason;
    return -1;
}

int hold_take(const char *path)
{
    return lock_directory(path, LOCK_SH, TAKEN_OVER_MILLISECONDS);
}

int hold_take_over(const char *path, int milliseconds)
{
    return lock_directory(path, LOCK_EX, milliseconds);
}

bool hold_is_of(int hold, const char *path)
{
    struct stat held, there;
    return fstat(hold, &held) == 0 && lstat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}
