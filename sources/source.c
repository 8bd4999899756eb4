#include "sources/source.h"

#include "base/arena.h"
#include "base/opener.h"
#include "base/stop.h"
#include "base/system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mutable state of a source. Computed sources share their file's. */
struct source_state {
    atomic_bool changed;
    _Atomic int64_t checked; /* when the kernel was last asked, in milliseconds */
};

struct source {
    char *name;
    uint64_t size;
    struct source_identity identity;
    const struct source_ops *ops;
    void *context;
    struct source_state *state;
    bool owns_state; /* else the state belongs to its file */
};

static atomic_bool any_remote;

static struct source *make(const struct source_identity *identity, const char *name, uint64_t size,
                           const struct source_ops *ops, void *context)
{
    struct source *source = memory_alloc(sizeof *source);
    *source = (struct source){
        .name = memory_strdup(name), .size = size, .identity = *identity, .ops = ops, .context = context};
    if (source_is_remote(source))
        atomic_store_explicit(&any_remote, true, memory_order_relaxed);
    return source;
}

struct source *source_new(const struct source *base, const char *name, uint64_t size, const struct source_ops *ops,
                          void *context)
{
    struct source *source = make(&base->identity, name, size, ops, context);
    source->state = base->state;
    return source;
}

struct source *source_new_file(const struct source_identity *identity, const char *name, const struct source_ops *ops,
                               void *context)
{
    struct source *source = make(identity, name, identity->size, ops, context);
    source->owns_state = true;
    source->state = memory_alloc(sizeof *source->state);
    *source->state = (struct source_state){.changed = false};
    return source;
}

static bool text_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    memcpy(out, (const char *)context + offset, length);
    return true;
}

struct source *source_of_text(const struct source *base, const char *name, const char *text, size_t length)
{
    static const struct source_ops ops = {.read = text_read, .release = free};
    char *copy = memory_alloc(length);
    memcpy(copy, text, length);
    return source_new(base, name, length, &ops, copy);
}

static bool unopened_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    return error_set(error, "%s", (const char *)context);
}

struct source *source_unopened(const struct source_identity *identity, const char *name, const char *reason)
{
    static const struct source_ops ops = {.read = unopened_read, .release = free};
    return source_new_file(identity, name, &ops, memory_strdup(reason));
}

void source_close(struct source *source)
{
    if (source == NULL)
        return;
    source->ops->release(source->context);
    if (source->owns_state)
        free(source->state);
    free(source->name);
    free(source);
}

const void *source_context(const struct source *source, const struct source_ops *ops)
{
    return source->ops == ops ? source->context : NULL;
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
    return source->identity.mtime;
}

mode_t source_permissions(const struct source *source)
{
    return source->identity.permissions;
}

gid_t source_group(const struct source *source)
{
    return source->identity.group;
}

void source_append_identity(const struct source *source, struct buffer *out)
{
    const struct source_identity *file = &source->identity;
    buffer_append(out, source->name, strlen(source->name) + 1);
    buffer_append_le(out, source->size, 8);
    buffer_append_le(out, file->key[0], 8);
    buffer_append_le(out, file->key[1], 8);
    buffer_append_le(out, (uint64_t)file->mtime.tv_sec, 8);
    buffer_append_le(out, (uint64_t)file->mtime.tv_nsec, 8);
}

void source_append_change(const struct source *source, struct buffer *out)
{
    buffer_append_le(out, (uint64_t)source->identity.changed.tv_sec, 8);
    buffer_append_le(out, (uint64_t)source->identity.changed.tv_nsec, 8);
}

static bool has_same_key(const struct source_identity *a, const struct source_identity *b)
{
    return a->key[0] == b->key[0] && a->key[1] == b->key[1];
}

bool source_same_file(const struct source *a, const struct source *b)
{
    return has_same_key(&a->identity, &b->identity);
}

static _Thread_local uint64_t n_unreached;

uint64_t source_unreached(void)
{
    return n_unreached + stop_count();
}

void source_count_unreached(void)
{
    n_unreached++;
}

