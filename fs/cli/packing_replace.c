#include "fs/cli/packing_replace.h"

#include "base/report.h"
#include "base/system.h"
#include "base/text_index.h"
#include "formats/archive/location.h"
#include "fs/cli/archive_check.h"
#include "fs/cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_target(const struct files_entry *entry, const struct scanned *scanned)
{
    return entry->target != NULL && strcmp(entry->target, scanned->target) == 0;
}

static bool has_state(const struct files_entry *entry, const struct scanned *scanned)
{
    const struct stat *status = &scanned->status;
    const struct timespec modified = system_modified(status);
    return entry->size == (uint64_t)status->st_size && entry->seconds == modified.tv_sec &&
           entry->nanoseconds == (uint32_t)modified.tv_nsec && entry->mode == (status->st_mode & 07777);
}

/* Reports whether the list has the entry as it was scanned. */
static bool is_listed(const struct files_entry *entry, const struct scanned *scanned)
{
    if (S_ISDIR(scanned->status.st_mode))
        return entry->kind == FILES_FOLDER;
    if (S_ISLNK(scanned->status.st_mode))
        return entry->kind == FILES_LINK && has_target(entry, scanned);
    return entry->kind == FILES_FILE && has_state(entry, scanned);
}

static bool check_entries(struct archive *archive, size_t member, const struct scan *scan, struct error *error)
{
    const struct files *files = archive_files(archive, member, error);
    struct progress progress;
    bool good = files != NULL;
    progress_begin(&progress, scan->name, files != NULL ? files->n_bytes : 0);
    for (size_t i = 0; good && i < scan->n_entries; i++) {
        const struct scanned *scanned = &scan->entries[i];
        bool found;
        size_t index = files_find(files, scanned->path, strlen(scanned->path), &found);
        if (!found || !is_listed(&files->entries[index], scanned))
            good = error_set(error, "%s/%s: the archive does not have it as it was", scan->source, scanned->path);
        else if (files->entries[index].kind == FILES_FILE)
            good = archive_check_file(archive, member, index, &progress, error);
    }
    progress_end(&progress);
    return good;
}

bool replace_check(const char *path, const struct scan *scan, struct error *error)
{
    struct location *location = archive_directory(path, error);
    struct archive *archive = location != NULL ? archive_open(location, path, error) : NULL;
    size_t member = archive != NULL ? archive_find(archive, scan->name, strlen(scan->name)) : SIZE_MAX;
    bool good = member != SIZE_MAX && check_entries(archive, member, scan, error);
    if (archive != NULL && member == SIZE_MAX)
        error_set(error, "%s has no source '%s'", path, scan->name);
    archive_drop(archive);
    return good;
}

/* Removing. */

struct removing {
    const struct scan *scan;
    struct removed *removed;
    struct arena *arena;
    struct text_index inodes; /* of files with several names: places in `names` */
    struct names {
        uint64_t inode[2];
        size_t n_found, n_removed;
    } * names;
    size_t n_names;
};

static struct names *names_of(struct removing *removing, const struct stat *status)
{
    const uint64_t inode[2] = {(uint64_t)status->st_dev, (uint64_t)status->st_ino};
    size_t place;
    if (text_index_find(&removing->inodes, (const char *)inode, sizeof inode, &place))
        return &removing->names[place];
    text_index_add(&removing->inodes, arena_copy(removing->arena, inode, sizeof inode), sizeof inode,
                   removing->n_names);
    removing->names = memory_grow(removing->names, removing->n_names, sizeof *removing->names);
    removing->names[removing->n_names] = (struct names){{inode[0], inode[1]}, 0, 0};
    return &removing->names[removing->n_names++];
}

/* Returns why a file stays; NULL: it may be removed. `fd` is open for reading. */
static const char *reason_to_keep(struct removing *removing, const struct scanned *entry, int fd)
{
    const struct stat *before = &entry->status, *source = &removing->scan->entries[0].status;
    const struct names *names = names_of(removing, before);
    struct stat now;
    if (fd < 0 || fstat(fd, &now) != 0)
        return strerror(errno);
    /* Removing another name has changed the inode's time. */
    if (names->n_removed > 0 ? !scan_has_same_contents(&now, before) : !scan_is_same(&now, before))
        return "it changed since it was packed";
    if (now.st_dev != source->st_dev)
        return "it is on another file system than its source";
    if (now.st_nlink + names->n_removed > names->n_found)
        return "it has another link elsewhere";
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN)
        return "it is open for writing";
    return NULL;
}

static const char *path_of(const struct removing *removing, const struct scanned *entry)
{
    return *entry->path != '\0' ? arena_printf(removing->arena, "%s/%s", removing->scan->source, entry->path)
                                : removing->scan->source;
}

static void keep(struct removing *removing, const struct scanned *entry, const char *why)
{
    report("%s: stays: %s", path_of(removing, entry), why);
    removing->removed->n_kept++;
}

/* Removes a file while its lease keeps others from opening it for writing. */
static void remove_file(struct removing *removing, const struct scanned *entry)
{
    int fd = scan_open(removing->scan, entry, O_RDONLY);
    const char *why = reason_to_keep(removing, entry, fd);
    if (why == NULL && unlink(path_of(removing, entry)) != 0)
        why = strerror(errno);
    if (fd >= 0)
        close(fd);
    if (why != NULL) {
        keep(removing, entry, why);
        return;
    }
    names_of(removing, &entry->status)->n_removed++;
    removing->removed->n_files++;
    removing->removed->n_bytes += (uint64_t)entry->status.st_size;
}

static void remove_link(struct removing *removing, const struct scanned *entry)
{
    struct stat now;
    const char *path = path_of(removing, entry);
    if (lstat(path, &now) != 0 || !S_ISLNK(now.st_mode) || !scan_is_same(&now, &entry->status))
        keep(removing, entry, "it changed since it was packed");
    else if (unlink(path) != 0)
        keep(removing, entry, strerror(errno));
}

void replace_remove(const struct scan *scan, struct removed *removed)
{
    struct removing removing = {.scan = scan, .removed = removed, .arena = arena_new()};
    for (size_t i = 0; i < scan->n_entries; i++)
        if (S_ISREG(scan->entries[i].status.st_mode))
            names_of(&removing, &scan->entries[i].status)->n_found++;
    for (size_t i = scan->n_entries; i-- > 0;) {
        const struct scanned *entry = &scan->entries[i];
        if (S_ISREG(entry->status.st_mode))
            remove_file(&removing, entry);
        else if (S_ISLNK(entry->status.st_mode))
            remove_link(&removing, entry);
        else if (rmdir(path_of(&removing, entry)) != 0 && errno != ENOTEMPTY && errno != EEXIST)
            keep(&removing, entry, strerror(errno));
    }
    text_index_free(&removing.inodes);
    free(removing.names);
    arena_free(removing.arena);
}
