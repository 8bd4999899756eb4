/* Directories of this machine. */
#include "sources/paths.h"

#include "base/opener.h"
#include "base/system.h"
#include "base/text.h"
#include "sources/location_scheme.h"
#include "sources/source_kinds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct local {
    int directory; /* found: its files can be opened even if it cannot be listed */
    enum location_links links;
    char *named; /* the file that the user named; NULL: none */
};

static const struct location_ops local_ops;

/* Takes the descriptor and `named`. */
static struct location *local_new(int directory, enum location_links links, char *named)
{
    struct local *local = memory_alloc(sizeof *local);
    *local = (struct local){directory, links, named};
    return location_new(&local_ops, local);
}

static void local_close(void *context)
{
    struct local *local = context;
    close(local->directory);
    free(local->named);
    free(local);
}

static enum location_kind kind_of_mode(mode_t mode)
{
    if (S_ISDIR(mode))
        return LOCATION_FOLDER;
    if (S_ISLNK(mode))
        return LOCATION_LINK;
    return S_ISREG(mode) ? LOCATION_FILE : LOCATION_OTHER;
}

static enum location_kind kind_of_entry(int directory, const struct dirent *entry)
{
    struct stat status;
    if (entry->d_type != DT_UNKNOWN)
        return kind_of_mode(DTTOIF(entry->d_type));
    return opener_stat_at(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ? kind_of_mode(status.st_mode)
                                                                                  : LOCATION_FILE;
}

static bool local_list(const void *context, const char *folder, struct location_listing *listing, struct error *error)
{
    const struct local *local = context;
    const char *path = *folder != '\0' ? folder : ".";
    int directory = source_file_open_at(local->directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    DIR *stream = directory >= 0 ? fdopendir(directory) : NULL;
    if (stream == NULL)
        return error_set(error, "%s", strerror(errno));
    for (struct dirent *entry; errno = 0, (entry = readdir(stream)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            location_add(listing, entry->d_name, kind_of_entry(directory, entry));
    bool listed = errno == 0 || error_set(error, "%s", strerror(errno));
    closedir(stream);
    return listed;
}

static enum location_kind local_kind_of(const void *context, const char *path)
{
    const struct local *local = context;
    struct stat entry, target;
    if (!opener_stat_at(local->directory, path, &entry, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? LOCATION_NOTHING : LOCATION_FILE;
    enum location_kind kind = kind_of_mode(entry.st_mode);
    if (kind != LOCATION_LINK)
        return kind;
    if (!opener_stat_at(local->directory, path, &target, 0))
        return LOCATION_FILE;
    kind = kind_of_mode(target.st_mode);
    return kind == LOCATION_FOLDER ? LOCATION_LINKED_FOLDER : kind;
}

/* Finds a path's target with system_find_flags; returns the descriptor, or -1 with errno. Checking its type before
 * opening it for reading avoids starting a device or waiting for a FIFO. */
static int find(const struct local *local, const char *path, mode_t type, const char *name, struct error *error)
{
    struct stat status;
    int found = source_file_open_at(local->directory, path, system_find_flags), reason = errno;
    if (found < 0 || fstat(found, &status) != 0)
        error_set_errno(error, reason, "%s", name);
    else if ((status.st_mode & S_IFMT) != type)
        error_set(error, "%s: not a %s", name, type == S_IFREG ? "regular file" : "directory");
    else
        return found;
    if (found >= 0)
        close(found);
    errno = found < 0 ? reason : 0;
    return -1;
}

/* Returns the path of a descriptor according to the kernel, in memory that the caller frees, or NULL. */
static char *found_path(int found)
{
    char path[PATH_MAX];
    return system_path_of(found, path) ? memory_strdup(path) : NULL;
}

static bool below(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Reports whether the directory is or is below models--NAME/snapshots/REVISION; then *path becomes the path of the
 * repository's blobs. */
static bool find_blobs(char *path)
{
    for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
        *slash = '\0';
        char *parent = strrchr(path, '/');
        if (parent == NULL || strcmp(parent, "/snapshots") != 0)
            continue;
        *parent = '\0';
        const char *folder = strrchr(path, '/');
        if (folder != NULL && text_starts_with(folder, "/models--")) {
            strcpy(parent, "/blobs");
            return true;
        }
        *parent = '/';
    }
    return false;
}

static bool stays_inside(const char *target, int directory)
{
    char *path = found_path(directory);
    bool inside = path != NULL &&
                  (below(target, strcmp(path, "/") == 0 ? "" : path) || (find_blobs(path) && below(target, path)));
    free(path);
    return inside;
}

static void refuse_link(const char *name, const char *target, struct error *error)
{
    error_set(error, "%s: a symbolic link to %s, outside of the model's directory; -o follow-links follows it", name,
              target);
}

/* Like find(), but refuses targets that the location's links do not permit. */
static int find_inside(const struct local *local, const char *path, mode_t type, const char *name, struct error *error)
{
    int found = find(local, path, type, name, error);
    char elsewhere[PATH_MAX];
    if (found < 0 && errno == EXDEV && opener_real_path(local->directory, path, elsewhere))
        refuse_link(name, elsewhere, error);
    bool is_free = local->links == LOCATION_FOLLOW || (local->named != NULL && strcmp(path, local->named) == 0);
    if (found < 0 || is_free)
        return found;
    char *target = found_path(found);
    bool is_inside = target != NULL && stays_inside(target, local->directory);
    if (target == NULL)
        error_set(error, "%s: where it is cannot be found out; is /proc mounted?", name);
    else if (!is_inside)
        refuse_link(name, target, error);
    if (!is_inside)
        close(found);
    free(target);
    return is_inside ? found : -1;
}

static struct location *local_folder(const void *context, const char *folder, const char *name, struct error *error)
{
    const struct local *local = context;
    int found = find_inside(local, folder, S_IFDIR, name, error);
    return found >= 0 ? local_new(found, local->links, NULL) : NULL;
}

static bool local_identify(const void *context, const char *path, struct source_identity *ret_identity,
                           bool *ret_inside)
{
    const struct local *local = context;
    struct error unused;
    struct stat status, target;
    int found = find_inside(local, path, S_IFREG, path, &unused);
    bool is_there = found >= 0 ? fstat(found, &status) == 0
                               : opener_stat_at(local->directory, path, &status, AT_SYMLINK_NOFOLLOW) &&
                                     opener_stat_at(local->directory, path, &target, 0) && S_ISREG(target.st_mode);
    if (found >= 0)
        close(found);
    *ret_inside = is_there && S_ISREG(status.st_mode);
    if (is_there)
        *ret_identity = source_file_identity(&status);
    return is_there;
}

static struct source *local_source(const void *context, const char *path, const char *name, struct error *error)
{
    int found = find_inside(context, path, S_IFREG, name, error);
    struct source *source = found >= 0 ? source_file_open(found, name, error) : NULL;
    if (found >= 0)
        close(found);
    return source;
}

static const struct location_ops local_ops = {
    .close = local_close,
    .folder = local_folder,
    .list = local_list,
    .kind = local_kind_of,
    .identify = local_identify,
    .open = local_source,
};

/* Fails if the text names neither a file nor a directory. */
static bool look_at(const char *text, struct stat *status, struct error *error)
{
    bool is_there = opener_stat_at(AT_FDCWD, text, status, 0);
    if (!is_there && errno == ENOENT && strstr(text, "://") != NULL)
        return error_set(error, "%s: not a kind of URL that wfs reads; it reads https://, hf://, s3:// and ollama://",
                         text);
    if (!is_there) {
        int reason = errno;
        error_set_errno(error, reason, "%s", text);
        return error_set_code(error, reason);
    }
    return S_ISDIR(status->st_mode) || S_ISREG(status->st_mode) ||
           error_set(error, "%s: neither a file nor a directory", text);
}

static struct location *local_open(const char *text, enum location_links links, const char **ret_file,
                                   struct error *error)
{
    struct stat status;
    if (!look_at(text, &status, error))
        return NULL;
    const char *slash = strrchr(text, '/'), *file = NULL;
    if (ret_file != NULL && S_ISREG(status.st_mode))
        file = slash != NULL ? slash + 1 : text;
    char *directory =
        file == text ? memory_strdup(".") : memory_strndup(text, file != NULL ? (size_t)(file - text) : strlen(text));
    int found = source_file_open_at(AT_FDCWD, directory, system_find_flags | O_DIRECTORY), reason = errno;
    free(directory);
    if (found < 0 && reason == EXDEV)
        error_set(error, "%s: outside of the model's directory; -o follow-links opens it", text);
    else if (found < 0)
        error_set_errno(error, reason, "%s", text);
    if (found < 0 && reason == EACCES)
        error_set_code(error, reason);
    if (found < 0)
        return NULL;
    char *named = file != NULL ? memory_strdup(file) : NULL;
    if (ret_file != NULL)
        *ret_file = named;
    return local_new(found, links, named);
}

const struct location_scheme local_scheme = {.prefix = "", .open = local_open};

enum location_kind local_kind(const char *path)
{
    struct stat status;
    return opener_stat_at(AT_FDCWD, path, &status, 0) ? kind_of_mode(status.st_mode) : LOCATION_NOTHING;
}

const char *local_real_path(const char *path, struct arena *arena)
{
    char real[PATH_MAX];
    return opener_real_path(AT_FDCWD, path, real) ? arena_strdup(arena, real) : NULL;
}

struct source *local_open_file(const char *path, const char *name, struct error *error)
{
    const char *file;
    struct source *source = NULL;
    struct location *location = local_open(path, LOCATION_FOLLOW, &file, error);
    if (location != NULL && file != NULL)
        source = location_source_as(location, file, name, error);
    else if (location != NULL)
        error_set(error, "%s: not a regular file", name);
    location_close(location);
    return source;
}