/* Counts a failure that may pass: all failures of a remote source but a changed object. Returns `good`. */
static bool count_unreached(const struct source *source, bool good, const struct error *error)
{
    if (!good && source_is_remote(source) && error->code != ESTALE)
        source_count_unreached();
    return good;
}

static bool refuse_changed(const struct source *source, struct error *error)
{
    char change[SOURCE_CHANGE];
    error_set(error, "%s: changed since it was opened%s", source->name, source_change(source, change));
    return error_set_code(error, source_is_remote(source) ? ESTALE : EIO);
}

bool source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error)
{
    if (offset > source->size || length > source->size - offset)
        return error_set(error, "%s: bytes [%llu, +%zu) are past the end of its %llu bytes", source->name,
                         (unsigned long long)offset, length, (unsigned long long)source->size);
    if (source_known_changed(source))
        return refuse_changed(source, error);
    if (stop_is_due(error))
        return false;
    if (!count_unreached(source, source->ops->read(source->context, offset, length, out, error), error))
        return false;
    return !source_verify(source) || refuse_changed(source, error);
}

bool source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length, uint64_t stride,
                      void *out, struct error *error)
{
    unsigned char *to = out;
    uint64_t span;
    bool inside = count > 0 && !__builtin_mul_overflow(count - 1, stride, &span) && offset <= source->size &&
                  span <= source->size - offset && length <= source->size - offset - span;
    if (stop_is_due(error))
        return false;
    if (inside && source->ops->gather != NULL && !source_known_changed(source) &&
        source->ops->gather(source->context, offset, count, length, stride, to))
        return !source_verify(source) || refuse_changed(source, error);
    for (uint64_t i = 0; i < count; i++, to += length)
        if (!source_read(source, offset + i * stride, length, to, error))
            return false;
    return true;
}

/* Fails if the text begins like a Git LFS pointer. */
static bool check_fetched(const struct source *source, const void *text, size_t length, struct error *error)
{
    static const char beginning[] = GIT_LFS_BEGINNING;
    return length < sizeof beginning - 1 || memcmp(text, beginning, sizeof beginning - 1) != 0 ||
           error_set(error, "%s: %s", source->name, GIT_LFS_REFUSAL);
}

bool source_check_fetched(const struct source *source, struct error *error)
{
    char text[sizeof GIT_LFS_BEGINNING];
    size_t length = source->size < sizeof text ? (size_t)source->size : sizeof text;
    return source_read(source, 0, length, text, error) && check_fetched(source, text, length, error);
}

bool source_check_size(const struct source *source, size_t limit, struct error *error)
{
    return source->size <= limit || error_set(error, "%s: too large: %llu bytes, the limit is %zu", source->name,
                                              (unsigned long long)source->size, limit);
}

bool source_read_whole(const struct source *source, char *to, struct error *error)
{
    size_t length = (size_t)source->size;
    return source_read(source, 0, length, to, error) && check_fetched(source, to, length, error);
}

char *source_read_text(const struct source *source, size_t limit, size_t *ret_length, struct error *error)
{
    if (!source_check_size(source, limit, error))
        return NULL;
    size_t length = (size_t)source->size;
    char *text = memory_alloc(length + 1);
    if (!source_read_whole(source, text, error)) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *ret_length = length;
    return text;
}

const void *source_mapping(struct source *source, uint64_t offset, uint64_t length)
{
    if (source->ops->map == NULL || source_verify(source))
        return NULL;
    return source->ops->map(source->context, offset, length);
}

void source_want(const struct source *source, uint64_t offset, uint64_t length, bool urgent)
{
    if (source->ops->want == NULL || offset >= source->size)
        return;
    uint64_t left = source->size - offset;
    source->ops->want(source->context, offset, length < left ? length : left, urgent);
}

bool source_wait(const struct source *source, uint64_t offset, uint64_t length, struct error *error)
{
    return source->ops->wait == NULL ||
           count_unreached(source, source->ops->wait(source->context, offset, length, error), error);
}

bool source_server(const struct source *source, struct source_server *ret_server)
{
    if (source->ops->server != NULL)
        source->ops->server(source->context, ret_server);
    return source->ops->server != NULL;
}

