#include "remote/store.h"

#include "base/encodings.h"
#include "base/lock.h"
#include "base/report.h"
#include "remote/crc.h"
#include "remote/sealed.h"
#include "remote/sparse.h"
#include "remote/store_directory.h"
#include "remote/store_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    GRANULES = STORE_SEGMENT / STORE_GRANULE,
    PAGE = 4096,
    VERSION = 1,
    MAX_PATH = 4096,
};
#define PRESENT (UINT64_C(1) << 32) /* in a word, above the CRC-32 */

/* The last page of a segment, at the end of its data rounded up to pages. */
struct page {
    char magic[8];
    uint32_t version, granule;
    uint64_t number, size; /* of the segment; of the object */
    char key[STORE_KEY];
    char unused[PAGE - 8 - 8 - 16 - STORE_KEY - GRANULES * 8];
    uint64_t words[GRANULES];
};
_Static_assert(sizeof(struct page) == PAGE, "the page of a segment is one page");

/* A segment of an object, for this process. */
struct segment {
    atomic_int held;           /* its descriptor + 1; 0: not open */
    atomic_uint n_uses;        /* since it was opened */
    _Atomic uint64_t last_use; /* the value of n_steps then */
};

struct store_object {
    struct store_object *older; /* the list of all objects */
    char key[STORE_KEY];
    char *name;
    uint64_t size;
    bool is_computed;
    char sha256[SHA256_HEX + 1];     /* that its server states; "": none */
    _Atomic(struct sealed *) sealed; /* NULL: there is none */
    struct sparse segments;          /* struct segment */
    struct shared_lock in_use;       /* held for reading while a descriptor is used */
};

static atomic_int n_descriptors;
static _Atomic uint64_t n_steps; /* by which the store has grown (note_growth()) */
static struct lock objects_lock = LOCK_INITIALIZER;
static struct store_object *objects; /* the open ones; guarded by objects_lock */

/* The directory, or "" if there is none: then no path below it is used. */
static const char *root(void)
{
    const char *directory = store_directory();
    return directory != NULL ? directory : "";
}

static struct store_object *new_object(const char *key, uint64_t size, const char *name)
{
    struct store_object *object = memory_alloc(sizeof *object);
    *object = (struct store_object){.size = size};
    object->name = memory_strdup(name);
    snprintf(object->key, sizeof object->key, "%s", key);
    object->segments = sparse_new(size / STORE_SEGMENT + (size % STORE_SEGMENT != 0), sizeof(struct segment));
    shared_lock_init(&object->in_use);
    lock_take(&objects_lock);
    object->older = objects;
    objects = object;
    lock_drop(&objects_lock);
    return object;
}

static void object_path(const struct store_object *object, char path[MAX_PATH])
{
    const char *hash = strchr(object->key, '-') + 1;
    snprintf(path, MAX_PATH, "%s/objects/%.2s/%.79s", root(), hash, object->key);
}

/* Where the object's sealed file is: that of fetched bytes is shared by all objects with the same SHA-256. */
static void sealed_path(const struct store_object *object, char path[MAX_PATH])
{
    if (object->is_computed)
        object_path(object, path);
    else
        snprintf(path, MAX_PATH, "%s/objects/%.2s/sha256-%s", root(), object->sha256, object->sha256);
}

