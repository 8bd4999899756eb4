#include "fs/lib/output.h"

#include "base/arena.h"
#include "base/system.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Returns ".NAME.wfs-PID-N" in the directory of `path`; the caller frees it. */
static char *temporary_name(const char *path)
{
    static atomic_uint n_names;
    const char *name = text_last_name(path);
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
    if (reason != 0 && lstat(path, &status) == 0) {
        error_set_errno(error, reason, "%s: a link that cannot be followed", path);
        return error_set_code(error, reason);
    }
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

/* Returns ".NAME.HOST-RANDOM" in the directory of `path`: no two writers share it, though process numbers of different
 * containers may be equal, and so may names of hosts. The caller frees it. */
static char *durable_name(const char *path)
{
    const char *name = text_last_name(path);
    size_t capacity = strlen(path) + 100;
    char *temporary = memory_alloc(capacity);
    struct utsname host;
    if (uname(&host) != 0)
        host.nodename[0] = '\0';
    for (char *c = host.nodename; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    snprintf(temporary, capacity, "%.*s.%s.%.64s-%016" PRIx64, (int)(name - path), path, name, host.nodename,
             system_random());
    return temporary;
}

int durable_close(int fd)
{
    int reason = fsync(fd) == 0 ? 0 : errno;
    if (close(fd) != 0 && reason == 0)
        reason = errno;
    return reason;
}

static int write_all(int fd, const unsigned char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno != EINTR)
            return errno;
        bytes += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int write_file(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int reason = write_all(fd, bytes, length), closed = durable_close(fd);
    return reason != 0 ? reason : closed;
}

int durable_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int reason = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    bool cannot = reason == EINVAL || reason == EBADF || reason == ENOSYS || reason == EOPNOTSUPP;
    return cannot ? 0 : reason; /* file systems without fsync() of directories */
}

/* Makes the directory of a path durable. */
static int durable_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash == path   ? memory_strdup("/")
                   : slash != NULL ? memory_strndup(path, (size_t)(slash - path))
                                   : memory_strdup(".");
    int reason = durable_directory(parent);
    free(parent);
    return reason;
}

int durable_make_directory(const char *path)
{
    return mkdir(path, 0777) == 0 ? durable_parent(path) : errno;
}

/* Reports whether link() has failed since the file system, or the sandbox, knows no hard links. EXDEV: a sandbox of the
 * first Landlock links within a directory only. */
static bool has_no_links(int reason)
{
    return reason == EPERM || reason == EOPNOTSUPP || reason == EMLINK || reason == ENOSYS || reason == EXDEV;
}

bool durable_exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

bool durable_is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool durable_is_same(const char *path, const char *other)
{
    struct stat first, second;
    return stat(path, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

int durable_link(const char *path, const char *name)
{
    int reason = link(path, name) == 0 ? 0 : errno;
    if (reason == EEXIST && durable_is_same(path, name))
        reason = 0; /* the reply of a network file system was lost, or another worker made the link */
    if (has_no_links(reason) && durable_exists(name))
        reason = EEXIST;
    else if (has_no_links(reason))
        reason = rename(path, name) == 0 ? 0 : errno;
    return reason != 0 ? reason : durable_parent(name);
}

int durable_rename(const char *path, const char *name)
{
    return rename(path, name) == 0 ? durable_parent(name) : errno;
}

int durable_write(const char *path, const void *bytes, size_t length, bool replace)
{
    char *temporary = durable_name(path);
    int reason = write_file(temporary, bytes, length);
    if (reason == 0 && replace)
        reason = durable_rename(temporary, path);
    else if (reason == 0)
        reason = durable_link(temporary, path);
    if (reason != 0 || !replace)
        unlink(temporary);
    free(temporary);
    return reason;
}

int durable_read(const char *path, size_t limit, struct buffer *out)
{
    enum { PIECE = 65536 };
    unsigned char bytes[PIECE];
    int fd = open(path, O_RDONLY | O_CLOEXEC), reason = 0;
    if (fd < 0)
        return errno;
    for (ssize_t n = 1; n != 0 && reason == 0;) {
        n = read(fd, bytes, sizeof bytes);
        if (n > 0)
            buffer_append(out, bytes, (size_t)n);
        if (n < 0 && errno != EINTR)
            reason = errno;
        if (out->length > limit)
            reason = EFBIG;
    }
    close(fd);
    return reason;
}
