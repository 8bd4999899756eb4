#include "remote/store.h"

#include "remote/options.h"
#include "remote/store_directory.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define KEY      "url-ab00000000000000000000000000000000000000000000000000000000000000"
#define COMPUTED STORE_COMPUTED "cd00"
#define SEGMENT  "cache/objects/ab/" KEY "/000000"
#define SEALED   "cache/objects/cd/" COMPUTED "/sealed"

static const uint64_t size = STORE_SEGMENT + 2 * STORE_GRANULE + 5000; /* two segments, the last granule is short */
static const uint64_t n_granules = STORE_SEGMENT / STORE_GRANULE + 3;
static unsigned char expected[STORE_GRANULE], found[STORE_GRANULE];

/* The bytes of a granule: others for each. */
static const unsigned char *bytes_of(uint64_t granule)
{
    uint64_t state = granule * 2 + 1;
    for (size_t i = 0; i < sizeof expected; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        expected[i] = (unsigned char)(state >> 56);
    }
    return expected;
}

static bool is_right(struct store_object *object, uint64_t granule)
{
    size_t length = store_granule_length(object, granule);
    return store_verify(object, granule) && store_read(object, granule, 0, length, found) &&
           memcmp(found, bytes_of(granule), length) == 0;
}

static void written_and_read(void)
{
    struct store_object *object = store_open(KEY, NULL, size, "https://host/model/file");
    struct stat status;
    CHECK(!store_has(object, 0) && !store_verify(object, 0) && !store_read(object, 0, 0, 1, found));
    for (uint64_t granule = 0; granule < n_granules; granule += 2)
        store_write(object, granule, bytes_of(granule));
    bool good = true;
    for (uint64_t granule = 0; granule < n_granules; granule++)
        good &= store_has(object, granule) == (granule % 2 == 0) && is_right(object, granule) == (granule % 2 == 0);
    CHECK_NAMED(good, "what was written is there, and nothing else");
    CHECK(store_granule_length(object, n_granules - 1) == 5000);
    CHECK(store_read(object, 2, 1000, 10, found) && memcmp(found, bytes_of(2) + 1000, 10) == 0);
    store_close(object);
    object = store_open(KEY, NULL, size, "https://host/model/file");
    CHECK_NAMED(is_right(object, n_granules - 1) && is_right(object, 0), "it is there after the object was closed");
    store_close(object);
    CHECK(stat("cache", &status) == 0 && (status.st_mode & 0777) == 0700);
    CHECK(access("cache/CACHEDIR.TAG", F_OK) == 0);
    CHECK_NAMED(stat(SEGMENT, &status) == 0 && (uint64_t)status.st_size == STORE_SEGMENT + 4096, "data and a page");
    CHECK_NAMED((uint64_t)status.st_blocks * 512 < STORE_SEGMENT / 2 + STORE_GRANULE * 2,
                "what is absent takes no space");
}

/* Changes one byte of the first segment. */
static void damage(off_t offset)
{
    unsigned char byte = 0;
    int fd = open(SEGMENT, O_RDWR);
    files_must(fd >= 0 && pread(fd, &byte, 1, offset) == 1, SEGMENT);
    byte ^= 0x10;
    files_must(pwrite(fd, &byte, 1, offset) == 1 && close(fd) == 0, SEGMENT);
}

static void damaged(void)
{
    struct store_object *object = store_open(KEY, NULL, size, "https://host/model/file");
    damage(7);
    CHECK_NAMED(store_has(object, 0) && !store_verify(object, 0), "bytes that are not those of the CRC");
    store_write(object, 0, bytes_of(0));
    CHECK(is_right(object, 0));
    damage(STORE_SEGMENT + 2048); /* the CRC of the first word */
    CHECK_NAMED(!store_verify(object, 0) && is_right(object, 2), "a torn word");
    files_must(truncate(SEGMENT, 3 * STORE_GRANULE) == 0, SEGMENT);
    CHECK_NAMED(!store_verify(object, 2) && !store_read(object, 4, 0, 1, found), "a segment cut while it is open");
    store_close(object);
    object = store_open(KEY, NULL, size, "https://host/model/file");
    CHECK_NAMED(!store_has(object, 2), "a segment that was cut");
    store_write(object, 2, bytes_of(2));
    CHECK_NAMED(is_right(object, 2), "and is replaced");
    store_close(object);
    damage(STORE_SEGMENT + 40); /* the key */
    object = store_open(KEY, NULL, size, "https://host/model/file");
    CHECK_NAMED(!store_has(object, 2), "a segment of another object");
    store_write(object, 2, bytes_of(2));
    files_must(unlink(SEGMENT) == 0, SEGMENT);
    CHECK_NAMED(is_right(object, 2), "a segment that was evicted while it is open");
    store_close(object);
    object = store_open(KEY, NULL, size + 1, "https://host/model/file");
    CHECK_NAMED(!store_has(object, n_granules - 1), "an object of another size");
    store_close(object);
}

