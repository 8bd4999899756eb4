#include "remote/store_directory.h"

#include "base/text.h"
#include "remote/sealed.h"
#include "remote/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct listing {
    struct arena *arena;
    struct stored_segment *items;
    size_t count;
    uint64_t bytes;
};

/* Calls `each` with the path of each entry of a directory that does not begin with a dot. */
static void each_entry(struct listing *listing, const char *directory,
                       void (*each)(struct listing *listing, const char *path))
{
    DIR *stream = opendir(directory);
    for (const struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.')
            each(listing, arena_printf(listing->arena, "%s/%s", directory, entry->d_name));
    if (stream != NULL)
        closedir(stream);
}

static const char *read_name(struct listing *listing, const char *object)
{
    char text[STORE_NAMES];
    int fd = open(arena_printf(listing->arena, "%s/name", object), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0)
        close(fd);
    return length > 0 ? arena_strndup(listing->arena, text, (size_t)length) : "";
}

/* Reports whether a file of an object has bytes of it: a segment, or a sealed file with its CRCs, perhaps unfinished.
 */
static bool has_bytes(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    return strspn(name, "0123456789") >= 6 || text_starts_with(name, SEALED_NAME);
}

static void add_file(struct listing *listing, const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    listing->items = memory_grow(listing->items, listing->count, sizeof *listing->items);
    struct stored_segment *segment = &listing->items[listing->count++];
    *segment =
        (struct stored_segment){.path = path, .bytes = (uint64_t)status.st_blocks * 512, .used = status.st_mtime};
    listing->bytes += segment->bytes;
}

static void add_segment(struct listing *listing, const char *path)
{
    if (has_bytes(path))
        add_file(listing, path);
}

static void add_object(struct listing *listing, const char *path)
{
    size_t first = listing->count;
    each_entry(listing, path, add_segment);
    const char *name = listing->count > first ? read_name(listing, path) : "";
    bool is_computed = text_starts_with(strrchr(path, '/') + 1, STORE_COMPUTED);
    for (size_t i = first; i < listing->count; i++) {
        listing->items[i].name = name;
        listing->items[i].is_computed = is_computed;
    }
}

/* Adds the file of records, which is computed, too. */
static void add_records(struct listing *listing, const char *path)
{
    size_t first = listing->count;
    add_file(listing, path);
    if (listing->count == first)
        return;
    listing->items[first].name = STORE_RECORDS;
    listing->items[first].is_computed = true;
    listing->count -= listing->items[first].bytes == 0;
}

static void add_objects(struct listing *listing, const char *path)
{
    each_entry(listing, path, add_object);
}

static int compare_used(const void *a, const void *b)
{
    const struct stored_segment *one = a, *other = b;
    return (one->used > other->used) - (one->used < other->used);
}

struct stored_segments evict_list(const char *directory, struct arena *arena)
{
    struct listing listing = {.arena = arena};
    each_entry(&listing, arena_printf(arena, "%s/objects", directory), add_objects);
    add_records(&listing, arena_printf(arena, "%s/" STORE_RECORDS, directory));
    if (listing.count > 0)
        qsort(listing.items, listing.count, sizeof *listing.items, compare_used);
    struct stored_segment *items = arena_copy(arena, listing.items, listing.count * sizeof *items);
    free(listing.items);
    return (struct stored_segments){items, listing.count, listing.bytes};
}

/* How many bytes too many the store has. */
static uint64_t excess(const char *directory, uint64_t bytes, uint64_t limit)
{
    const uint64_t least_free = UINT64_C(1) << 30;
    struct statvfs disk;
    if (limit != EVICT_DEFAULT)
        return bytes > limit ? bytes - limit : 0;
    if (statvfs(directory, &disk) != 0)
        return 0;
    uint64_t total = (uint64_t)disk.f_blocks * disk.f_frsize, available = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t wanted = total / 20 > least_free ? total / 20 : least_free;
    return available < wanted ? wanted - available : 0;
}

uint64_t evict(const char *directory, uint64_t limit)
{
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(directory, arena);
    uint64_t left = excess(directory, segments.bytes, limit), removed = 0;
    for (size_t i = 0; i < segments.count && removed < left; i++) {
        const struct stored_segment *segment = &segments.items[i];
        if (unlink(segment->path) == 0)
            removed += segment->bytes;
    }
    arena_free(arena);
    return removed;
}
