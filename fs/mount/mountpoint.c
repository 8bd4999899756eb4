#include "fs/mount/mountpoint.h"

#include "base/arena.h"
#include "base/report.h"
#include "base/text.h"
#include "fs/mount/device.h"
#include "fs/mount/processes.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LINKS = 40, ANSWER_MILLISECONDS = 1000 };

/* The time that `wfs umount` waits for a server to close its sources. */
enum { ENDING_MILLISECONDS = 5000 };

/* The time that a mount may be in use before that is an error: programs that look at every new mount end soon. */
enum { IN_USE_MILLISECONDS = 1000 };

/* The extended attribute of a directory that a wfs made, with the pid of that wfs, if the file system has attributes.
 * It tells `wfs umount` to remove the directory of a killed wfs, and prevents a replaced wfs from removing it. */
static const char made_mark[] = "user.wfs.made";

static const char temporary_prefix[] = "wfs-exec-";

bool mountpoint_is_descriptor(const char *path)
{
    return text_starts_with(path, "/dev/fd/");
}

/* Returns DIRECTORY/NAME, which the caller frees, and frees the directory; NULL for NULL. */
static char *join(char *directory, const char *name)
{
    if (directory == NULL)
        return NULL;
    size_t capacity = strlen(directory) + strlen(name) + 2;
    char *whole = memory_alloc(capacity);
    snprintf(whole, capacity, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);
    free(directory);
    return whole;
}

/* Returns the directory that a path is in; the caller frees it. */
static char *directory_above(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length == 0 ? memory_strdup(".") : memory_strndup(path, length);
}

static void explain_unresolved(const char *path, int reason, struct error *error)
{
    char *above = directory_above(path);
    if (reason == ENOENT && access(above, F_OK) != 0 && errno == ENOENT)
        error_set(error, "%s: cannot be created: %s does not exist; 'mkdir -p %s' creates it", path, above, above);
    else
        error_set_errno(error, reason, "%s", path);
    free(above);
}

/* Returns the absolute path without links; the caller frees it. The last name may be missing, or a mount with a dead or
 * stopped server: the only request is whether it is a link, which the kernel answers by itself. */
static char *resolve(const char *path, struct error *error)
{
    char current[PATH_MAX], target[PATH_MAX], *whole = NULL;
    if (*path == '\0') {
        error_set(error, "the mount point is empty; is a variable unset?");
        return NULL;
    }
    snprintf(current, sizeof current, "%s", path);
    for (int n_links = 0; n_links < MAX_LINKS; n_links++) {
        size_t length = strlen(current);
        while (length > 1 && current[length - 1] == '/')
            current[--length] = '\0';
        char *slash = strrchr(current, '/'), *name = slash != NULL ? slash + 1 : current;
        if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            whole = realpath(current, NULL);
            break;
        }
        char *above = directory_above(current);
        char *directory = realpath(above, NULL);
        free(above);
        whole = join(directory, name);
        ssize_t n = whole == NULL ? -1 : readlink(whole, target, sizeof target - 1);
        if (n < 0)
            break;
        target[n] = '\0';
        whole[strlen(whole) - strlen(name)] = '\0';
        int n_bytes = snprintf(current, sizeof current, "%s%s", *target == '/' ? "" : whole, target);
        free(whole);
        whole = NULL;
        errno = n_bytes < 0 || n_bytes >= (int)sizeof current ? ENAMETOOLONG : ELOOP;
        if (errno == ENAMETOOLONG)
            break;
    }
    if (whole == NULL)
        explain_unresolved(path, errno, error);
    return whole;
}

/* The topmost mount at a path. */
struct mounted {
    bool there, ours;
    uid_t user;
    char source[256];
};

typedef void see_mount(void *context, const struct mntent *entry);

/* Calls see() for each mount. Reads the whole table first, because it may change during these calls. */
static void each_mount(see_mount *see, void *context)
{
    FILE *table = setmntent("/proc/self/mounts", "re");
    char line[PATH_MAX * 2];
    struct arena *arena = arena_new();
    struct mntent entry, *entries = NULL;
    size_t count = 0;
    while (table != NULL && getmntent_r(table, &entry, line, sizeof line) != NULL) {
        entries = memory_resize(entries, (count + 1) * sizeof *entries);
        entries[count++] = (struct mntent){.mnt_fsname = arena_strdup(arena, entry.mnt_fsname),
                                           .mnt_dir = arena_strdup(arena, entry.mnt_dir),
                                           .mnt_type = arena_strdup(arena, entry.mnt_type),
                                           .mnt_opts = arena_strdup(arena, entry.mnt_opts)};
    }
    if (table != NULL)
        endmntent(table);
    for (size_t i = 0; i < count; i++)
        see(context, &entries[i]);
    free(entries);
    arena_free(arena);
}

