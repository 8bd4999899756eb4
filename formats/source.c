#include "formats/source.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MAPPED_BYTES = 16 << 20 };

/* What becomes known of a source while it is read. Computed sources have that of their file. */
struct source_state {
    atomic_bool changed, consulted;
    _Atomic int64_t checked; /* when the kernel was last asked, in milliseconds */
};

struct source {
    char *name;
    uint64_t size;
    struct stat identity;
    int fd;                      /* -1 for a source that is computed */
    void *mapping;               /* MAP_FAILED where there is none */
    _Atomic uint64_t handed_out; /* bytes of the mapping since its pages were last given back */
    const struct source_ops *ops;
    void *context;
    struct source_state *state;
};

/* Shells set a soft limit of descriptors that a checkpoint of many files exceeds; the hard one is meant to be used. */
static bool raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_again(int directory, const char *path, int flags)
{
    int fd = openat(directory, path, flags | O_CLOEXEC);
    return fd < 0 && errno == EMFILE && raise_descriptor_limit() ? openat(directory, path, flags | O_CLOEXEC) : fd;
}

int source_find(int directory, const char *path, const char *name, struct error *error)
{
    struct stat identity;
    int found = open_again(directory, path, O_PATH);
    if (found < 0 || fstat(found, &identity) != 0)
        error_set_errno(error, errno, "%s", name);
    else if (!S_ISREG(identity.st_mode))
        error_set(error, "%s: not a regular file", name);
    else
        return found;
    if (found >= 0)
        close(found);
    return -1;
}

char *source_found_path(int found)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", found);
    ssize_t length = readlink(link, path, sizeof path);
    return length >= 0 && (size_t)length < sizeof path ? strndup(path, (size_t)length) : NULL;
}

struct source *source_open_found(int found, const char *name, struct error *error)
{
    char link[64];
    struct stat identity;
    snprintf(link, sizeof link, "/proc/self/fd/%d", found);
    int fd = open_again(AT_FDCWD, link, O_RDONLY);
    if (fd < 0 || fstat(fd, &identity) != 0) {
        error_set_errno(error, errno, "%s", name);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct source *source = memory_alloc(sizeof *source);
    *source = (struct source){
        .name = strdup(name),
        .size = (uint64_t)identity.st_size,
        .identity = identity,
        .fd = fd,
        .mapping = MAP_FAILED,
        .state = memory_alloc(sizeof *source->state),
    };
    *source->state = (struct source_state){.changed = false};
    if (source->size != 0 && source->size <= SIZE_MAX)
        source->mapping = mmap(NULL, (size_t)source->size, PROT_READ, MAP_SHARED, fd, 0);
    return source;
}

struct source *source_open(int directory, const char *path, const char *name, struct error *error)
{
    int found = source_find(directory, path, name, error);
    struct source *source = found >= 0 ? source_open_found(found, name, error) : NULL;
    if (found >= 0)
        close(found);
    return source;
}

struct source *source_new(const struct source *base, const char *name, uint64_t size, const struct source_ops *ops, void *context)
{
    struct source *source = memory_alloc(sizeof *source);
    *source = (struct source){
        .name = strdup(name),
        .size = size,
        .identity = base->identity,
        .fd = -1,
        .mapping = MAP_FAILED,
        .ops = ops,
        .context = context,
        .state = base->state,
    };
    return source;
}

static bool text_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    (void)error;
    memcpy(out, (const char *)context + offset, length);
    return true;
}

struct source *source_of_text(const struct source *base, const char *name, const char *text, size_t length)
{
    static const struct source_ops ops = {text_read, free};
    char *copy = memory_alloc(length);
    memcpy(copy, text, length);
    return source_new(base, name, length, &ops, copy);
}

void source_close(struct source *source)
{
    if (source == NULL)
        return;
    if (source->mapping != MAP_FAILED)
        munmap(source->mapping, (size_t)source->size);
    if (source->fd >= 0) {
        close(source->fd);
        free(source->state);
    }
    if (source->ops != NULL)
        source->ops->release(source->context);
    free(source->name);
    free(source);
}

const char *source_name(const struct source *source)
{
    return source->name;
}

uint64_t source_size(const struct source *source)
{
    return source->size;
}

struct timespec source_mtime(const struct source *source)
{
    return source->identity.st_mtim;
}

mode_t source_permissions(const struct source *source)
{
    return source->identity.st_mode & 0777;
}

gid_t source_group(const struct source *source)
{
    return source->identity.st_gid;
}

bool source_same_file(const struct source *a, const struct source *b)
{
    return a->identity.st_dev == b->identity.st_dev && a->identity.st_ino == b->identity.st_ino;
}

static bool read_file(const struct source *source, uint64_t offset, size_t length, unsigned char *out, struct error *error)
{
    while (length > 0) {
        ssize_t n = pread(source->fd, out, length, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(error, errno, "%s: offset %llu", source->name, (unsigned long long)offset);
        if (n == 0) {
            source_verify(source);
            return error_set(error, "%s: ends at offset %llu, was %llu bytes long when it was opened", source->name,
                             (unsigned long long)offset, (unsigned long long)source->size);
        }
        out += n;
        offset += (uint64_t)n;
        length -= (size_t)n;
    }
    return true;
}

bool source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error)
{
    if (offset > source->size || length > source->size - offset)
        return error_set(error, "%s: bytes [%llu, +%zu) are outside its %llu bytes", source->name, (unsigned long long)offset,
                         length, (unsigned long long)source->size);
    if (source_known_changed(source))
        return error_set(error, "%s: changed since it was opened", source->name);
    if (source->ops != NULL)
        return source->ops->read(source->context, offset, length, out, error);
    return read_file(source, offset, length, out, error);
}

