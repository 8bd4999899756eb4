#include "sources/site.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/buffer.h"
#include "base/lock.h"
#include "base/text.h"
#include "sources/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_LIMIT = 64 << 20 /* bytes that site_recall() reads */ };

/* A site shared by the locations of its folders. An object is made when its file is first opened or wanted. */
struct shared {
    atomic_uint n_users;
    struct site *site;
    struct lock lock; /* of the objects */
    struct object **objects;
};

struct view {
    struct shared *shared;
    char *prefix; /* "" or the folder with a '/' after it */
};

static const struct location_ops site_ops;

struct site *site_new(const char *shown)
{
    struct arena *arena = arena_new();
    struct site *site = arena_alloc(arena, sizeof *site);
    *site = (struct site){.arena = arena, .shown = arena_strdup(arena, shown)};
    return site;
}

void site_free(struct site *site)
{
    free(site->files);
    arena_free(site->arena);
}

static bool has_controls(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return true;
    return false;
}

/* Accepts a path of names that can be names on disk and do not lead elsewhere. */
static bool is_good_path(const char *path)
{
    enum { LONGEST = 255 };
    for (;;) {
        size_t length = strcspn(path, "/");
        bool is_dots = length <= 2 && strncmp(path, "..", length) == 0;
        if (length == 0 || length > LONGEST || is_dots || text_valid_prefix(path, length) != length ||
            has_controls(path, length))
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}

bool site_add(struct site *site, const struct site_file *file)
{
    if (!is_good_path(file->path))
        return false;
    site->files = memory_grow(site->files, site->count, sizeof *site->files);
    site->files[site->count++] = *file;
    return true;
}

/* The saved list has a line for each file: etag, size, time, path. */

void site_remember(const struct site *site, const char *memo)
{
    struct buffer text = {0};
    for (size_t i = 0; i < site->count; i++) {
        const struct site_file *file = &site->files[i];
        if (file->origin.etag != NULL && strchr(file->origin.etag, '\t') == NULL)
            buffer_printf(&text, "%s\t%" PRIu64 "\t%" PRId64 "\t%s\n", file->origin.etag, file->origin.size,
                          (int64_t)file->modified.tv_sec, file->path);
    }
    store_save(memo, (const char *)text.bytes, text.length);
    buffer_free(&text);
}

static bool take_line(char *line, site_take *take, void *context)
{
    char *size = strchr(line, '\t'), *modified = size != NULL ? strchr(size + 1, '\t') : NULL;
    char *path = modified != NULL ? strchr(modified + 1, '\t') : NULL;
    if (path == NULL)
        return false;
    *size = *path = '\0';
    take(context, &(struct site_memory){path + 1, line, strtoull(size + 1, NULL, 10), strtoll(modified + 1, NULL, 10)});
    return true;
}

bool site_recall(const char *memo, struct arena *arena, site_take *take, void *context)
{
    size_t length;
    char *text = store_load(memo, MEMORY_LIMIT, arena, &length), *rest = NULL;
    if (text == NULL)
        return false;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (!take_line(line, take, context))
            return false;
    return true;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct site_file *)a)->path, ((const struct site_file *)b)->path);
}

