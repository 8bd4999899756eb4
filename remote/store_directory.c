#include "remote/store_directory.h"

#include "base/report.h"
#include "remote/options.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DIRECTORY = 3840, MAX_PATH = 4096 };

static atomic_bool is_told; /* that nothing can be written */

/* Why there is no directory; both empty if there is one. */
static char failed_path[MAX_PATH], failure[128];

void store_tell(const char *path, const char *reason)
{
    if (!atomic_exchange(&is_told, true))
        report("note: %s: %s; computed bytes are not kept, and fetched bytes in memory, the last 64 MiB of them", path,
               reason);
}

static void find_directory(char path[MAX_PATH])
{
    const char *cache = remote_options().cache, *below = "";
    if (cache == NULL)
        cache = remote_variable("CACHE_DIRECTORY");
    if (cache == NULL && (cache = remote_variable("XDG_CACHE_HOME")) != NULL)
        below = "/wfs";
    const struct passwd *user = cache == NULL && remote_variable("HOME") == NULL ? getpwuid(getuid()) : NULL;
    if (cache == NULL) {
        cache = user != NULL ? user->pw_dir : remote_variable("HOME");
        below = "/.cache/wfs";
    }
    snprintf(path, MAX_DIRECTORY - 32, "%s%s", cache != NULL ? cache : "", below);
}

bool store_make_parents(const char *path)
{
    char parent[MAX_PATH];
    bool made = true;
    int reason = 0;
    snprintf(parent, sizeof parent, "%s", path);
    for (char *slash = strchr(parent + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool was_made = made;
        made = mkdir(parent, 0700) == 0 || errno == EEXIST;
        if (was_made && !made)
            reason = errno;
        *slash = '/';
    }
    errno = reason;
    return made;
}

bool store_make_folder(const char *path)
{
    return store_make_parents(path) && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

static void fail(const char *path, const char *reason)
{
    snprintf(failed_path, sizeof failed_path, "%s", path);
    snprintf(failure, sizeof failure, "%s", reason);
}

static bool is_only_ours(const struct stat *status)
{
    return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Reports whether nobody else can put bytes into a directory: they would be taken for what a server sent. */
static bool is_own(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        fail(path, strerror(errno));
    else if (status.st_uid != geteuid())
        fail(path, "the cache of another user");
    else if (!is_only_ours(&status))
        fail(path, "others may write to this cache; 'chmod go-w' makes it this user's alone");
    else
        return true;
    return false;
}

static char directory[MAX_DIRECTORY]; /* "": there is none */
static uint64_t limit;                /* how many bytes it may hold */

static void prepare(void)
{
    static const char tag[] =
        "Signature: 8a477f597d28d172789f06886806bc55\n# Files of wfs that it can fetch or compute again.\n";
    char path[MAX_PATH];
    const struct remote_options options = remote_options();
    limit = options.cache_size.is_set ? options.cache_size.bytes : EVICT_DEFAULT;
    find_directory(path);
    size_t length = strlen(path);
    strcpy(path + length, "/CACHEDIR.TAG");
    if (*path != '/' || !store_make_parents(path)) {
        fail(path, strerror(errno));
        return;
    }
    path[length] = '\0';
    if (!is_own(path))
        return;
    path[length] = '/';
    memcpy(directory, path, length);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, tag, sizeof tag - 1) < 0)
        fail(path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* Reports whether the store may hold anything, without a note. */
static bool is_usable(void)
{
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    pthread_once(&prepared, prepare);
    return *directory != '\0' && limit > 0;
}

bool store_is_usable(void)
{
    bool usable = is_usable();
    if (*failure != '\0')
        store_tell(failed_path, failure);
    return usable;
}

int store_open_records(int flags)
{
    char path[MAX_PATH];
    struct stat status;
    if (!is_usable())
        return -1;
    snprintf(path, sizeof path, "%s/" STORE_RECORDS, directory);
    int fd = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && is_only_ours(&status)))
        return fd;
    close(fd);
    return -1;
}

const char *store_directory(void)
{
    store_is_usable();
    return *directory != '\0' ? directory : NULL;
}

uint64_t store_limit(void)
{
    return limit;
}