static bool is_wfs(const struct mntent *entry)
{
    return strcmp(entry->mnt_type, "fuse.wfs") == 0;
}

struct search {
    const char *path;
    struct mounted mounted;
};

static void see_path(void *context, const struct mntent *entry)
{
    struct search *search = context;
    if (strcmp(entry->mnt_dir, search->path) != 0)
        return;
    const char *user = hasmntopt(entry, "user_id");
    search->mounted = (struct mounted){.there = true, .ours = is_wfs(entry)};
    if (user != NULL && user[strlen("user_id")] == '=')
        search->mounted.user = (uid_t)strtoul(user + strlen("user_id="), NULL, 10);
    snprintf(search->mounted.source, sizeof search->mounted.source, "%s", entry->mnt_fsname);
}

static struct mounted find_mount(const char *path)
{
    struct search search = {.path = path};
    each_mount(see_path, &search);
    return search.mounted;
}

struct emission {
    void (*emit)(void *context, const char *path, const char *source);
    void *context;
};

static void see_wfs(void *context, const struct mntent *entry)
{
    const struct emission *emission = context;
    if (is_wfs(entry))
        emission->emit(emission->context, entry->mnt_dir, entry->mnt_fsname);
}

void mountpoint_each(void (*emit)(void *context, const char *path, const char *source), void *context)
{
    each_mount(see_wfs, &(struct emission){emit, context});
}

enum answer { ANSWERS, DIED, IS_SILENT };

/* Finds out whether a mount's server answers. A child asks, because a process that asks a stopped server waits, deaf to
 * signals if the server has taken the request. The child closes all files, since a reader may wait for the end of a
 * pipe. It asks statvfs(), because the kernel's cache would answer stat(). A server that is ending drops the request,
 * which aborts the connection. */
static enum answer ask(const char *path)
{
    struct statvfs status;
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_close_range, 0, ~0U, 0); /* musl has no close_range() */
        _exit(statvfs(path, &status) != 0 && (errno == ENOTCONN || errno == ECONNABORTED) ? DIED : ANSWERS);
    }
    int result;
    for (int i = 0; child > 0 && i < ANSWER_MILLISECONDS; i++) {
        if (waitpid(child, &result, WNOHANG) == child)
            return WIFEXITED(result) && WEXITSTATUS(result) == DIED ? DIED : ANSWERS;
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    if (child > 0)
        kill(child, SIGKILL);
    return IS_SILENT;
}

struct mount_server mountpoint_server(const char *path)
{
    struct process process;
    if (process_serving(path, &process))
        return (struct mount_server){process.pid, process.stopped ? MOUNT_STOPPED : MOUNT_SERVED};
    return (struct mount_server){0, ask(path) == DIED ? MOUNT_DEAD : MOUNT_SERVED};
}

/* Marks the directory as made by this process, even if another wfs made it: it is removed at the end. */
static void adopt(struct mountpoint *mountpoint)
{
    char pid[16];
    struct stat status;
    int length = snprintf(pid, sizeof pid, "%d", (int)getpid());
    mountpoint->made = true;
    mountpoint->maker = getpid();
    mountpoint->marked = setxattr(mountpoint->path, made_mark, pid, (size_t)length, 0) == 0;
    mountpoint->inode = stat(mountpoint->path, &status) == 0 ? status.st_ino : 0;
}

/* Returns the pid in the mark of a directory; 0 if it has no mark. */
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
    enum answer answer = ask(path);
    if (answer == DIED)
        return error_set(
            error, "%s: the wfs that was mounted here has died; --replace or `wfs umount` removes the mount", path);
    if (answer == IS_SILENT)
        return error_set(error, "%s: %s is mounted here, and its wfs does not answer; --replace unmounts it first",
                         path, mounted->source);
    return error_set(error, "%s: %s is mounted here; --replace unmounts it first", path, mounted->source);
}