static bool has_line(const char *lines, const char *line)
{
    size_t length = strlen(line);
    for (const char *at = lines; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, line, length) == 0 && (at[length] == '\n' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Opens the file `name` of a directory; it may be new. */
static int open_names(const char *folder)
{
    char path[MAX_PATH + 8];
    snprintf(path, sizeof path, "%s/name", folder);
    return open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Adds the object's name to those that the file `name` of a directory has. What no longer fits is left out. */
static void add_name(const struct store_object *object, const char *folder)
{
    char names[STORE_NAMES + 1];
    int fd = open_names(folder);
    ssize_t length = fd >= 0 ? read(fd, names, STORE_NAMES) : -1;
    names[length > 0 ? length : 0] = '\0';
    size_t own = strlen(object->name);
    if (length >= 0 && (size_t)length + own < STORE_NAMES && !has_line(names, object->name))
        dprintf(fd, "%s%s", length > 0 ? "\n" : "", object->name);
    if (fd >= 0)
        close(fd);
}

static void open_sealed(struct store_object *object)
{
    char path[MAX_PATH];
    struct sealed *none = NULL, *sealed = NULL;
    if (store_is_usable() && (object->is_computed || object->sha256[0] != '\0')) {
        sealed_path(object, path);
        sealed = sealed_open(path, object->size);
    }
    if (sealed != NULL && !object->is_computed)
        add_name(object, path);
    if (!atomic_compare_exchange_strong(&object->sealed, &none, sealed))
        sealed_close(sealed);
}

struct store_object *store_open(const char *key, const char *sha256, uint64_t size, const char *name)
{
    struct store_object *object = new_object(key, size, name);
    snprintf(object->sha256, sizeof object->sha256, "%s", sha256 != NULL ? sha256 : "");
    open_sealed(object);
    return object;
}

struct store_object *store_open_computed(const char *key, uint64_t size, const char *name)
{
    struct store_object *object = new_object(key, size, name);
    object->is_computed = true;
    open_sealed(object);
    return object;
}

/* Returns the sealed file of an object; NULL: there is none, or it is damaged. */
static struct sealed *sealed_of(const struct store_object *object)
{
    struct sealed *sealed = atomic_load(&object->sealed);
    return sealed != NULL && !sealed_is_damaged(sealed) ? sealed : NULL;
}

int store_sealed_descriptor(const struct store_object *object)
{
    const struct sealed *sealed = sealed_of(object);
    return sealed != NULL ? sealed_descriptor(sealed) : -1;
}

int store_open_claims(const struct store_object *object)
{
    char folder[MAX_PATH];
    if (!store_is_usable() || sealed_of(object) != NULL)
        return -1;
    object_path(object, folder);
    return store_make_folder(folder) ? open_names(folder) : -1;
}

static void forget_object(struct store_object *object)
{
    lock_take(&objects_lock);
    struct store_object **at = &objects;
    while (*at != object)
        at = &(*at)->older;
    *at = object->older;
    lock_drop(&objects_lock);
}

/* Returns a segment that was used; the first from *number on, which is set to its number. NULL: there is none. */
static struct segment *next_segment(struct store_object *object, uint64_t *number)
{
    *number = sparse_next(&object->segments, *number);
    return *number < object->segments.count ? sparse_find(&object->segments, *number) : NULL;
}

static void close_segments(struct store_object *object)
{
    struct segment *segment;
    for (uint64_t i = 0; (segment = next_segment(object, &i)) != NULL; i++) {
        int held = atomic_exchange(&segment->held, 0);
        if (held > 0) {
            close(held - 1);
            atomic_fetch_sub(&n_descriptors, 1);
        }
    }
}

void store_close(struct store_object *object)
{
    forget_object(object);
    close_segments(object);
    store_memory_forget(object);
    sealed_close(atomic_load(&object->sealed));
    shared_lock_destroy(&object->in_use);
    sparse_free(&object->segments);
    free(object->name);
    free(object);
}

size_t store_granule_length(const struct store_object *object, uint64_t granule)
{
    uint64_t left = object->size - granule * STORE_GRANULE;
    return (size_t)(left < STORE_GRANULE ? left : STORE_GRANULE);
}

/* Where the page of a segment is: after its data. */
static uint64_t page_offset(const struct store_object *object, uint64_t segment)
{
    uint64_t left = object->size - segment * STORE_SEGMENT;
    return left < STORE_SEGMENT ? (left + PAGE - 1) / PAGE * PAGE : STORE_SEGMENT;
}

static struct page page_of(const struct store_object *object, uint64_t segment)
{
    struct page page = {.magic = "wfsblock", .version = VERSION, .granule = STORE_GRANULE, .number = segment};
    page.size = object->size;
    memcpy(page.key, object->key, sizeof page.key);
    return page;
}

/* Reports whether an open segment is what it should be: its size, and the head of its page. */
static bool is_whole(const struct store_object *object, uint64_t segment, int fd)
{
    struct stat status;
    const struct page wanted = page_of(object, segment);
    struct page found;
    uint64_t offset = page_offset(object, segment);
    size_t head = offsetof(struct page, words);
    return fstat(fd, &status) == 0 && (uint64_t)status.st_size == offset + PAGE &&
           pread(fd, &found, head, (off_t)offset) == (ssize_t)head && memcmp(&found, &wanted, head) == 0;
}

static void segment_path(const struct store_object *object, uint64_t segment, char path[MAX_PATH])
{
    object_path(object, path);
    size_t length = strlen(path);
    snprintf(path + length, MAX_PATH - length, "/%06llu", (unsigned long long)segment);
}

/* A descriptor of a segment, or -1. A damaged one is removed. */
static int open_segment(const struct store_object *object, uint64_t segment)
{
    char path[MAX_PATH];
    segment_path(object, segment, path);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (is_whole(object, segment, fd)) {
        futimens(fd, NULL); /* what was used last is evicted last */
        return fd;
    }
    close(fd);
    unlink(path);
    return -1;
}

/* Gives a file its name, unless another process has made one of that name meanwhile. */
static bool publish(const char *temporary, const char *path)
{
    if (link(temporary, path) != 0)
        return errno != EEXIST && rename(temporary, path) == 0;
    unlink(temporary);
    return true;
}

/* Makes a segment, under a name of its own first: nobody sees a part of its page. Returns -1 with errno set. */
static int make_segment(const struct store_object *object, uint64_t segment)
{
    char path[MAX_PATH], temporary[MAX_PATH + 16];
    const struct page page = page_of(object, segment);
    segment_path(object, segment, path);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = store_make_parents(path) ? mkostemp(temporary, O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    errno = ENOSPC; /* of a write that ends early */
    bool written = pwrite(fd, &page, PAGE, (off_t)page_offset(object, segment)) == PAGE;
    if (written && publish(temporary, path)) {
        *strrchr(path, '/') = '\0';
        add_name(object, path);
        return fd;
    }
    int reason = errno;
    unlink(temporary);
    close(fd);
    fd = written ? open_segment(object, segment) : -1;
    errno = reason;
    return fd;
}

/* Reports whether a segment may be closed if it was evicted. Fetched bytes are left to those who have waited for them,
 * until nobody has used the segment during a whole step. */
static bool may_drop(const struct store_object *object, const struct segment *segment)
{
    return atomic_load(&segment->held) > 0 &&
           (object->is_computed || atomic_load(&n_steps) - atomic_load(&segment->last_use) > 1);
}

/* Closes those of the segments [first, end) that were evicted, so that their space is free and new bytes go to new
 * ones. */
static void drop_evicted(struct store_object *object, uint64_t first, uint64_t end)
{
    struct stat status;
    struct segment *segment;
    while ((segment = next_segment(object, &first)) != NULL && first < end && !may_drop(object, segment))
        first++;
    if (segment == NULL || first >= end)
        return;
    shared_lock_write(&object->in_use);
    for (; (segment = next_segment(object, &first)) != NULL && first < end; first++) {
        int held = may_drop(object, segment) ? atomic_load(&segment->held) : 0;
        if (held > 0 && fstat(held - 1, &status) == 0 && status.st_nlink == 0) {
            atomic_store(&segment->held, 0);
            close(held - 1);
            atomic_fetch_sub(&n_descriptors, 1);
        }
    }
    shared_lock_drop(&object->in_use);
}

/* Notes a use of an open segment: what was used last is evicted last, by the file's time, which is not set each time.
 */
static void note_use(struct segment *segment, int fd)
{
    enum { USES_PER_TOUCH = 64 };
    atomic_store(&segment->last_use, atomic_load(&n_steps));
    if (atomic_fetch_add(&segment->n_uses, 1) % USES_PER_TOUCH == USES_PER_TOUCH - 1)
        futimens(fd, NULL);
}

/* Returns a descriptor of a segment, or -1; *ret_is_kept: the object keeps it open. Call give_back() in any case. */
static int take_segment(struct store_object *object, uint64_t number, bool make, bool *ret_is_kept)
{
    struct segment *segment = sparse_at(&object->segments, number); /* before the lock: memory may run out */
    shared_lock_read(&object->in_use);
    int none = 0, held = store_is_usable() ? atomic_load(&segment->held) : 0;
    *ret_is_kept = held > 0;
    if (held > 0)
        note_use(segment, held - 1);
    if (held > 0 || !store_is_usable())
        return held - 1;
    held = open_segment(object, number) + 1;
    if (held == 0 && make)
        held = make_segment(object, number) + 1;
    atomic_store(&segment->last_use, atomic_load(&n_steps));
    if (held == 0 || atomic_fetch_add(&n_descriptors, 1) >= STORE_DESCRIPTORS ||
        !atomic_compare_exchange_strong(&segment->held, &none, held)) {
        if (held != 0)
            atomic_fetch_sub(&n_descriptors, 1);
        return held - 1;
    }
    *ret_is_kept = true;
    return held - 1;
}

static void give_back(struct store_object *object, int fd, bool is_kept)
{
    if (fd >= 0 && !is_kept)
        close(fd);
    shared_lock_drop(&object->in_use);
}

static off_t word_offset(const struct store_object *object, uint64_t granule)
{
    return (off_t)(page_offset(object, granule / GRANULES) + offsetof(struct page, words) + granule % GRANULES * 8);
}

static off_t data_offset(uint64_t granule)
{
    return (off_t)(granule % GRANULES * STORE_GRANULE);
}

/* The word of a granule; 0: it is absent. */
static uint64_t read_word(struct store_object *object, uint64_t granule)
{
    bool is_kept;
    uint64_t word = 0;
    int fd = take_segment(object, granule / GRANULES, false, &is_kept);
    if (fd >= 0 && pread(fd, &word, sizeof word, word_offset(object, granule)) != sizeof word)
        word = 0;
    give_back(object, fd, is_kept);
    return word;
}

/* Reads a part of a granule, and its word from the same segment: another one may take its place at any time, in which
 * the granule is absent. */
static bool read_data(struct store_object *object, uint64_t granule, size_t offset, size_t length, void *out,
                      uint64_t *ret_word)
{
    bool is_kept;
    int fd = take_segment(object, granule / GRANULES, false, &is_kept);
    bool done = fd >= 0 && pread(fd, ret_word, sizeof *ret_word, word_offset(object, granule)) == sizeof *ret_word &&
                (*ret_word & PRESENT) != 0 &&
                pread(fd, out, length, data_offset(granule) + (off_t)offset) == (ssize_t)length;
    give_back(object, fd, is_kept);
    return done;
}

static uint64_t word_of(const void *bytes, size_t length)
{
    return PRESENT | crc_of(bytes, length);
}

bool store_has(struct store_object *object, uint64_t granule)
{
    return sealed_of(object) != NULL || store_memory_read(object, granule, 0, 0, NULL) ||
           (read_word(object, granule) & PRESENT) != 0;
}

bool store_verify(struct store_object *object, uint64_t granule)
{
    if (store_memory_read(object, granule, 0, 0, NULL))
        return true;
    if (sealed_of(object) == NULL && (read_word(object, granule) & PRESENT) == 0)
        return false;
    void *bytes = memory_alloc(store_granule_length(object, granule));
    bool good = store_take(object, granule, bytes);
    free(bytes);
    return good;
}

bool store_take(struct store_object *object, uint64_t granule, void *out)
{
    uint64_t word;
    size_t length = store_granule_length(object, granule);
    struct sealed *sealed = sealed_of(object);
    if (sealed != NULL && sealed_take(sealed, granule, length, out))
        return true;
    return read_data(object, granule, 0, length, out, &word) && word_of(out, length) == word;
}

bool store_read(struct store_object *object, uint64_t granule, size_t offset, size_t length, void *out)
{
    uint64_t unused;
    const struct sealed *sealed = sealed_of(object);
    if (sealed != NULL)
        return sealed_read(sealed, granule * STORE_GRANULE + offset, length, out);
    return store_memory_read(object, granule, offset, length, out) ||
           read_data(object, granule, offset, length, out, &unused);
}

/* Returns how many bytes of a granule must be written where no byte was before: a file without the pages of zeros at
 * its end has a hole there. */
static size_t without_zeros(const void *bytes, size_t length)
{
    enum { PAGE_BYTES = 4096 };
    static const unsigned char zeros[PAGE_BYTES];
    const unsigned char *at = bytes;
    while (length > 0) {
        size_t page = (length - 1) % PAGE_BYTES + 1;
        if (memcmp(at + length - page, zeros, page) != 0)
            break;
        length -= page;
    }
    return length;
}

static bool write_granule(struct store_object *object, uint64_t granule, const void *bytes, size_t length)
{
    bool is_kept;
    const uint64_t word = word_of(bytes, length), segment = granule / GRANULES;
    if (read_word(object, granule) == 0) /* else it was damaged, maybe in its zeros */
        length = without_zeros(bytes, length);
    drop_evicted(object, segment, segment + 1);
    int fd = take_segment(object, segment, true, &is_kept);
    if (fd >= 0)
        errno = ENOSPC; /* of a write that ends early */
    bool written = fd >= 0 && pwrite(fd, bytes, length, data_offset(granule)) == (ssize_t)length &&
                   pwrite(fd, &word, sizeof word, word_offset(object, granule)) == sizeof word;
    int reason = errno;
    give_back(object, fd, is_kept);
    errno = reason;
    return written;
}

/* Looks at each step by which the store grows whether it has grown too large. */
static void note_growth(size_t length)
{
    const uint64_t step = store_limit() / 8 < STORE_SEGMENT ? store_limit() / 8 : STORE_SEGMENT;
    static _Atomic uint64_t n_new;
    if (atomic_fetch_add(&n_new, length) + length < step)
        return;
    atomic_store(&n_new, 0);
    evict(store_directory(), store_limit());
    atomic_fetch_add(&n_steps, 1);
    lock_take(&objects_lock);
    for (struct store_object *object = objects; object != NULL; object = object->older)
        drop_evicted(object, 0, object->segments.count);
    lock_drop(&objects_lock);
}

/* Makes room on a disk that is full, once. */
static bool write_to_disk(struct store_object *object, uint64_t granule, const void *bytes, size_t length)
{
    if (!store_is_usable())
        return false;
    bool written = write_granule(object, granule, bytes, length);
    int reason = errno;
    if (!written && reason == ENOSPC && evict(store_directory(), store_limit()) > 0)
        written = write_granule(object, granule, bytes, length);
    if (written)
        note_growth(length);
    else
        store_tell(store_directory(), strerror(reason));
    return written;
}

void store_write(struct store_object *object, uint64_t granule, const void *bytes)
{
    size_t length = store_granule_length(object, granule);
    if (!write_to_disk(object, granule, bytes, length) && !object->is_computed)
        store_memory_write(object, granule, bytes, length);
}

/* Calls take() with the number of each segment on disk. A server may have stated a size of millions of segments. */
static void each_segment(struct store_object *object, void (*take)(void *context, uint64_t number), void *context)
{
    char path[MAX_PATH];
    object_path(object, path);
    DIR *folder = store_is_usable() ? opendir(path) : NULL;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char *end;
        uint64_t number = strtoull(entry->d_name, &end, 10);
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && *end == '\0' && number < object->segments.count)
            take(context, number);
    }
    if (folder != NULL)
        closedir(folder);
}

static void remove_segment(void *context, uint64_t number)
{
    char path[MAX_PATH];
    segment_path(context, number, path);
    unlink(path);
}

static void remove_segments(struct store_object *object)
{
    each_segment(object, remove_segment, object);
}

struct listing {
    struct store_object *object;
    void (*take)(void *context, uint64_t granule);
    void *context;
};

static void take_granules(const struct listing *listing, uint64_t first, uint64_t most)
{
    uint64_t n_granules = listing->object->size / STORE_GRANULE + (listing->object->size % STORE_GRANULE != 0);
    for (uint64_t granule = first; granule < n_granules && granule - first < most; granule++)
        if (store_has(listing->object, granule))
            listing->take(listing->context, granule);
}

static void list_segment(void *context, uint64_t number)
{
    take_granules(context, number * GRANULES, GRANULES);
}

void store_list(struct store_object *object, void (*take)(void *context, uint64_t granule), void *context)
{
    struct listing listing = {object, take, context};
    if (sealed_of(object) != NULL) /* which has as many bytes as were stated */
        take_granules(&listing, 0, UINT64_MAX);
    else
        each_segment(object, list_segment, &listing);
}

bool store_seal(struct store_object *object, store_fill *fill, void *context)
{
    char path[MAX_PATH];
    uint64_t n_granules = (object->size + STORE_GRANULE - 1) / STORE_GRANULE;
    if (!store_is_usable() || object->size > store_limit() / 2)
        return false;
    sealed_path(object, path);
    struct sealing *sealing = store_make_folder(path) ? sealing_begin(path) : NULL;
    if (sealing == NULL)
        return false;
    unsigned char *bytes = memory_alloc(STORE_GRANULE);
    bool filled = true;
    for (uint64_t granule = 0; filled && granule < n_granules; granule++) {
        size_t length = store_granule_length(object, granule);
        filled = fill(context, granule, bytes) && sealing_add(sealing, bytes, length);
        if (filled)
            note_growth(length);
    }
    free(bytes);
    bool sealed = sealing_end(sealing, filled);
    if (sealed) {
        add_name(object, path);
        if (!object->is_computed)
            open_sealed(object);
        remove_segments(object);
    }
    return sealed;
}

void store_discard(struct store_object *object)
{
    struct sealed *sealed = sealed_of(object);
    if (sealed != NULL)
        sealed_remove(sealed);
    if (store_is_usable())
        remove_segments(object);
    shared_lock_write(&object->in_use);
    close_segments(object); /* their bytes are read no more */
    shared_lock_drop(&object->in_use);
    store_memory_forget(object);
}

static bool text_path(const char *name, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%s/texts/%.120s", root(), name);
    return store_make_parents(path);
}

void store_save(const char *name, const char *text, size_t length)
{
    char path[MAX_PATH], temporary[MAX_PATH + 16];
    if (!store_is_usable() || !text_path(name, path))
        return;
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return;
    bool written = write(fd, text, length) == (ssize_t)length;
    if (close(fd) != 0 || !written || rename(temporary, path) != 0)
        unlink(temporary);
}

char *store_load(const char *name, size_t limit, struct arena *arena, size_t *ret_length)
{
    char path[MAX_PATH];
    struct stat status;
    int fd = store_is_usable() && text_path(name, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size <= limit) {
        *ret_length = (size_t)status.st_size;
        text = arena_alloc(arena, *ret_length + 1);
        if (read(fd, text, *ret_length) != (ssize_t)*ret_length)
            text = NULL;
    }
    if (fd >= 0)
        close(fd);
    return text;
}
