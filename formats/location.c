#include "formats/location.h"

#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct location {
    int directory;
};

/* Takes the descriptor; where it is none, errno says why. */
static struct location *location_new(int directory, struct error *error)
{
    if (directory < 0) {
        error_set(error, "%s", strerror(errno));
        return NULL;
    }
    struct location *location = memory_alloc(sizeof *location);
    location->directory = directory;
    return location;
}

struct location *location_of_directory(const char *path, struct error *error)
{
    return location_new(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error);
}

struct location *location_of_folder(const struct location *location, const char *folder, struct error *error)
{
    return location_new(openat(location->directory, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), error);
}

void location_close(struct location *location)
{
    if (location == NULL)
        return;
    close(location->directory);
    free(location);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool location_names(const struct location *location, const char *folder, struct arena *arena,
                    const char *const **ret_names, size_t *ret_n_names, struct error *error)
{
    const char *path = *folder != '\0' ? folder : ".";
    int again = openat(location->directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = again >= 0 ? fdopendir(again) : NULL;
    if (stream == NULL)
        return error_set(error, "%s", strerror(errno));
    const char **names = NULL;
    size_t n_names = 0, capacity = 0;
    for (struct dirent *entry; errno = 0, (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n_names == capacity) {
            capacity = capacity * 2 + 16;
            names = memory_resize(names, capacity * sizeof *names);
        }
        names[n_names++] = arena_strdup(arena, entry->d_name);
    }
    bool listed = errno == 0 || error_set(error, "%s", strerror(errno));
    closedir(stream);
    if (n_names > 0)
        qsort(names, n_names, sizeof *names, compare_names);
    *ret_names = arena_copy(arena, names, n_names * sizeof *names);
    *ret_n_names = n_names;
    free(names);
    return listed;
}

static bool below(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Whether the directory is or is below models--NAME/snapshots/REVISION; then *path becomes that of the repository's
 * blobs. */
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
    char *path = source_found_path(directory);
    bool inside = path != NULL &&
                  (below(target, strcmp(path, "/") == 0 ? "" : path) || (find_blobs(path) && below(target, path)));
    free(path);
    return inside;
}

enum location_kind location_kind(const struct location *location, const char *path)
{
    struct stat entry, target;
    if (fstatat(location->directory, path, &entry, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? LOCATION_NOTHING : LOCATION_FILE;
    if (S_ISDIR(entry.st_mode))
        return LOCATION_FOLDER;
    if (!S_ISLNK(entry.st_mode))
        return S_ISREG(entry.st_mode) ? LOCATION_FILE : LOCATION_OTHER;
    if (fstatat(location->directory, path, &target, 0) != 0 || S_ISREG(target.st_mode))
        return LOCATION_FILE;
    return S_ISDIR(target.st_mode) ? LOCATION_LINKED_FOLDER : LOCATION_OTHER;
}

/* A descriptor of a file that may be opened, or -1. */
static int find_inside(const struct location *location, const char *path, struct error *error)
{
    int found = source_find(location->directory, path, path, error);
    char *target = found >= 0 ? source_found_path(found) : NULL;
    if (found >= 0 && (target == NULL || !stays_inside(target, location->directory))) {
        error_set(error, "%s: a symbolic link to %s, outside of the model's directory", path,
                  target ? target : "an unknown place");
        close(found);
        found = -1;
    }
    free(target);
    return found;
}

uint64_t location_size(const struct location *location, const char *path)
{
    struct error unused;
    struct stat identity = {.st_size = 0};
    int found = find_inside(location, path, &unused);
    if (found >= 0) {
        fstat(found, &identity);
        close(found);
    }
    return (uint64_t)identity.st_size;
}

struct source *location_unopened(const struct location *location, const char *path, const char *reason,
                                 bool *ret_inside)
{
    struct error unused;
    struct stat identity, target;
    int found = find_inside(location, path, &unused);
    bool is_there = found >= 0 ? fstat(found, &identity) == 0
                               : fstatat(location->directory, path, &identity, AT_SYMLINK_NOFOLLOW) == 0 &&
                                     fstatat(location->directory, path, &target, 0) == 0 && S_ISREG(target.st_mode);
    if (found >= 0)
        close(found);
    *ret_inside = is_there && S_ISREG(identity.st_mode);
    return is_there ? source_unopened(&identity, path, reason) : NULL;
}

struct source *location_open(const struct location *location, const char *path, struct error *error)
{
    int found = find_inside(location, path, error);
    struct source *source = found >= 0 ? source_open_found(found, path, error) : NULL;
    if (found >= 0)
        close(found);
    return source;
}