bool source_confirm(const struct source *source, const char *sha256, bool seal, struct error *error)
{
    struct source_server server;
    if (!source_server(source, &server) || server.sha256 == NULL)
        return true;
    bool is_right = strcmp(server.sha256, sha256) == 0;
    if (is_right && seal)
        source->ops->seal(source->context);
    if (is_right)
        return true;
    error_set(error,
              "%s: the bytes that arrived have the SHA-256 %s, but the server states %s; they were removed from the "
              "cache, so try again",
              server.url, sha256, server.sha256);
    source->ops->discard(source->context, error);
    return false;
}

uint64_t source_cached(const struct source *source)
{
    return source->ops->cached != NULL ? source->ops->cached(source->context) : source->size;
}

bool source_is_remote(const struct source *source)
{
    return source->ops->wait != NULL;
}

bool source_any_remote(void)
{
    return atomic_load_explicit(&any_remote, memory_order_relaxed);
}

bool source_is_file(const struct source *source)
{
    return source->owns_state;
}

bool source_known_changed(const struct source *source)
{
    return atomic_load(&source->state->changed);
}

#if defined(CLOCK_MONOTONIC_COARSE)
enum { COARSE_CLOCK = CLOCK_MONOTONIC_COARSE };
#else
enum { COARSE_CLOCK = CLOCK_MONOTONIC };
#endif

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(COARSE_CLOCK, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static bool is_same(const struct source_identity *a, const struct source_identity *b)
{
    return has_same_key(a, b) && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
           a->mtime.tv_nsec == b->mtime.tv_nsec;
}

bool source_verify(const struct source *source)
{
    struct source_identity now;
    if (source->ops->identify != NULL) {
        atomic_store_explicit(&source->state->checked, milliseconds(), memory_order_relaxed);
        if (!source->ops->identify(source->context, &now) || !is_same(&now, &source->identity))
            source_mark_changed(source);
    }
    return source_known_changed(source);
}

bool source_changed(const struct source *source)
{
    int64_t checked = atomic_load_explicit(&source->state->checked, memory_order_relaxed);
    return source_known_changed(source) || (milliseconds() - checked > SOURCE_CHECK_MS && source_verify(source));
}

const char *source_change(const struct source *source, char out[SOURCE_CHANGE])
{
    struct source_identity now;
    *out = '\0';
    if (source->ops->identify != NULL && source->ops->identify(source->context, &now) &&
        now.size != source->identity.size)
        snprintf(out, SOURCE_CHANGE, ": it has %llu bytes, and had %llu", (unsigned long long)now.size,
                 (unsigned long long)source->identity.size);
    return out;
}

void source_mark_changed(const struct source *source)
{
    atomic_store(&source->state->changed, true);
}

int source_watch(const struct source *source, int inotify)
{
    int fd = source_descriptor(source);
    return fd >= 0 ? opener_watch(fd, inotify) : -1;
}

int source_descriptor(const struct source *source)
{
    return source->ops->descriptor != NULL ? source->ops->descriptor(source->context) : -1;
}

struct range {
    struct source *base;
    uint64_t offset;
};

static bool range_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct range *range = context;
    return source_read(range->base, range->offset + offset, length, out, error);
}

static void range_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    const struct range *range = context;
    source_want(range->base, range->offset + offset, length, urgent);
}

static bool range_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    const struct range *range = context;
    return source_wait(range->base, range->offset + offset, length, error);
}

static const void *range_map(void *context, uint64_t offset, uint64_t length)
{
    const struct range *range = context;
    return source_mapping(range->base, range->offset + offset, length);
}

static const struct source_ops range_ops = {.read = range_read, .release = free, .map = range_map, .want = range_want};
static const struct source_ops remote_range_ops = {
    .read = range_read, .release = free, .map = range_map, .want = range_want, .wait = range_wait};

struct source *source_range_new(struct source *base, const char *name, uint64_t offset, uint64_t size)
{
    struct range *range = memory_alloc(sizeof *range);
    *range = (struct range){base, offset};
    return source_new(base, name, size, source_is_remote(base) ? &remote_range_ops : &range_ops, range);
}