static bool explain_unmade(const char *path, int reason, struct error *error)
{
    char *above = directory_above(path);
    if (reason == EACCES)
        error_set(error, "%s: cannot be created: you cannot write to %s", path, above);
    else
        error_set_errno(error, reason, "%s: cannot be created", path);
    free(above);
    return false;
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
        return explain_unmade(path, errno, error);
    if (stat(path, &status) != 0)
        return error_set_errno(error, errno, "%s", path);
    if (!S_ISDIR(status.st_mode))
        return error_set(error, "%s: not a directory", path);
    if (!nonempty && !is_empty(path))
        return error_set(error, "%s: not empty; -o nonempty mounts over its contents", path);
    if (marked_by(path) != 0) /* made by a wfs that was replaced, was killed, or is about to end */
        adopt(mountpoint);
    return true;
}

bool mountpoint_prepare(struct mountpoint *mountpoint, const char *path, const struct mountpoint_options *options,
                        struct error *error)
{
    *mountpoint = (struct mountpoint){.hold = -1};
    mountpoint->path = mountpoint_is_descriptor(path) ? memory_strdup(path) : resolve(path, error);
    if (mountpoint->path == NULL)
        return false;
    if (mountpoint_is_descriptor(path))
        return true;
    struct mounted mounted = find_mount(mountpoint->path);
    bool done = true;
    if (mounted.ours)
        done = take_away(mountpoint->path, &mounted, options->replace, error);
    if (done && check_directory(mountpoint, options->nonempty, error)) {
        mountpoint->hold = hold_take(mountpoint->path);
        return true;
    }
    free(mountpoint->path);
    *mountpoint = (struct mountpoint){0};
    return false;
}

/* Removes the directory of a wfs that was killed before it could do so: it is empty, and no process holds it. */
static void remove_left(const char *path)
{
    struct error error;
    struct stat status;
    struct mounted mounted = find_mount(path);
    if (mounted.there && (!mounted.ours || ask(path) != DIED || !mountpoint_detach(path, DETACH_LAZY, &error)))
        return;
    int hold = hold_take_over(path, 0);
    if (hold < 0)
        return;
    if (fstat(hold, &status) == 0 && status.st_uid == geteuid() && hold_is_of(hold, path))
        rmdir(path);
    close(hold);
}

static void remove_all_left(const char *parent)
{
    DIR *directory = opendir(parent);
    const struct dirent *entry;
    char path[PATH_MAX];
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (text_starts_with(entry->d_name, temporary_prefix) &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path)
            remove_left(path);
    if (directory != NULL)
        closedir(directory);
}

bool mountpoint_make_temporary(struct mountpoint *mountpoint, const char *parent, struct error *error)
{
    char path[PATH_MAX];
    *mountpoint = (struct mountpoint){.hold = -1};
    remove_all_left(parent);
    /* Until there is a hold, another process may remove the directory as one that was left. */
    for (;;) {
        snprintf(path, sizeof path, "%s/%sXXXXXX", parent, temporary_prefix);
        if (mkdtemp(path) == NULL)
            return error_set(error, "%s: cannot create a mount point here: %s; set TMPDIR to another directory", parent,
                             strerror(errno));
        mountpoint->hold = hold_take(path);
        if (mountpoint->hold < 0 || hold_is_of(mountpoint->hold, path))
            break;
        close(mountpoint->hold);
    }
    mountpoint->path = memory_strdup(path);
    adopt(mountpoint);
    return true;
}

bool mountpoint_vanished(const struct mountpoint *mountpoint)
{
    return access(mountpoint->path, F_OK) != 0 && errno == ENOENT;
}

/* Reports whether the directory is still the one that was made or adopted for this mount, and no other wfs has since.
 */
static bool is_ours(const struct mountpoint *mountpoint)
{
    struct stat status;
    return mountpoint->made && stat(mountpoint->path, &status) == 0 && status.st_ino == mountpoint->inode &&
           (!mountpoint->marked || marked_by(mountpoint->path) == mountpoint->maker);
}

void mountpoint_release(struct mountpoint *mountpoint)
{
    if (is_ours(mountpoint))
        rmdir(mountpoint->path);
    if (mountpoint->path != NULL && mountpoint->hold >= 0)
        close(mountpoint->hold);
    free(mountpoint->path);
    *mountpoint = (struct mountpoint){0};
}

