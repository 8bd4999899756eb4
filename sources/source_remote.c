#include "sources/site.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct remote_file {
    struct object *object;
    struct arena *arena; /* of the texts */
    const char *name;
    struct source_server server;
};

static void remote_want(void *context, uint64_t offset, uint64_t length, bool is_urgent)
{
    object_want(((struct remote_file *)context)->object, offset, length, is_urgent);
}

static bool remote_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    const struct remote_file *file = context;
    return object_wait(file->object, offset, length, error) || error_prefix(error, "%s", file->name);
}

static bool remote_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct remote_file *file = context;
    return object_read(file->object, offset, length, out, error) || error_prefix(error, "%s", file->name);
}

static void remote_server(void *context, struct source_server *ret_server)
{
    *ret_server = ((const struct remote_file *)context)->server;
}

static uint64_t remote_cached(void *context)
{
    return object_cached(((const struct remote_file *)context)->object);
}

static void remote_seal(void *context)
{
    object_seal(((const struct remote_file *)context)->object);
}

static void remote_discard(void *context, const struct error *reason)
{
    object_discard(((const struct remote_file *)context)->object, reason);
}

static void remote_release(void *context)
{
    struct remote_file *file = context;
    object_free(file->object);
    arena_free(file->arena);
    free(file);
}

struct source_identity source_remote_identity(const struct object_origin *origin, struct timespec modified)
{
    enum { MODE = 0444, WORD_DIGITS = 16 };
    struct source_identity identity = {.size = origin->size, .mtime = modified, .permissions = MODE, .group = getgid()};
    const char *hash = strchr(origin->key, '-') + 1;
    for (int i = 0; i < 2; i++) {
        char digits[WORD_DIGITS + 1];
        snprintf(digits, sizeof digits, "%.16s", hash + i * WORD_DIGITS);
        identity.key[i] = strtoull(digits, NULL, 16);
    }
    return identity;
}

struct source *source_remote_new(struct object *object, const struct source_identity *identity,
                                 const struct source_server *server, const char *name)
{
    static const struct source_ops ops = {.read = remote_read,
                                          .release = remote_release,
                                          .want = remote_want,
                                          .wait = remote_wait,
                                          .server = remote_server,
                                          .cached = remote_cached,
                                          .seal = remote_seal,
                                          .discard = remote_discard};
    struct remote_file *file = memory_alloc(sizeof *file);
    struct arena *arena = arena_new_shared();
    *file = (struct remote_file){object, arena, arena_strdup(arena, name)};
    file->server.url = arena_strdup(arena, server->url);
    if (server->revision != NULL)
        file->server.revision = arena_strdup(arena, server->revision);
    if (server->sha256 != NULL)
        file->server.sha256 = arena_strdup(arena, server->sha256);
    return source_new_file(identity, name, &ops, file);
}