/* Writes granule after granule, and says so, until it is killed. */
static _Noreturn void write_for_ever(int said)
{
    struct store_object *object = store_open(KEY, NULL, size, "https://host/model/file");
    for (uint64_t granule = 0;; granule = (granule + 1) % n_granules) {
        store_write(object, granule, bytes_of(granule));
        if (write(said, &granule, sizeof granule) != sizeof granule)
            _exit(1);
    }
}

static void killed(void)
{
    enum { ROUNDS = 20 };
    bool kept = true, right = true;
    for (int round = 0; round < ROUNDS; round++) {
        int ends[2];
        uint64_t granule = 0;
        unlink(SEGMENT);
        files_must(pipe(ends) == 0, "pipe");
        fflush(stdout);
        pid_t writer = fork();
        if (writer == 0)
            write_for_ever(ends[1]);
        close(ends[1]);
        for (int i = 0; i <= round; i++)
            files_must(read(ends[0], &granule, sizeof granule) == sizeof granule, "the writer");
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
        close(ends[0]);
        struct store_object *object = store_open(KEY, NULL, size, "https://host/model/file");
        for (uint64_t i = 0; i <= granule; i++)
            kept &= is_right(object, i);
        for (uint64_t i = granule; i < n_granules; i++)
            right &= !store_verify(object, i) || is_right(object, i);
        store_close(object);
    }
    CHECK_NAMED(kept, "what was written before the writer was killed is there");
    CHECK_NAMED(right, "nothing is there that was not written");
}

