#include "fs/cli/pack/packing.h"

#include "base/arena.h"
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int scan_open(const struct scan *scan, const struct scanned *entry, int flags)
{
    struct arena *arena = arena_new();
    const char *path = *entry->path != '\0' ? arena_printf(arena, "%s/%s", scan->source, entry->path) : scan->source;
    int fd = open(path, flags | (*entry->path != '\0' ? O_NOFOLLOW : 0) | O_NONBLOCK | O_CLOEXEC);
    int reason = errno;
    arena_free(arena);
    errno = reason;
    return fd;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool scan_has_same_contents(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           is_same_time(system_modified(a), system_modified(b));
}

bool scan_is_same(const struct stat *a, const struct stat *b)
{
    return scan_has_same_contents(a, b) && is_same_time(system_changed(a), system_changed(b));
}

static const char *path_of(const struct scan *scan, const char *below, struct arena *arena)
{
    return *below != '\0' ? arena_printf(arena, "%s/%s", scan->source, below) : scan->source;
}

static bool read_target(struct scan *scan, const char *path, struct scanned *entry, struct error *error)
{
    char target[FILES_LONGEST_PATH + 1];
    ssize_t length = readlink(path, target, sizeof target);
    if (length < 0)
        return error_set_errno(error, errno, "%s", path);
    if (length == 0 || (size_t)length == sizeof target)
        return error_set(error, "%s: a link whose target has no byte, or more than %d", path, FILES_LONGEST_PATH);
    entry->target = arena_strndup(scan->arena, target, (size_t)length);
    return true;
}

static const char *special_name(mode_t mode)
{
    return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Adds an entry below the source; "" is the source itself, which may be named by a link. */
static bool add_entry(struct scan *scan, const char *below, const struct stat *archive, struct error *error)
{
    struct scanned entry = {.path = arena_strdup(scan->arena, below)};
    const char *path = path_of(scan, below, scan->arena);
    if ((*below == '\0' ? stat : lstat)(path, &entry.status) != 0)
        return error_set_errno(error, errno, "%s", path);
    mode_t mode = entry.status.st_mode;
    if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
        return error_set(error, "%s: %s; an archive keeps files, folders and links: remove it", path,
                         special_name(mode));
    if (strlen(below) > FILES_LONGEST_PATH)
        return error_set(error, "%s: its path has more than %d bytes", path, FILES_LONGEST_PATH);
    if (S_ISDIR(mode) && entry.status.st_dev == archive->st_dev && entry.status.st_ino == archive->st_ino)
        return error_set(error, "%s: the archive is in its source; put it elsewhere", path);
    if (S_ISLNK(mode) && !read_target(scan, path, &entry, error))
        return false;
    scan->entries = memory_grow(scan->entries, scan->n_entries, sizeof *scan->entries);
    scan->entries[scan->n_entries++] = entry;
    return true;
}

/* Adds the entries of a folder that was scanned. */
static bool add_folder(struct scan *scan, size_t index, const struct stat *archive, struct error *error)
{
    const char *folder = scan->entries[index].path, *path = path_of(scan, folder, scan->arena);
    int fd = scan_open(scan, &scan->entries[index], O_RDONLY | O_DIRECTORY);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    bool good = stream != NULL || error_set_errno(error, errno, "%s", path);
    for (struct dirent *entry; good && (errno = 0, entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        struct arena *arena = arena_new();
        const char *below = *folder != '\0' ? arena_printf(arena, "%s/%s", folder, entry->d_name) : entry->d_name;
        good = add_entry(scan, below, archive, error);
        arena_free(arena);
    }
    if (good && errno != 0)
        good = error_set_errno(error, errno, "%s", path);
    if (stream != NULL)
        closedir(stream);
    return good;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct scanned *)a)->path, ((const struct scanned *)b)->path);
}

bool scan_source(struct scan *scan, const char *source, const char *name, const struct stat *archive,
                 struct error *error)
{
    *scan = (struct scan){.arena = arena_new(), .source = source, .name = name};
    bool good = add_entry(scan, "", archive, error);
    for (size_t i = 0; good && i < scan->n_entries; i++)
        if (S_ISDIR(scan->entries[i].status.st_mode))
            good = add_folder(scan, i, archive, error);
    if (scan->n_entries > 0)
        qsort(scan->entries, scan->n_entries, sizeof *scan->entries, compare_paths);
    return good;
}

void scan_free(struct scan *scan)
{
    free(scan->entries);
    if (scan->arena != NULL)
        arena_free(scan->arena);
    *scan = (struct scan){0};
}
