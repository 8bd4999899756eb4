#include "fs/mount/mountpoint.h"

#include "base/arena.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

extern char **environ;

/* On a directory that we made, where the file system has extended attributes: the pid of who made it. It tells `wfs umount` to
 * remove the directory after a wfs that was killed, and keeps a wfs that was replaced from removing it. */
static const char made_mark[] = "user.wfs.made";

bool mountpoint_is_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0;
}

/* The path without links in it. The last part may be missing, or a mount that is dead and cannot be looked at. */
static char *resolve(const char *path, struct error *error)
{
    char *whole = realpath(path, NULL);
    if (whole != NULL)
        return whole;
    if (errno != ENOENT && errno != ENOTCONN) {
        error_set_errno(error, errno, "%s", path);
        return NULL;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *copy = strndup(path, length), *slash = strrchr(copy, '/');
    const char *name = slash != NULL ? slash + 1 : copy;
    char *parent = slash == NULL ? realpath(".", NULL) : NULL;
    if (slash != NULL) {
        *slash = '\0';
        parent = realpath(slash == copy ? "/" : copy, NULL);
    }
    if (parent != NULL) {
        size_t capacity = strlen(parent) + strlen(name) + 2;
        whole = memory_alloc(capacity);
        snprintf(whole, capacity, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
    } else {
        error_set_errno(error, errno, "%s", path);
    }
    free(parent);
    free(copy);
    return whole;
}

/* What is mounted at a path: the topmost. */
struct mounted {
    bool there, ours, dead;
    char source[256];
};

static struct mounted find_mount(const char *path)
{
    struct mounted mounted = {0};
    struct statvfs status;
    FILE *table = setmntent("/proc/self/mounts", "re");
    char line[PATH_MAX * 2];
    struct mntent entry;
    while (table != NULL && getmntent_r(table, &entry, line, sizeof line) != NULL) {
        if (strcmp(entry.mnt_dir, path) != 0)
            continue;
        mounted.there = true;
        mounted.ours = strcmp(entry.mnt_type, "fuse.wfs") == 0;
        snprintf(mounted.source, sizeof mounted.source, "%s", entry.mnt_fsname);
    }
    if (table != NULL)
        endmntent(table);
    /* stat would be answered from the kernel's cache */
    mounted.dead = mounted.there && statvfs(path, &status) != 0 && errno == ENOTCONN;
    return mounted;
}

/* Makes the directory ours, to be removed at the end. */
static void adopt(struct mountpoint *mountpoint)
{
    char pid[16];
    struct stat status;
    int length = snprintf(pid, sizeof pid, "%d", (int)getpid());
    mountpoint->made = true;
    mountpoint->marked = setxattr(mountpoint->path, made_mark, pid, (size_t)length, 0) == 0;
    mountpoint->inode = stat(mountpoint->path, &status) == 0 ? status.st_ino : 0;
}

/* The pid in the mark of a directory; 0 where it has none. */
static int marked_by(const char *path)
{
    char pid[16] = "";
    return getxattr(path, made_mark, pid, sizeof pid - 1) > 0 ? atoi(pid) : 0;
}

static bool is_empty(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    int n_entries = 0;
    while (directory != NULL && n_entries <= 2 && (entry = readdir(directory)) != NULL)
        n_entries++;
    if (directory != NULL)
        closedir(directory);
    return n_entries <= 2;
}

static bool take_away(const char *path, const struct mounted *mounted, bool replace, struct error *error)
{
    if (replace)
        return mountpoint_detach(path, DETACH_LAZY, error);
    if (mounted->dead)
        return error_set(error, "%s: the wfs that was mounted here has died; --replace or `wfs umount` clears it", path);
    return error_set(error, "%s: %s is mounted here; --replace takes it away first", path, mounted->source);
}

static bool check_directory(struct mountpoint *mountpoint, bool nonempty, struct error *error)
{
    struct stat status;
    const char *path = mountpoint->path;
    if (mkdir(path, 0777) == 0) {
        adopt(mountpoint);
        return true;
    }
    if (errno != EEXIST)
        return error_set_errno(error, errno, "%s: cannot be made", path);
    if (stat(path, &status) != 0)
        return error_set_errno(error, errno, "%s", path);
    if (!S_ISDIR(status.st_mode))
        return error_set(error, "%s: is not a directory", path);
    if (!nonempty && !is_empty(path))
        return error_set(error, "%s: is not empty; -o nonempty hides what is in it", path);
    if (marked_by(path) != 0) /* by a wfs that was replaced, was killed, or is about to end */
        adopt(mountpoint);
    return true;
}

bool mountpoint_prepare(struct mountpoint *mountpoint, const char *path, const struct mountpoint_options *options,
                        struct error *error)
{
    *mountpoint = (struct mountpoint){.path = mountpoint_is_descriptor(path) ? strdup(path) : resolve(path, error)};
    if (mountpoint->path == NULL)
        return false;
    if (mountpoint_is_descriptor(path))
        return true;
    struct mounted mounted = find_mount(mountpoint->path);
    bool done = true;
    if (mounted.ours)
        done = take_away(mountpoint->path, &mounted, options->replace, error);
    if (done && check_directory(mountpoint, options->nonempty, error))
        return true;
    free(mountpoint->path);
    return false;
}

bool mountpoint_vanished(const struct mountpoint *mountpoint)
{
    return access(mountpoint->path, F_OK) != 0 && errno == ENOENT;
}

/* Whether the directory is still the one that we made, and no other wfs has made it its own. */
static bool is_ours(const struct mountpoint *mountpoint)
{
    struct stat status;
    return mountpoint->made && stat(mountpoint->path, &status) == 0 && status.st_ino == mountpoint->inode &&
           (!mountpoint->marked || marked_by(mountpoint->path) == getpid());
}

void mountpoint_release(struct mountpoint *mountpoint)
{
    if (is_ours(mountpoint))
        rmdir(mountpoint->path);
    free(mountpoint->path);
    *mountpoint = (struct mountpoint){0};
}

static bool run_fusermount(const char *path, bool lazy, struct error *error)
{
    const char *const arguments[] = {"fusermount3", lazy ? "-uz" : "-u", "--", path, NULL};
    pid_t child;
    int status, reason = posix_spawnp(&child, arguments[0], NULL, NULL, (char *const *)arguments, environ);
    if (reason != 0)
        return error_set_errno(error, reason, "%s: cannot be unmounted without fusermount3", path);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 || error_set(error, "%s: fusermount3 could not unmount it", path);
}

bool mountpoint_detach(const char *path, enum detach how, struct error *error)
{
    if (how == DETACH_FORCE && umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH | MNT_FORCE) == 0)
        return true;
    if (umount2(path, UMOUNT_NOFOLLOW | (how == DETACH_IDLE ? 0 : MNT_DETACH)) == 0)
        return true;
    if (errno == EPERM)
        return run_fusermount(path, how != DETACH_IDLE, error);
    if (errno == EBUSY)
        return error_set(error, "%s: is in use; -l detaches it and lets its users finish", path);
    return error_set_errno(error, errno, "%s", path);
}

bool mountpoint_clear(const char *path, enum detach how, struct error *error)
{
    char *whole = resolve(path, error);
    if (whole == NULL)
        return false;
    struct mounted mounted = find_mount(whole);
    bool done = false;
    if (!mounted.ours)
        error_set(error, "%s: no wfs is mounted here", path);
    else
        done = mountpoint_detach(whole, how, error);
    if (done && marked_by(whole) != 0)
        rmdir(whole);
    free(whole);
    return done;
}
