#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void system_want_huge_pages(void *memory, size_t size)
{
}

void system_condition_init(pthread_cond_t *condition)
{
    pthread_cond_init(condition, NULL);
}

/* Deadlines are by the clock of the day here, so the time until then is waited for. */
int system_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *deadline)
{
    enum { SECOND = 1000 * 1000 * 1000 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct timespec left = {deadline->tv_sec - now.tv_sec, deadline->tv_nsec - now.tv_nsec};
    if (left.tv_nsec < 0) {
        left.tv_sec--;
        left.tv_nsec += SECOND;
    }
    return left.tv_sec < 0 ? ETIMEDOUT : pthread_cond_timedwait_relative_np(condition, lock, &left);
}

int system_socket(int family, int type, int protocol)
{
    int fd = socket(family, type, protocol);
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

bool system_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return true;
}

const int system_find_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

int system_reopen(int found)
{
    return fcntl(found, F_DUPFD_CLOEXEC, 0);
}

bool system_path_of(int fd, char path[PATH_MAX])
{
    return fcntl(fd, F_GETPATH, path) == 0;
}

bool system_program_path(char path[PATH_MAX])
{
    uint32_t room = PATH_MAX;
    return _NSGetExecutablePath(path, &room) == 0;
}

int system_watch(int fd, int inotify)
{
    return -1;
}

void system_read_ahead(int fd, uint64_t offset, uint64_t length)
{
    struct radvisory range = {(off_t)offset, length < INT_MAX ? (int)length : INT_MAX};
    fcntl(fd, F_RDADVISE, &range);
}

size_t system_processors(void)
{
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 ? (size_t)all : 1;
}

uint64_t system_random(void)
{
    return (uint64_t)arc4random() << 32 | arc4random();
}

bool system_reserve(int fd, uint64_t size)
{
    fstore_t wanted = {.fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE, .fst_length = (off_t)size};
    return fcntl(fd, F_PREALLOCATE, &wanted) == 0;
}

static int refuse(void)
{
    errno = ENOTSUP;
    return -1;
}

/* F_PREALLOCATE begins at the end of the file. */
bool system_reserve_range(int fd, uint64_t offset, uint64_t length)
{
    return refuse() == 0;
}

bool system_lock_bytes(int fd, uint64_t first, uint64_t count)
{
    return true;
}

void system_unlock_bytes(int fd, uint64_t first, uint64_t count)
{
}

int system_open_unnamed(const char *directory, mode_t mode)
{
    return refuse();
}

bool system_link_unnamed(int fd, const char *path)
{
    return refuse() == 0;
}

/* clonefile() shares whole files only. */
int system_clone(const struct system_clone *clone)
{
    return ENOTSUP;
}

struct sorting {
    int (*compare)(const void *a, const void *b, void *context);
    void *context;
};

static int compare_in(void *context, const void *a, const void *b)
{
    const struct sorting *sorting = context;
    return sorting->compare(a, b, sorting->context);
}

void system_sort(void *base, size_t n, size_t size, int (*compare)(const void *a, const void *b, void *context),
                 void *context)
{
    struct sorting sorting = {compare, context};
    qsort_r(base, n, size, &sorting, compare_in);
}

struct timespec system_modified(const struct stat *status)
{
    return status->st_mtimespec;
}

struct timespec system_changed(const struct stat *status)
{
    return status->st_ctimespec;
}

void system_forget(int fd)
{
    fcntl(fd, F_NOCACHE, 1);
}

void system_build_id(void (*add)(void *context, const void *bytes, size_t length), void *context)
{
    const struct mach_header_64 *program = (const struct mach_header_64 *)_dyld_get_image_header(0);
    const char *at = (const char *)(program + 1);
    for (uint32_t i = 0; i < program->ncmds; i++) {
        const struct load_command *command = (const struct load_command *)(const void *)at;
        if (command->cmd == LC_UUID) {
            const struct uuid_command *identity = (const struct uuid_command *)(const void *)at;
            add(context, identity->uuid, sizeof identity->uuid);
        }
        at += command->cmdsize;
    }
}