/* Unmounts, and waits IN_USE_MILLISECONDS at most for short uses to end. */
static bool detach_idle(const char *path)
{
    for (int i = 0; umount2(path, UMOUNT_NOFOLLOW) != 0; i++) {
        if (errno != EBUSY || i >= IN_USE_MILLISECONDS)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    return true;
}

/* Sets the error for a mount in use, with the processes that use it. */
static bool explain_in_use(const char *path, struct error *error)
{
    struct process server, user;
    char use[PROCESS_USE], others[64] = "";
    pid_t serving = process_serving(path, &server) ? server.pid : 0;
    size_t count = processes_using(path, serving, &user, use);
    if (count == 0)
        return error_set(
            error,
            "%s: is in use by a process or a mount that is not to be seen; 'wfs umount -l %s' detaches it, "
            "and lets its users finish",
            path, path);
    if (count > 1)
        snprintf(others, sizeof others, ", and so %s %zu more process%s", count == 2 ? "does" : "do", count - 1,
                 count == 2 ? "" : "es");
    return error_set(
        error,
        "%s: is in use: %s (process %d) %s%s; end %s, or 'wfs umount -l %s' detaches the mount now and lets "
        "its users finish",
        path, user.name, (int)user.pid, use, others, count == 1 ? "it" : "them", path);
}

/* Detaches for an ordinary user; waits like detach_idle() while the mount is in use. */
static bool detach_by_fusermount(const char *path, enum detach how, struct error *error)
{
    enum { PAUSE_MILLISECONDS = 10 };
    for (int waited = 0; !fusermount_unmount(path, how != DETACH_IDLE, error); waited += PAUSE_MILLISECONDS) {
        if (!text_ends_with(error->message, strerror(EBUSY)))
            return false;
        if (waited >= IN_USE_MILLISECONDS)
            return explain_in_use(path, error);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MILLISECONDS * 1000 * 1000}, NULL);
    }
    return true;
}

bool mountpoint_detach(const char *path, enum detach how, struct error *error)
{
    if (how == DETACH_FORCE && umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH | MNT_FORCE) == 0)
        return true;
    if (how == DETACH_IDLE ? detach_idle(path) : umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) == 0)
        return true;
    if (errno == EBUSY)
        return explain_in_use(path, error);
    if (errno != EPERM)
        return error_set_errno(error, errno, "%s", path);
    return detach_by_fusermount(path, how, error);
}

/* After a detach, waits for the server to close its sources, unless the detach was lazy, and removes the directory if a
 * wfs made it. `server` is NULL if unknown. */
static bool finish_clearing(const char *path, enum detach how, const struct process *server, struct error *error)
{
    struct process now;
    bool waits = how == DETACH_IDLE, stopped = server != NULL && server->stopped;
    int hold = waits ? hold_take_over(path, stopped ? 0 : ENDING_MILLISECONDS) : -1;
    bool held = waits && hold < 0 && errno == EWOULDBLOCK;
    if (marked_by(path) != 0)
        rmdir(path);
    if (hold >= 0)
        close(hold);
    if (!held || server == NULL || !process_find(server->pid, &now))
        return true;
    if (now.stopped)
        return error_set(error,
                         "%s: is unmounted, but its server, process %d, is stopped and keeps the model open; "
                         "'kill -CONT %d' lets it end, 'kill -KILL %d' ends it",
                         path, (int)now.pid, (int)now.pid, (int)now.pid);
    report(
        "note: %s: is unmounted, but its server, process %d, goes on: another mount namespace (a container, 'wfs "
        "exec') "
        "still has the mount, or a read is not finished; it ends with the last of them, or at once by 'kill -KILL %d'",
        path, (int)now.pid, (int)now.pid);
    return true;
}

static bool clear(const char *path, enum detach how, struct error *error)
{
    struct process server;
    bool known = process_serving(path, &server);
    return mountpoint_detach(path, how, error) &&
           (find_mount(path).there || finish_clearing(path, how, known ? &server : NULL, error));
}

void mountpoint_clear_dead(const char *path)
{
    struct error unused;
    char *whole = resolve(path, &unused);
    if (whole != NULL && find_mount(whole).ours && ask(whole) == DIED)
        clear(whole, DETACH_LAZY, &unused);
    free(whole);
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
    else if (geteuid() != 0 && mounted.user != getuid())
        error_set(error, "%s: mounted by user %u; only that user or root can unmount it", path, mounted.user);
    else
        done = clear(whole, how, error);
    free(whole);
    return done;
}