/* Writes an object of one granule, and makes it used `age` seconds ago. */
static void write_aged(const char *digits, long age)
{
    char key[STORE_KEY], path[200];
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    snprintf(key, sizeof key, "sha256-%s", digits);
    struct store_object *object = store_open(key, NULL, STORE_GRANULE, digits);
    store_write(object, 0, bytes_of(0));
    store_close(object);
    snprintf(path, sizeof path, "cache/objects/%.2s/%s/000000", digits, key);
    files_must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

static void evicted(void)
{
    struct arena *arena = arena_new();
    evict("cache", 0);
    CHECK(evict_list("cache", arena).count == 0);
    write_aged("aa01", 300);
    write_aged("ab02", 100);
    write_aged("ac03", 200);
    struct stored_segments segments = evict_list("cache", arena);
    CHECK(segments.count == 3 && segments.bytes >= 3 * STORE_GRANULE);
    CHECK_TEXT(segments.items[0].name, "aa01");
    CHECK_TEXT(segments.items[2].name, "ab02");
    CHECK_NAMED(evict("cache", segments.bytes) == 0, "what fits stays");
    CHECK_NAMED(evict("cache", segments.bytes - 1) == segments.items[0].bytes, "one is enough");
    segments = evict_list("cache", arena);
    CHECK(segments.count == 2);
    CHECK_TEXT(segments.items[0].name, "ac03");
    arena_free(arena);
}

static void computed(void)
{
    struct arena *arena = arena_new();
    evict("cache", 0);
    struct store_object *object = store_open_computed(COMPUTED, size, "/model/file");
    CHECK(!store_take(object, 1, found));
    store_write(object, 1, bytes_of(1));
    CHECK(store_take(object, 1, found) && memcmp(found, bytes_of(1), sizeof found) == 0);
    write_aged("aa01", 300);
    const struct stored_segments segments = evict_list("cache", arena);
    CHECK(segments.count == 2 && !segments.items[0].is_computed && segments.items[1].is_computed);
    CHECK_TEXT(segments.items[1].name, "/model/file");
    evict("cache", 0);
    store_write(object, 2, bytes_of(2));
    CHECK_NAMED(!store_read(object, 1, 0, 1, found), "nor is what it had read from the one in its place");
    store_close(object);
    object = store_open_computed(COMPUTED, size, "/model/file");
    CHECK_NAMED(store_take(object, 2, found) && !store_has(object, 1), "an evicted segment takes no new bytes");
    store_close(object);
    arena_free(arena);
}

/* Gives the bytes of an object, until `*left` granules have been given. */
static bool give(void *left, uint64_t granule, void *out)
{
    memcpy(out, bytes_of(granule), STORE_GRANULE);
    return (*(int *)left)-- > 0;
}

static size_t count_files(void)
{
    struct arena *arena = arena_new();
    size_t count = evict_list("cache", arena).count;
    arena_free(arena);
    return count;
}

/* Compares the sealed file itself with the object's bytes. */
static bool is_whole(int fd)
{
    struct stat status;
    bool right = fstat(fd, &status) == 0 && (uint64_t)status.st_size == size;
    for (uint64_t granule = 0; right && granule < n_granules; granule++) {
        size_t length = granule + 1 < n_granules ? STORE_GRANULE : 5000;
        right = pread(fd, found, length, (off_t)(granule * STORE_GRANULE)) == (ssize_t)length &&
                memcmp(found, bytes_of(granule), length) == 0;
    }
    return right;
}

static void sealed(void)
{
    int few = 3, all = INT_MAX;
    evict("cache", 0);
    struct store_object *object = store_open_computed(COMPUTED, size, "/model/file");
    store_write(object, 1, bytes_of(1));
    CHECK_NAMED(!store_seal(object, give, &few) && count_files() == 1, "what ends early leaves nothing");
    CHECK_NAMED(store_seal(object, give, &all), "an object is sealed");
    CHECK_NAMED(store_sealed_descriptor(object) < 0 && is_right(object, 1), "those who have it open read on");
    store_close(object);
    CHECK_NAMED(count_files() == 2, "the file and its CRCs take the place of the segments");
    object = store_open_computed(COMPUTED, size, "/model/file");
    CHECK_NAMED(is_whole(store_sealed_descriptor(object)), "the file has the object's bytes and no others");
    bool right = true;
    for (uint64_t granule = 0; granule < n_granules; granule++)
        right &= store_has(object, granule) && is_right(object, granule);
    CHECK_NAMED(right, "each granule is there");
    store_close(object);
    object = store_open_computed(COMPUTED, size - 1, "/model/file");
    CHECK_NAMED(store_sealed_descriptor(object) < 0, "an object of another size");
    store_close(object);
}

static void sealed_and_damaged(void)
{
    const unsigned char other = (unsigned char)~bytes_of(2)[9];
    struct store_object *object = store_open_computed(COMPUTED, size, "/model/file");
    CHECK(is_right(object, 2));
    int fd = open(SEALED, O_WRONLY);
    files_must(pwrite(fd, &other, 1, 2 * STORE_GRANULE + 9) == 1 && close(fd) == 0, SEALED);
    CHECK_NAMED(!store_take(object, 2, found) && access(SEALED, F_OK) != 0, "a damaged file is removed");
    CHECK_NAMED(store_sealed_descriptor(object) < 0 && !store_has(object, 3), "and nothing is read from it");
    store_write(object, 2, bytes_of(2));
    CHECK_NAMED(is_right(object, 2), "granules are kept in segments again");
    store_close(object);
    evict("cache", 0);
    CHECK_NAMED(count_files() == 0, "its CRCs are evicted");
}

#define SHA256 "ab11111111111111111111111111111111111111111111111111111111111111"

/* A hub's object, and one of another hub that states the same SHA-256. */
static void sealed_for_all_servers(void)
{
    int few = 3, all = INT_MAX;
    struct stat status;
    evict("cache", 0);
    struct store_object *one = store_open(KEY, SHA256, size, "hf://one/model");
    store_write(one, 1, bytes_of(1));
    struct store_object *other = store_open("url-ac00", SHA256, size, "hf://other/model");
    CHECK_NAMED(!store_has(other, 1), "what a server states gives it no bytes of another");
    CHECK_NAMED(!store_seal(one, give, &few) && !store_has(one, 2), "bytes that are not what was stated stay apart");
    CHECK_NAMED(store_seal(one, give, &all) && is_right(one, 2) && is_right(one, 1), "what was compared is sealed");
    CHECK_NAMED(!store_has(other, 2), "an object that was open before goes on");
    store_close(other);
    other = store_open("url-ac00", SHA256, size, "hf://other/model");
    CHECK_NAMED(is_right(other, 2) && is_whole(store_sealed_descriptor(other)), "and another server's has its bytes");
    store_close(store_open("url-ac00", SHA256, size, "hf://other/model"));
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list("cache", arena);
    CHECK(segments.count == 2 && !segments.items[0].is_computed);
    CHECK_TEXT(segments.items[0].name, "hf://one/model\nhf://other/model");
    arena_free(arena);
    store_discard(other);
    CHECK_NAMED(!store_has(other, 2) && stat("cache/objects/ab/sha256-" SHA256 "/sealed", &status) != 0,
                "discarded bytes are gone");
    store_write(other, 2, bytes_of(2));
    CHECK(is_right(other, 2));
    store_discard(other);
    CHECK_NAMED(!store_has(other, 2) && !store_read(other, 2, 0, 1, found), "and an object's own");
    store_close(one);
    store_close(other);
}

static void texts(void)
{
    size_t length = 0;
    struct arena *arena = arena_new();
    CHECK(store_load("list", 100, arena, &length) == NULL);
    store_save("list", "one", 3);
    store_save("list", "three", 5);
    CHECK_TEXT(store_load("list", 100, arena, &length), "three");
    CHECK(length == 5);
    CHECK_NAMED(store_load("list", 4, arena, &length) == NULL, "above the limit");
    arena_free(arena);
}

/* In a process of its own, which has another cache: a disk that is full after `limit` bytes of one file. */
static void full_disk(const char *cache, rlim_t limit, const char *name)
{
    fflush(stdout); /* a child under the thread sanitizer prints at _exit() what is buffered */
    pid_t child = fork();
    if (child == 0) {
        static struct remote_options options;
        const struct rlimit full = {limit, limit};
        options.cache = cache;
        remote_use(&options);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &full);
        struct store_object *object = store_open(KEY, NULL, size, "https://host/model/file");
        bool good = true;
        for (uint64_t granule = 0; granule < 3; granule++)
            store_write(object, granule, bytes_of(granule));
        for (uint64_t granule = 0; granule < 3; granule++)
            good &= store_has(object, granule) && is_right(object, granule);
        store_close(object);
        object = store_open_computed(COMPUTED, size, "/model/file");
        store_write(object, 0, bytes_of(0));
        good &= !store_has(object, 0) && !store_take(object, 0, found);
        store_close(object);
        _exit(!good);
    }
    int status;
    CHECK_NAMED(waitpid(child, &status, 0) == child && status == 0, name);
}

