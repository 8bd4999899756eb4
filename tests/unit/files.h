/* Files for tests: a temporary directory, which is the working directory until files_remove(), and what to put into it.
 */
#pragma once

#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char files_directory[] = "/tmp/wfs-unit-XXXXXX";

static inline void files_must(bool done, const char *what)
{
    if (done)
        return;
    perror(what);
    exit(99);
}

static inline void files_begin(void)
{
    files_must(mkdtemp(files_directory) != NULL && chdir(files_directory) == 0, files_directory);
}

static inline int files_remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static inline void files_remove(void)
{
    files_must(chdir("/") == 0 && nftw(files_directory, files_remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0,
               files_directory);
}

/* Makes the directories that `path` needs. */
static inline void files_make_parents(const char *path)
{
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0755);
        *slash = '/';
    }
}

static inline void files_write(const char *path, const void *bytes, size_t length)
{
    files_make_parents(path);
    FILE *file = fopen(path, "wb");
    files_must(file != NULL && fwrite(bytes, 1, length, file) == length && fclose(file) == 0, path);
}

static inline void files_write_text(const char *path, const char *text)
{
    files_write(path, text, strlen(text));
}

/* Lets so many files, and some more, be open at once; returns false if the hard limit of descriptors is lower. Shells
 * set a lower soft limit, which the library leaves as it is. */
static inline bool files_may_be_open(size_t n_files)
{
    enum { OTHERS = 64 };
    struct rlimit limit;
    files_must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    if (limit.rlim_max < n_files + OTHERS)
        return false;
    limit.rlim_cur = limit.rlim_max;
    files_must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    return true;
}

/* A symbolic link at `path` with the text `target`. */
static inline void files_link(const char *path, const char *target)
{
    files_make_parents(path);
    files_must(symlink(target, path) == 0, path);
}
