#include "fs/lib/output.h"

#include "base/arena.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns ".NAME.wfs-PID-N" in the directory of `path`; the caller frees it. */
static char *temporary_name(const char *path)
{
    static atomic_uint n_names;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t capacity = strlen(path) + 48;
    char *temporary = memory_alloc(capacity);
    snprintf(temporary, capacity, "%.*s.%.200s.wfs-%d-%u", (int)(name - path), path, name, (int)getpid(),
             atomic_fetch_add(&n_names, 1));
    return temporary;
}

static void release(struct output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    free(output->path);
    free(output->temporary);
}

static bool open_temporary(struct output *output, mode_t mode)
{
    char *copy = memory_strdup(output->path);
    output->fd = system_open_unnamed(dirname(copy), mode);
    free(copy);
    output->has_no_name = output->fd >= 0;
    if (output->has_no_name)
        return true;
    /* Not every file system has such files. After any other error, this open fails with it, too. */
    output->fd = open(output->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
    return output->fd >= 0;
}

/* Sets the error, with its errno as the code for callers of the library. */
static bool fail(struct error *error, int reason, const char *path)
{
    error_set_errno(error, reason, "%s", path);
    return error_set_code(error, reason);
}

bool output_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error)
{
    struct stat status;
    int reason = stat(path, &status) == 0 ? 0 : errno;
    if (reason != 0 && lstat(path, &status) == 0)
        return error_set_errno(error, reason, "%s: a link that cannot be followed", path);
    char *real = realpath(path, NULL); /* writes the target of a link, and keeps the link */
    *output = (struct output){.fd = -1, .path = real != NULL ? real : memory_strdup(path)};
    output->temporary = temporary_name(output->path);
    bool exists = stat(output->path, &status) == 0;
    output->is_file = !exists || S_ISREG(status.st_mode);
    if (!output->is_file)
        output->fd = open(output->path, O_WRONLY | O_CLOEXEC);
    else if (open_temporary(output, mode) && size != 0 && !system_reserve(output->fd, size) && errno == ENOSPC) {
        error_set(error, "%s: not enough space for its %llu bytes", path, (unsigned long long)size);
        output_discard(output);
        return error_set_code(error, ENOSPC);
    }
    if (output->fd >= 0)
        return true;
    fail(error, errno, path);
    release(output);
    return false;
}

/* Gives an unnamed file its name: a link cannot replace a file, but rename() can. */
static bool link_output(const struct output *output)
{
    if (system_link_unnamed(output->fd, output->path))
        return true;
    if (errno != EEXIST || !system_link_unnamed(output->fd, output->temporary))
        return false;
    if (rename(output->temporary, output->path) == 0)
        return true;
    int reason = errno;
    unlink(output->temporary);
    errno = reason;
    return false;
}

/* Closes the file: a network file system may report a failed write or a full quota only now. */
static bool close_output(struct output *output)
{
    int fd = output->fd;
    output->fd = -1;
    return close(fd) == 0;
}

/* Closes only named files before the rename: file systems with unnamed files report no write error at close. */
bool output_finish(struct output *output, struct error *error)
{
    bool done = output->has_no_name ? link_output(output) : close_output(output);
    if (done && output->is_file && !output->has_no_name)
        done = rename(output->temporary, output->path) == 0;
    if (!done)
        fail(error, errno, output->path);
    if (done)
        release(output);
    else
        output_discard(output);
    return done;
}

void output_discard(struct output *output)
{
    if (output->is_file && !output->has_no_name)
        unlink(output->temporary);
    release(output);
}
