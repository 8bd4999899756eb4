#include "formats/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool directory_names(int directory, struct arena *arena, const char *const **ret_names, size_t *ret_n_names)
{
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = again >= 0 ? fdopendir(again) : NULL;
    if (stream == NULL)
        return false;
    const char **names = NULL;
    size_t n_names = 0, capacity = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n_names == capacity) {
            capacity = capacity * 2 + 16;
            names = memory_resize(names, capacity * sizeof *names);
        }
        names[n_names++] = arena_strdup(arena, entry->d_name);
    }
    closedir(stream);
    if (n_names > 0)
        qsort(names, n_names, sizeof *names, compare_names);
    *ret_names = arena_copy(arena, names, n_names * sizeof *names);
    *ret_n_names = n_names;
    free(names);
    return true;
}

static bool is_link(int directory, const char *path)
{
    struct stat identity;
    return fstatat(directory, path, &identity, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(identity.st_mode);
}

/* Where the open directory is, by the kernel's account. */
static bool real_path_of(int directory, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    return true;
}

static bool below(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Whether the directory is or is below snapshots/REVISION, in a hub cache; then *path becomes that of the blobs. */
static bool find_blobs(char *path)
{
    for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
        *slash = '\0';
        if (strcmp(slash + 1, "snapshots") == 0) {
            strcpy(slash, "/blobs");
            return true;
        }
    }
    return false;
}

static bool stays_inside(const char *target, int directory)
{
    char path[PATH_MAX];
    if (!real_path_of(directory, path))
        return false;
    if (below(target, strcmp(path, "/") == 0 ? "" : path))
        return true;
    return find_blobs(path) && below(target, path);
}

struct source *directory_open_file(int directory, const char *path, const char *name, struct error *error)
{
    struct source *source = source_open(directory, path, name, error);
    if (source == NULL || !is_link(directory, path))
        return source;
    char *target = source_real_path(source);
    bool inside = target != NULL && stays_inside(target, directory);
    if (!inside) {
        error_set(error, "%s: a symbolic link to %s, outside of the model's directory", name,
                  target ? target : "an unknown place");
        source_close(source);
        source = NULL;
    }
    free(target);
    return source;
}