/* Makes the store grow by as many bytes as it takes until it looks for what to evict, again and again in one granule.
 */
static void grow_by_a_step(void)
{
    struct store_object *object = store_open("url-ef00", NULL, size, "https://host/model/another");
    for (uint64_t n_bytes = 0; n_bytes < STORE_SEGMENT; n_bytes += STORE_GRANULE)
        store_write(object, 0, bytes_of(0));
    store_close(object);
}

/* An evicted segment is read on while it is used, and its space is free when it no longer is. */
static void evicted_while_open(void)
{
    struct store_object *used = store_open("url-ab03", NULL, size, "https://host/model/used");
    struct store_object *unused = store_open("url-ab04", NULL, size, "https://host/model/unused");
    store_write(used, 0, bytes_of(0));
    store_write(unused, 0, bytes_of(0));
    evict("cache", 0);
    for (int i = 0; i < 4; i++) {
        CHECK(is_right(used, 0));
        grow_by_a_step();
    }
    CHECK_NAMED(is_right(used, 0), "who reads an evicted segment reads on");
    CHECK_NAMED(!store_has(unused, 0), "one that nobody reads is closed");
    store_close(used);
    store_close(unused);
}

/* Reading counts as a use, not only opening. */
static void read_counts(void)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct stat status;
    struct store_object *object = store_open(KEY, NULL, size, "https://host/model/file");
    store_write(object, 0, bytes_of(0));
    CHECK(utimensat(AT_FDCWD, SEGMENT, old, 0) == 0);
    for (int i = 0; i < 64; i++)
        CHECK(store_read(object, 0, 0, 1, found));
    CHECK(stat(SEGMENT, &status) == 0 && status.st_mtim.tv_sec > 1);
    store_close(object);
}

int main(void)
{
    char cache[1024];
    /* By default, the store evicts what is being written where less than 5 % of the disk is free. */
    struct remote_options options = {.cache = cache, .cache_size = {.is_set = true, .bytes = UINT64_C(1) << 40}};
    files_begin();
    files_write_text("file", "");
    files_must(getcwd(cache, sizeof cache - 100) != NULL, "getcwd");
    strcat(cache, "/cache");
    full_disk("/proc/none", RLIM_INFINITY, "memory keeps fetched bytes if the directory cannot be made");
    full_disk(strcat(cache, "-full"), 4096, "memory keeps fetched bytes if the disk is full");
    *strrchr(cache, '-') = '\0';
    remote_use(&options);
    written_and_read();
    damaged();
    killed();
    evicted();
    evicted_while_open();
    read_counts();
    computed();
    sealed();
    sealed_and_damaged();
    sealed_for_all_servers();
    texts();
    files_remove();
    return check_done();
}