/* Gathering: the kernel copies from the mapping into a file of our own in memory (pwritev), which is mapped too. A page that the
 * source has lost is EFAULT for that call, where touching it would be SIGBUS. A thread has one such file. */

enum { GATHER_BYTES = 256 * 1024, GATHER_RUNS = 1024, GATHER_LONGEST = 2048 };

struct gather {
    int fd;
    unsigned char *bytes; /* GATHER_BYTES, the content of fd */
};

static pthread_key_t gather_key;
static pthread_once_t gather_once = PTHREAD_ONCE_INIT;

static void gather_free(void *pointer)
{
    struct gather *gather = pointer;
    munmap(gather->bytes, GATHER_BYTES);
    close(gather->fd);
    free(gather);
}

static void gather_make_key(void)
{
    pthread_key_create(&gather_key, gather_free);
}

/* That of this thread, or NULL where it cannot be had. */
static struct gather *gather_get(void)
{
    pthread_once(&gather_once, gather_make_key);
    struct gather *gather = pthread_getspecific(gather_key);
    if (gather != NULL)
        return gather;
    int fd = memfd_create("wfs-gather", MFD_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, GATHER_BYTES) == 0)
        bytes = mmap(NULL, GATHER_BYTES, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (bytes == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    gather = memory_alloc(sizeof *gather);
    *gather = (struct gather){fd, bytes};
    pthread_setspecific(gather_key, gather);
    return gather;
}

/* False where the kernel did not copy everything: the runs are then to be read one by one, which tells why. */
static bool gather_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length, uint64_t stride,
                        unsigned char *out)
{
    struct gather *gather = gather_get();
    struct iovec runs[GATHER_RUNS];
    if (gather == NULL)
        return false;
    uint64_t most = GATHER_BYTES / length < GATHER_RUNS ? GATHER_BYTES / length : GATHER_RUNS;
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < most ? count - done : most;
        for (uint64_t i = 0; i < n; i++)
            runs[i] = (struct iovec){(unsigned char *)source->mapping + offset + (done + i) * stride, length};
        if (pwritev(gather->fd, runs, (int)n, 0) != (ssize_t)(n * length))
            return false;
        memcpy(out + done * length, gather->bytes, n * length);
        done += n;
    }
    return true;
}

bool source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length, uint64_t stride, void *out,
                      struct error *error)
{
    unsigned char *to = out;
    uint64_t span;
    bool inside = count > 0 && !__builtin_mul_overflow(count - 1, stride, &span) && offset <= source->size &&
                  span <= source->size - offset && length <= source->size - offset - span;
    if (inside && source->mapping != MAP_FAILED && length > 0 && length <= GATHER_LONGEST &&
        gather_runs(source, offset, count, length, stride, to))
        return true;
    for (uint64_t i = 0; i < count; i++, to += length)
        if (!source_read(source, offset + i * stride, length, to, error))
            return false;
    return true;
}

char *source_read_text(const struct source *source, size_t limit, size_t *ret_length, struct error *error)
{
    if (source->size > limit) {
        error_set(error, "%s: %llu bytes are more than the limit of %zu", source->name, (unsigned long long)source->size, limit);
        return NULL;
    }
    atomic_store(&source->state->consulted, true);
    size_t length = (size_t)source->size;
    char *text = memory_alloc(length + 1);
    if (!source_read(source, 0, length, text, error)) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *ret_length = length;
    return text;
}

const void *source_mapping(struct source *source, uint64_t offset, uint64_t length)
{
    if (source->mapping == MAP_FAILED || source_verify(source))
        return NULL;
    if (atomic_fetch_add(&source->handed_out, length) + length >= MAPPED_BYTES) {
        atomic_store(&source->handed_out, 0);
        madvise(source->mapping, (size_t)source->size, MADV_DONTNEED); /* whoever is copying from it faults it in again */
    }
    return (const unsigned char *)source->mapping + offset;
}

void source_prefetch(const struct source *source, uint64_t offset, uint64_t length)
{
    if (source->fd >= 0)
        posix_fadvise(source->fd, (off_t)offset, (off_t)length, POSIX_FADV_WILLNEED);
}

bool source_was_consulted(const struct source *source)
{
    return atomic_load(&source->state->consulted);
}

bool source_is_file(const struct source *source)
{
    return source->fd >= 0;
}

bool source_known_changed(const struct source *source)
{
    return atomic_load(&source->state->changed);
}

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool source_verify(const struct source *source)
{
    struct stat now;
    if (source->fd >= 0) {
        atomic_store_explicit(&source->state->checked, milliseconds(), memory_order_relaxed);
        if (fstat(source->fd, &now) != 0 || !is_same(&now, &source->identity))
            source_mark_changed(source);
    }
    return source_known_changed(source);
}

bool source_changed(const struct source *source)
{
    int64_t checked = atomic_load_explicit(&source->state->checked, memory_order_relaxed);
    return source_known_changed(source) || (milliseconds() - checked > SOURCE_CHECK_MS && source_verify(source));
}

void source_mark_changed(const struct source *source)
{
    atomic_store(&source->state->changed, true);
}

int source_watch(const struct source *source, int inotify)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", source->fd);
    return source->fd >= 0 ? inotify_add_watch(inotify, link, IN_MODIFY) : -1;
}
