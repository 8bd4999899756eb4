#include "fs/cli/pack/packing_written.h"

#include "base/report.h"
#include "base/system.h"
#include "base/text_index.h"
#include "fs/cli/pack/archive_check.h"
#include "fs/cli/terminal.h"
#include "sources/archive/location.h"

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

/* An entry that is looked at: its folder, opened without following links below the source, and its name there. */
struct place {
    int folder; /* -1: errno says why */
    const char *name;
};

static struct place place_of(struct removing *removing, const struct scanned *entry)
{
    const int flags = system_find_flags | O_DIRECTORY | O_CLOEXEC;
    const bool is_source = *entry->path == '\0';
    char *path = arena_strdup(removing->arena, is_source ? removing->scan->source : entry->path);
    size_t length = strlen(path);
    while (is_source && length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    char *slash = is_source ? strrchr(path, '/') : NULL;
    struct place place = {-1, slash != NULL ? slash + 1 : path};
    if (slash != NULL)
        slash[slash == path] = '\0';
    place.folder = open(!is_source ? removing->scan->source : slash == NULL ? "." : path, flags);
    while (place.folder >= 0 && !is_source && (slash = strchr(place.name, '/')) != NULL) {
        *slash = '\0';
        int next = openat(place.folder, place.name, flags | O_NOFOLLOW), reason = errno;
        close(place.folder);
        errno = reason;
        place = (struct place){next, slash + 1};
    }
    return place;
}

static void leave(const struct place *place)
{
    if (place->folder >= 0)
        close(place->folder);
}

/* Removes what is at the place if it is still the inode that was looked at; returns why it stays. What another process
 * puts there between the two calls would be removed: no call of the kernel does both. */
static const char *remove_at(const struct place *place, const struct stat *inode)
{
    struct stat now;
    if (fstatat(place->folder, place->name, &now, AT_SYMLINK_NOFOLLOW) != 0)
        return strerror(errno);
    if (S_ISLNK(now.st_mode) && !S_ISLNK(inode->st_mode))
        return "a link leads to it; name the path without links";
    if (now.st_dev != inode->st_dev || now.st_ino != inode->st_ino)
        return "it changed since it was packed";
    return unlinkat(place->folder, place->name, S_ISDIR(now.st_mode) ? AT_REMOVEDIR : 0) == 0 ? NULL : strerror(errno);
}

/* Removes a file while its lease keeps others from opening it for writing. */
static void remove_file(struct removing *removing, const struct scanned *entry)
{
    const struct place place = place_of(removing, entry);
    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (*entry->path != '\0' ? O_NOFOLLOW : 0);
    int fd = place.folder >= 0 ? openat(place.folder, place.name, flags) : -1;
    const char *why = reason_to_keep(removing, entry, fd);
    if (why == NULL)
        why = remove_at(&place, &entry->status);
    if (fd >= 0)
        close(fd);
    leave(&place);
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
    const struct place place = place_of(removing, entry);
    struct stat now;
    const char *why;
    if (place.folder < 0 || fstatat(place.folder, place.name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
        !scan_is_same(&now, &entry->status))
        why = "it changed since it was packed";
    else
        why = remove_at(&place, &now);
    leave(&place);
    if (why != NULL)
        keep(removing, entry, why);
}

/* A folder stays without a word if something is left in it. */
static void remove_folder(struct removing *removing, const struct scanned *entry)
{
    const struct place place = place_of(removing, entry);
    errno = 0;
    const char *why = place.folder >= 0 ? remove_at(&place, &entry->status) : strerror(errno);
    const bool is_full = errno == ENOTEMPTY || errno == EEXIST;
    leave(&place);
    if (why != NULL && !is_full)
        keep(removing, entry, why);
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
        else
            remove_folder(&removing, entry);
    }
    text_index_free(&removing.inodes);
    free(removing.names);
    arena_free(removing.arena);
}
