#include "fs/lib/blobs.h"

#include "base/arena.h"
#include "base/system.h"
#include "fs/lib/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
static const char empty_index[] = "{\"schemaVersion\":2,\"mediaType\":\"" ARCHIVE_INDEX_TYPE "\",\"manifests\":[]}";
static const char unfinished_name[] = ".unfinished"; /* the lock lets one process write one */

struct blobs {
    struct arena *arena;
    const char *path, *folder, *unfinished;
    int lock;
    int fd; /* of the unfinished blob; -1: none */
    struct sha256_ctx hash;
    uint64_t size;
};

static bool failed(struct error *error, int reason, const char *path)
{
    return error_set_errno(error, reason, "%s", path);
}

static const char *const own_names[] = {ARCHIVE_LAYOUT_FILE, ARCHIVE_INDEX_FILE, "blobs"};
enum { N_OWN_NAMES = sizeof own_names / sizeof *own_names };

/* Reports whether a name in the directory is an archive's. */
static bool is_own_name(const char *name)
{
    for (size_t i = 0; i < N_OWN_NAMES; i++)
        if (strcmp(name, own_names[i]) == 0)
            return true;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Reports whether a name is a temporary one of durable_write(), ".index.json.HOST-RANDOM". */
static bool is_temporary_name(const char *name)
{
    for (size_t i = 0; i < N_OWN_NAMES; i++) {
        size_t length = strlen(own_names[i]);
        if (*name == '.' && strncmp(name + 1, own_names[i], length) == 0 && name[length + 1] == '.')
            return true;
    }
    return false;
}

/* Refuses a directory of other files. Removes the temporary files of processes that were killed: the lock allows one
 * writer. */
static bool check_names(const char *path, struct error *error)
{
    DIR *stream = opendir(path);
    const char *other = NULL;
    char name[NAME_MAX + 1];
    if (stream == NULL)
        return failed(error, errno, path);
    for (struct dirent *entry; other == NULL && (entry = readdir(stream)) != NULL;)
        if (is_temporary_name(entry->d_name))
            unlinkat(dirfd(stream), entry->d_name, 0);
        else if (!is_own_name(entry->d_name))
            other = strcpy(name, entry->d_name);
    closedir(stream);
    return other == NULL ||
           error_set(error, "%s: neither empty nor an archive: it has %s; name a new directory", path, other);
}

static bool make_directory(const char *path, struct error *error)
{
    int reason = durable_is_directory(path) ? 0 : durable_make_directory(path);
    return reason == 0 || reason == EEXIST || failed(error, reason, path);
}

static bool make_file(struct blobs *blobs, const char *name, const char *text, struct error *error)
{
    const char *path = arena_printf(blobs->arena, "%s/%s", blobs->path, name);
    int reason = durable_exists(path) ? 0 : durable_write(path, text, strlen(text), false);
    return reason == 0 || reason == EEXIST || failed(error, reason, path);
}

/* Makes what is missing of an archive. */
static bool make_archive(struct blobs *blobs, struct error *error)
{
    return check_names(blobs->path, error) && make_file(blobs, ARCHIVE_LAYOUT_FILE, layout_text, error) &&
           make_directory(arena_printf(blobs->arena, "%s/blobs", blobs->path), error) &&
           make_directory(blobs->folder, error) && make_file(blobs, ARCHIVE_INDEX_FILE, empty_index, error);
}

/* Waits for the lock, and removes what a killed process left unfinished. */
static bool take_lock(struct blobs *blobs, bool waits, struct error *error)
{
    blobs->lock = open(blobs->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (blobs->lock < 0)
        return failed(error, errno, blobs->path);
    while (flock(blobs->lock, waits ? LOCK_EX : LOCK_EX | LOCK_NB) != 0)
        if (errno == EWOULDBLOCK)
            return error_set(error, "%s: another wfs changes the archive; prune it later", blobs->path);
        else if (errno != EINTR)
            return error_set_errno(error, errno, "%s: cannot be locked", blobs->path);
    if (unlink(blobs->unfinished) != 0 && errno != ENOENT && errno != ENOTDIR)
        return failed(error, errno, blobs->unfinished);
    return true;
}

struct blobs *blobs_open(const char *path, enum blobs_use use, struct error *error)
{
    bool create = use == BLOBS_CREATE;
    struct blobs *blobs = memory_alloc(sizeof *blobs);
    *blobs = (struct blobs){.arena = arena_new(), .lock = -1, .fd = -1};
    blobs->path = arena_strdup(blobs->arena, path);
    blobs->folder = arena_printf(blobs->arena, "%s/" ARCHIVE_BLOBS, path);
    blobs->unfinished = arena_printf(blobs->arena, "%s/%s", blobs->folder, unfinished_name);
    if ((!create || make_directory(path, error)) && take_lock(blobs, use != BLOBS_PRUNE, error) &&
        (create ? make_archive(blobs, error) : check_names(path, error)))
        return blobs;
    blobs_close(blobs);
    return NULL;
}

void blobs_close(struct blobs *blobs)
{
    if (blobs == NULL)
        return;
    blobs_drop(blobs);
    if (blobs->lock >= 0)
        close(blobs->lock);
    arena_free(blobs->arena);
    free(blobs);
}

bool blobs_status(const struct blobs *blobs, struct stat *ret_status, struct error *error)
{
    return fstat(blobs->lock, ret_status) == 0 || failed(error, errno, blobs->path);
}

bool blobs_begin(struct blobs *blobs, struct error *error)
{
    blobs->fd = open(blobs->unfinished, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    blobs->size = 0;
    sha256_init(&blobs->hash);
    return blobs->fd >= 0 || failed(error, errno, blobs->unfinished);
}

bool blobs_put(struct blobs *blobs, const void *bytes, size_t length, struct error *error)
{
    const unsigned char *from = bytes;
    sha256_update(&blobs->hash, length, bytes);
    blobs->size += length;
    while (length > 0) {
        ssize_t n = write(blobs->fd, from, length);
        if (n < 0 && errno != EINTR) {
            failed(error, errno, blobs->path);
            blobs_drop(blobs);
            return false;
        }
        from += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static const char *path_of(struct blobs *blobs, const struct digest *digest)
{
    char hex[SHA256_HEX + 1];
    digest_hex(digest, hex);
    return arena_printf(blobs->arena, "%s/%s", blobs->folder, hex);
}

bool blobs_finish(struct blobs *blobs, struct archive_blob *ret_blob, struct error *error)
{
    struct archive_blob blob = {.size = blobs->size};
    sha256_digest(&blobs->hash, sizeof blob.digest.bytes, blob.digest.bytes);
    int reason = durable_close(blobs->fd);
    blobs->fd = -1;
    if (reason == 0)
        reason = durable_rename(blobs->unfinished, path_of(blobs, &blob.digest));
    if (reason == 0)
        reason = durable_directory(blobs->folder);
    if (reason == 0) {
        *ret_blob = blob;
        return true;
    }
    unlink(blobs->unfinished);
    return failed(error, reason, blobs->path);
}

void blobs_drop(struct blobs *blobs)
{
    if (blobs->fd < 0)
        return;
    close(blobs->fd);
    unlink(blobs->unfinished);
    blobs->fd = -1;
}

bool blobs_add(struct blobs *blobs, const void *bytes, size_t length, struct archive_blob *ret_blob,
               struct error *error)
{
    return blobs_begin(blobs, error) && blobs_put(blobs, bytes, length, error) && blobs_finish(blobs, ret_blob, error);
}

bool blobs_set_index(struct blobs *blobs, const void *bytes, size_t length, struct error *error)
{
    const char *path = arena_printf(blobs->arena, "%s/" ARCHIVE_INDEX_FILE, blobs->path);
    int reason = durable_write(path, bytes, length, true);
    return reason == 0 || failed(error, reason, path);
}

bool blobs_list(struct blobs *blobs, blobs_each *each, void *context, struct error *error)
{
    DIR *stream = opendir(blobs->folder);
    bool good = stream != NULL || failed(error, errno, blobs->folder);
    struct dirent *entry;
    while (good && (entry = readdir(stream)) != NULL) {
        struct stat status;
        struct digest digest;
        if (digest_parse(entry->d_name, &digest) && fstatat(dirfd(stream), entry->d_name, &status, 0) == 0)
            good = each(context, &digest, (uint64_t)status.st_size, error);
    }
    if (stream != NULL)
        closedir(stream);
    return good;
}

bool blobs_check_unread(struct blobs *blobs, struct error *error)
{
    const char *path = arena_printf(blobs->arena, "%s/" ARCHIVE_LAYOUT_FILE, blobs->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(error, errno, path);
    bool is_read = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return !is_read ||
           error_set(error, "%s: a mount or another command reads the archive; end it, or prune the archive later",
                     blobs->path);
}

bool blobs_remove(struct blobs *blobs, const struct digest *digest, struct error *error)
{
    const char *path = path_of(blobs, digest);
    return unlink(path) == 0 || errno == ENOENT || failed(error, errno, path);
}

static bool forget(void *context, const struct digest *digest, uint64_t size, struct error *error)
{
    int fd = open(path_of(context, digest), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    system_forget(fd);
    close(fd);
    return true;
}

bool blobs_forget(struct blobs *blobs, struct error *error)
{
    return blobs_list(blobs, forget, blobs, error);
}
