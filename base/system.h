/* What Linux and macOS do each in their own way, of all that works without a mount: system_linux.c and system_macos.c,
 * of which meson.build takes one. For macOS, wfs is compiled and was never run.
 *
 * Functions that return a descriptor return -1 and set errno on failure. Programs that the process starts inherit no
 * descriptor made here. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* Returns how many processors this process may use, at least 1: schedulers of clusters give a task some of a node's. */
size_t system_processors(void);

/* Returns a random number, for names that no other process or machine makes. */
uint64_t system_random(void);

/* Conditions with deadlines by the monotonic clock; waiting returns what pthread_cond_timedwait() does. */
void system_condition_init(pthread_cond_t *condition);
int system_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *deadline);

int system_socket(int family, int type, int protocol);
bool system_pipe(int ends[2]);

/* Flags for open() that find a file without starting a device or waiting for a FIFO. Only system_reopen() may read what
 * such a descriptor has found, and it opens regular files alone. */
extern const int system_find_flags;
int system_reopen(int found);

/* Find the path of a descriptor, and of the program; false: unknown. The program's is that of the first call: in a
 * mount namespace that is made later, in a chroot, it has another. */
bool system_path_of(int fd, char path[PATH_MAX]);
bool system_program_path(char path[PATH_MAX]);

/* Makes the inotify instance report writes to the file of a descriptor, and truncation, by any name. Returns the number
 * of the watch, or -1, which it always is where there is no inotify. */
int system_watch(int fd, int inotify);

/* Asks for huge pages for memory from malloc() that will be filled: faults of ordinary pages take longer than reading a
 * file or parsing it. No effect where the kernel has none. */
void system_want_huge_pages(void *memory, size_t size);

/* Tells the kernel that a range of a file will be read. */
void system_read_ahead(int fd, uint64_t offset, uint64_t length);

/* Reserves the space of a new file. Fails with ENOSPC if there is too little, and otherwise if it is unknown. */
bool system_reserve(int fd, uint64_t size);

/* Like system_reserve(), for a range of a file, whose bytes stay as they are; the file may become longer. */
bool system_reserve_range(int fd, uint64_t offset, uint64_t length);

/* Locks bytes of a file that is open for writing, for its open file description, and unlocks them. Returns false if
 * another description has locked one of them. Where there are no such locks, every call succeeds. */
bool system_lock_bytes(int fd, uint64_t first, uint64_t count);
void system_unlock_bytes(int fd, uint64_t first, uint64_t count);

/* A new file for writing that has no name yet, in a directory; giving it a name fails if there is a file of that name.
 * Not every file system has such files. */
int system_open_unnamed(const char *directory, mode_t mode);
bool system_link_unnamed(int fd, const char *path);

/* A range of bytes at whole blocks of a file, which another file of the file system shares. Returns an errno, or 0. */
struct system_clone {
    int from, to;
    uint64_t from_offset, to_offset, length;
};
int system_clone(const struct system_clone *clone);

/* Like qsort_r() of the GNU C library, whose arguments have another order elsewhere. */
void system_sort(void *base, size_t n, size_t size, int (*compare)(const void *a, const void *b, void *context),
                 void *context);

/* Lets the system forget what it has cached of an open file, if it can. */
void system_forget(int fd);

/* When the contents of a file changed, and when anything did. */
struct timespec system_modified(const struct stat *status);
struct timespec system_changed(const struct stat *status);

/* Adds the bytes that the linker gave this build of the program as its identity, if it gave any. */
void system_build_id(void (*add)(void *context, const void *bytes, size_t length), void *context);
