#include "base/system.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINK_PATH = 64 };

enum { HUGE_PAGE = 2 * 1024 * 1024 };

void system_want_huge_pages(void *memory, size_t size)
{
    uintptr_t begin = (uintptr_t)memory, first = (begin + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t end = (begin + size) / HUGE_PAGE * HUGE_PAGE;
    if (first < end)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void system_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int system_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *deadline)
{
    return pthread_cond_timedwait(condition, lock, deadline);
}

int system_socket(int family, int type, int protocol)
{
    return socket(family, type | SOCK_CLOEXEC, protocol);
}

bool system_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) == 0;
}

const int system_find_flags = O_PATH;

static const char *link_of(int fd, char link[LINK_PATH])
{
    snprintf(link, LINK_PATH, "/proc/self/fd/%d", fd);
    return link;
}

int system_reopen(int found)
{
    char link[LINK_PATH];
    return open(link_of(found, link), O_RDONLY | O_CLOEXEC);
}

static bool read_link(const char *link, char path[PATH_MAX])
{
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length < 0 || length >= PATH_MAX)
        return false;
    path[length] = '\0';
    return true;
}

bool system_path_of(int fd, char path[PATH_MAX])
{
    char link[LINK_PATH];
    return read_link(link_of(fd, link), path);
}

static char program[PATH_MAX]; /* "": unknown */

static void find_program(void)
{
    if (!read_link("/proc/self/exe", program))
        program[0] = '\0';
}

bool system_program_path(char path[PATH_MAX])
{
    static pthread_once_t found = PTHREAD_ONCE_INIT;
    pthread_once(&found, find_program);
    strcpy(path, program);
    return *program != '\0';
}

int system_watch(int fd, int inotify)
{
    char link[LINK_PATH];
    return inotify_add_watch(inotify, link_of(fd, link), IN_MODIFY);
}

void system_read_ahead(int fd, uint64_t offset, uint64_t length)
{
    posix_fadvise(fd, (off_t)offset, (off_t)length, POSIX_FADV_WILLNEED);
}

/* The call fails where a node has more processors than the set: then all count. */
size_t system_processors(void)
{
    cpu_set_t usable;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) > 0)
        return (size_t)CPU_COUNT(&usable);
    return all > 0 ? (size_t)all : 1;
}

uint64_t system_random(void)
{
    uint64_t number;
    return getentropy(&number, sizeof number) == 0 ? number : (uint64_t)getpid();
}

bool system_reserve(int fd, uint64_t size)
{
    return system_reserve_range(fd, 0, size);
}

/* Not posix_fallocate(): where the file system lacks the call, that writes zeros, over what others write. */
bool system_reserve_range(int fd, uint64_t offset, uint64_t length)
{
    return fallocate(fd, 0, (off_t)offset, (off_t)length) == 0;
}

static int set_lock(int fd, short type, uint64_t first, uint64_t count)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)first, .l_len = (off_t)count};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

bool system_lock_bytes(int fd, uint64_t first, uint64_t count)
{
    return set_lock(fd, F_WRLCK, first, count) == 0 || (errno != EAGAIN && errno != EACCES);
}

void system_unlock_bytes(int fd, uint64_t first, uint64_t count)
{
    set_lock(fd, F_UNLCK, first, count);
}

int system_open_unnamed(const char *directory, mode_t mode)
{
    return open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}

bool system_link_unnamed(int fd, const char *path)
{
    char link[LINK_PATH];
    return linkat(AT_FDCWD, link_of(fd, link), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

int system_clone(const struct system_clone *clone)
{
    struct file_clone_range range = {clone->from, clone->from_offset, clone->length, clone->to_offset};
    return ioctl(clone->to, FICLONERANGE, &range) == 0 ? 0 : errno;
}

void system_sort(void *base, size_t n, size_t size, int (*compare)(const void *a, const void *b, void *context),
                 void *context)
{
    qsort_r(base, n, size, compare, context);
}

struct timespec system_modified(const struct stat *status)
{
    return status->st_mtim;
}

struct timespec system_changed(const struct stat *status)
{
    return status->st_ctim;
}

/* The build ID of GNU's linker. */

struct adding {
    void (*add)(void *context, const void *bytes, size_t length);
    void *context;
};

static size_t padded(size_t length)
{
    return (length + 3) / 4 * 4;
}

static void add_notes(const struct adding *adding, const unsigned char *bytes, size_t length)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= length;) {
        memcpy(&note, bytes + at, sizeof note);
        size_t content = at + sizeof note + padded(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && content + note.n_descsz <= length)
            adding->add(adding->context, bytes + content, note.n_descsz);
        at = content + padded(note.n_descsz);
    }
}

/* Adds the program's notes: it is the first object. */
static int add_build(struct dl_phdr_info *object, size_t size, void *context)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            add_notes(context, (const unsigned char *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                      object->dlpi_phdr[i].p_memsz);
    return 1;
}

void system_forget(int fd)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

void system_build_id(void (*add)(void *context, const void *bytes, size_t length), void *context)
{
    struct adding adding = {add, context};
    dl_iterate_phdr(add_build, &adding);
}
