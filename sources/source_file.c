#include "sources/source_kinds.h"

#include "base/arena.h"
#include "base/guarded.h"
#include "base/opener.h"
#include "base/process.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAPPED_BYTES = 16 << 20 };

struct file {
    const struct source *source; /* the source of this file */
    int fd;
    uint64_t size;
    void *mapping;               /* MAP_FAILED: none */
    _Atomic uint64_t handed_out; /* bytes handed out since the mapping's pages were last released */
};

static bool file_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct file *file = context;
    const struct source *source = file->source;
    unsigned char *at = out;
    while (length > 0) {
        ssize_t n = pread(file->fd, at, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(error, errno, "%s: offset %llu", source_name(source), (unsigned long long)offset);
        if (n == 0) {
            source_verify(source);
            return error_set(error, "%s: ends at offset %llu, was %llu bytes long when it was opened",
                             source_name(source), (unsigned long long)offset, (unsigned long long)file->size);
        }
        at += n;
        offset += (uint64_t)n;
        length -= (size_t)n;
    }
    return true;
}

enum { GATHER_LONGEST = 2048 };

/* Returns false if the file has lost bytes, too: reading the runs one by one then gives the reason. */
static bool file_gather(void *context, uint64_t offset, uint64_t count, size_t length, uint64_t stride,
                        unsigned char *out)
{
    const struct file *file = context;
    return file->mapping != MAP_FAILED && length <= GATHER_LONGEST &&
           guarded_copy(out, (const unsigned char *)file->mapping + offset, count, length, stride);
}

static const void *file_map(void *context, uint64_t offset, uint64_t length)
{
    struct file *file = context;
    if (file->mapping == MAP_FAILED)
        return NULL;
    if (atomic_fetch_add(&file->handed_out, length) + length >= MAPPED_BYTES) {
        atomic_store(&file->handed_out, 0);
        madvise(file->mapping, (size_t)file->size, MADV_DONTNEED); /* a reader that still copies faults them in again */
    }
    return (const unsigned char *)file->mapping + offset;
}

static void file_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    const struct file *file = context;
    system_read_ahead(file->fd, offset, length);
}

static bool file_identify(void *context, struct source_identity *ret_identity)
{
    const struct file *file = context;
    struct stat status;
    bool known = fstat(file->fd, &status) == 0;
    if (known)
        *ret_identity = source_file_identity(&status);
    return known;
}

static int file_descriptor(void *context)
{
    return ((const struct file *)context)->fd;
}

static void file_release(void *context)
{
    struct file *file = context;
    if (file->mapping != MAP_FAILED)
        munmap(file->mapping, (size_t)file->size);
    close(file->fd);
    free(file);
}

static const struct source_ops file_ops = {
    .read = file_read,
    .release = file_release,
    .gather = file_gather,
    .map = file_map,
    .want = file_want,
    .identify = file_identify,
    .descriptor = file_descriptor,
};

/* Raises the soft limit of descriptors to the hard one, if the program allows it: checkpoints of many files exceed the
 * soft limit that shells set. */
static bool raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (!process_allows(PROCESS_DESCRIPTORS) || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur == limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int source_file_open_at(int directory, const char *path, int flags)
{
    int fd = opener_open_at(directory, path, flags);
    return fd < 0 && errno == EMFILE && raise_descriptor_limit() ? opener_open_at(directory, path, flags) : fd;
}

struct source_identity source_file_identity(const struct stat *status)
{
    return (struct source_identity){
        .key = {(uint64_t)status->st_dev, (uint64_t)status->st_ino},
        .size = (uint64_t)status->st_size,
        .mtime = system_modified(status),
        .changed = system_changed(status),
        .permissions = status->st_mode & 0777,
        .group = status->st_gid,
    };
}

struct source *source_file_open(int found, const char *name, struct error *error)
{
    struct stat status;
    int fd = opener_reopen(found);
    if (fd < 0 && errno == EMFILE && raise_descriptor_limit())
        fd = opener_reopen(found);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int reason = errno;
        if (reason == ENOENT) /* not the file, which has been found */
            error_set(error, "%s: cannot be opened; is /proc mounted?", name);
        else
            error_set_errno(error, reason, "%s", name);
        if (reason == EACCES)
            error_set_code(error, reason);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    const struct source_identity identity = source_file_identity(&status);
    struct file *file = memory_alloc(sizeof *file);
    *file = (struct file){.fd = fd, .size = identity.size, .mapping = MAP_FAILED};
    if (file->size != 0 && file->size <= SIZE_MAX)
        file->mapping = mmap(NULL, (size_t)file->size, PROT_READ, MAP_SHARED, fd, 0);
    struct source *source = source_new_file(&identity, name, &file_ops, file);
    file->source = source;
    return source;
}