/* Returns the index of the first file whose path is not before `path`. */
static size_t lower_bound(const struct site *site, const char *path)
{
    size_t from = 0, to = site->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(site->files[middle].path, path) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Returns memory that the caller frees. */
static char *join(const char *a, const char *b, const char *c)
{
    char *text = memory_alloc(strlen(a) + strlen(b) + strlen(c) + 1);
    strcpy(text, a);
    strcat(text, b);
    return strcat(text, c);
}

static bool has_folder(const struct site *site, const char *prefix)
{
    size_t index = lower_bound(site, prefix);
    return *prefix == '\0' || (index < site->count && text_starts_with(site->files[index].path, prefix));
}

static bool is_folder_too(const struct site *site, const char *path)
{
    char *prefix = join(path, "/", "");
    bool found = has_folder(site, prefix);
    free(prefix);
    return found;
}

/* Sorts the files. Keeps one file of each path, and drops files whose paths are folders, too. */
static void sort_files(struct site *site)
{
    size_t n = 0;
    if (site->count > 0)
        qsort(site->files, site->count, sizeof *site->files, compare_files);
    for (size_t i = 0; i < site->count; i++)
        if (n == 0 || strcmp(site->files[n - 1].path, site->files[i].path) != 0)
            site->files[n++] = site->files[i];
    site->count = n;
    n = 0;
    bool *is_dropped = arena_array(site->arena, site->count, sizeof *is_dropped);
    for (size_t i = 0; i < site->count; i++)
        is_dropped[i] = is_folder_too(site, site->files[i].path);
    for (size_t i = 0; i < site->count; i++)
        if (!is_dropped[i])
            site->files[n++] = site->files[i];
    site->count = n;
}

static struct location *view_new(struct shared *shared, char *prefix)
{
    struct view *view = memory_alloc(sizeof *view);
    *view = (struct view){shared, prefix};
    atomic_fetch_add(&shared->n_users, 1);
    return location_new(&site_ops, view);
}

static void leave(struct shared *shared)
{
    if (atomic_fetch_sub(&shared->n_users, 1) > 1)
        return;
    for (size_t i = 0; i < shared->site->count; i++)
        if (shared->objects[i] != NULL)
            object_free(shared->objects[i]);
    lock_destroy(&shared->lock);
    site_free(shared->site);
    free(shared->objects);
    free(shared);
}

static void site_close(void *context)
{
    struct view *view = context;
    leave(view->shared);
    free(view->prefix);
    free(view);
}

static struct object *object_of(struct shared *shared, size_t index)
{
    attempt_lock(&shared->lock);
    if (shared->objects[index] == NULL)
        shared->objects[index] = object_new(&shared->site->files[index].origin);
    struct object *object = shared->objects[index];
    attempt_unlock(&shared->lock);
    return object;
}

/* Returns the index of a file, or `count` if there is none. */
static size_t find_file(const struct view *view, const char *path)
{
    const struct site *site = view->shared->site;
    char *full = join(view->prefix, path, "");
    size_t index = lower_bound(site, full);
    bool found = index < site->count && strcmp(site->files[index].path, full) == 0;
    free(full);
    return found ? index : site->count;
}

static enum location_kind site_kind(const void *context, const char *path)
{
    const struct view *view = context;
    const struct site *site = view->shared->site;
    if (find_file(view, path) < site->count)
        return LOCATION_FILE;
    char *prefix = join(view->prefix, path, "/");
    bool found = has_folder(site, prefix);
    free(prefix);
    return found ? LOCATION_FOLDER : LOCATION_NOTHING;
}

static bool site_list(const void *context, const char *folder, struct location_listing *listing, struct error *error)
{
    const struct view *view = context;
    const struct site *site = view->shared->site;
    char *prefix = join(view->prefix, folder, *folder != '\0' ? "/" : ""), *before = memory_strdup("");
    size_t length = strlen(prefix);
    for (size_t i = lower_bound(site, prefix); i < site->count && text_starts_with(site->files[i].path, prefix); i++) {
        const char *rest = site->files[i].path + length, *slash = strchr(rest, '/');
        char *name = memory_strndup(rest, strcspn(rest, "/"));
        if (strcmp(name, before) != 0) /* a folder appears once */
            location_add(listing, name, slash != NULL ? LOCATION_FOLDER : LOCATION_FILE);
        free(before);
        before = name;
    }
    free(before);
    free(prefix);
    return true;
}

static bool site_identify(const void *context, const char *path, struct source_identity *ret_identity, bool *ret_inside)
{
    const struct view *view = context;
    const struct site *site = view->shared->site;
    size_t index = find_file(view, path);
    *ret_inside = true;
    if (index == site->count)
        return false;
    *ret_identity = source_remote_identity(&site->files[index].origin, site->files[index].modified);
    return true;
}

/* Opens the copy on this machine, if its size is right. */
static struct source *open_copy(const struct site_file *file, const char *name)
{
    struct error unused;
    struct source *source = file->copy != NULL ? local_open_file(file->copy, name, &unused) : NULL;
    if (source == NULL || source_size(source) == file->origin.size)
        return source;
    source_close(source);
    return NULL;
}

static struct source *site_open(const void *context, const char *path, const char *name, struct error *error)
{
    const struct view *view = context;
    const struct site *site = view->shared->site;
    size_t index = find_file(view, path);
    if (index == site->count) {
        error_set(error, "%s: no such file at %s", name, site->shown);
        error_set_code(error, ENOENT);
        return NULL;
    }
    const struct site_file *file = &site->files[index];
    struct source *copy = open_copy(file, name);
    if (copy != NULL)
        return copy;
    const struct source_identity identity = source_remote_identity(&file->origin, file->modified);
    const struct source_server server = {file->origin.name, site->commit, file->origin.sha256};
    return source_remote_new(object_share(object_of(view->shared, index)), &identity, &server, name);
}

static struct location *site_folder(const void *context, const char *folder, const char *name, struct error *error)
{
    const struct view *view = context;
    char *prefix = join(view->prefix, folder, "/");
    if (has_folder(view->shared->site, prefix))
        return view_new(view->shared, prefix);
    error_set(error, "%s: no such folder at %s", name, view->shared->site->shown);
    free(prefix);
    return NULL;
}

static const char *site_name(const void *context, bool *ret_is_repository)
{
    const struct view *view = context;
    *ret_is_repository = view->shared->site->repository != NULL;
    return view->shared->site->name;
}

static bool site_snapshot(const void *context, struct location_snapshot *ret_snapshot)
{
    const struct view *view = context;
    const struct site *site = view->shared->site;
    *ret_snapshot = (struct location_snapshot){site->repository, site->revision, site->commit, view->prefix};
    return site->repository != NULL;
}

static const char *site_blob(const void *context, const char *path)
{
    const struct view *view = context;
    size_t index = find_file(view, path);
    return index < view->shared->site->count ? view->shared->site->files[index].blob : NULL;
}

static const struct location_ops site_ops = {
    .close = site_close,
    .folder = site_folder,
    .list = site_list,
    .kind = site_kind,
    .identify = site_identify,
    .open = site_open,
    .name = site_name,
    .snapshot = site_snapshot,
    .blob = site_blob,
};

static bool has_ending(const char *path, const char *const *endings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_ends_with(path, endings[i]))
            return true;
    return false;
}

static bool is_weights(const char *path)
{
    static const char *const endings[] = {".safetensors", ".gguf", ".bin", ".pt", ".pth"};
    return has_ending(path, endings, sizeof endings / sizeof *endings);
}

bool site_is_read_first(const char *path)
{
    static const char *const others[] = {".json", ".model", ".txt", ".jinja", "README.md"};
    return is_weights(path) || has_ending(path, others, sizeof others / sizeof *others);
}

/* Starts fetching the first SITE_FIRST bytes of a file. */
static void want_beginning(struct shared *shared, size_t index)
{
    const struct site_file *file = &shared->site->files[index];
    uint64_t size = file->origin.size;
    if (file->copy == NULL)
        object_want(object_of(shared, index), 0, size < SITE_FIRST ? size : SITE_FIRST, true);
}

/* Starts fetching the beginnings of all files of a folder at once: one after the other would take a round trip each.
 * Weights come first, since redirects lead most of them to another host. */
static void want_folder(struct shared *shared, const char *prefix)
{
    const struct site *site = shared->site;
    size_t n_wanted = 0;
    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < site->count; i++) {
            const char *path = site->files[i].path;
            bool is_here = text_starts_with(path, prefix) && strchr(path + strlen(prefix), '/') == NULL;
            if (is_here && site_is_read_first(path) && is_weights(path) == (others == 0) && n_wanted++ < SITE_WANTED)
                want_beginning(shared, i);
        }
}

static struct shared *shared_new(struct site *site)
{
    struct shared *shared = memory_alloc(sizeof *shared);
    *shared = (struct shared){.n_users = 1, .site = site};
    lock_init(&shared->lock);
    shared->objects = memory_alloc(site->count * sizeof *shared->objects);
    for (size_t i = 0; i < site->count; i++)
        shared->objects[i] = NULL;
    return shared;
}

static bool check_sizes(const struct site *site, struct error *error)
{
    for (size_t i = 0; i < site->count; i++)
        if (site->files[i].origin.size > SITE_LARGEST)
            return error_set(error, "%s: the server states %" PRIu64 " bytes for %s; no file has more than 2^50",
                             site->shown, site->files[i].origin.size, site->files[i].path);
    return true;
}

struct location *site_location(struct site *site, const char *path, const char **ret_file, struct error *error)
{
    if (!check_sizes(site, error)) {
        site_free(site);
        return NULL;
    }
    sort_files(site);
    struct shared *shared = shared_new(site);
    struct location *location = NULL;
    size_t index = lower_bound(site, path);
    bool is_file = ret_file != NULL && index < site->count && strcmp(site->files[index].path, path) == 0;
    const char *slash = strrchr(path, '/');
    char *prefix = is_file ? memory_strndup(path, slash != NULL ? (size_t)(slash + 1 - path) : 0)
                           : join(path, *path != '\0' ? "/" : "", "");
    if (ret_file != NULL)
        *ret_file = is_file ? site->files[index].path + strlen(prefix) : NULL;
    if (is_file || has_folder(site, prefix)) {
        if (is_file)
            want_beginning(shared, index);
        else
            want_folder(shared, prefix);
        location = view_new(shared, prefix);
    } else {
        error_set(error, "%s: no file '%s'%s%s", site->shown, path, site->commit != NULL ? " at " : "",
                  site->commit != NULL ? site->commit : "");
        free(prefix);
    }
    leave(shared);
    return location;
}

/* Sources. */

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
