/* Any bytes as the directory of a zip archive.
 *
 * Holds for what is accepted: members lie in the file side by side, are found by their names, what is deflated is
 * inflated to its size or is an error, and again after the cache dropped it, and libzip, the second reader, reads the
 * same bytes or refuses them as well.
 * Most changed inputs get the places of their headers again. */
#include "formats/zip/deflate_index.h"
#include "sources/chunk_cache.h"

#include "tests/fuzz/fuzz.h"

enum { MAX_INFLATED = 1 << 20 };

static int compare_offsets(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a, *y = *(const struct zip_member *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void check_members(const struct zip_directory *directory, uint64_t size, struct arena *arena)
{
    const struct zip_member **order = arena_array(arena, directory->n_members, sizeof *order);
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = order[i] = &directory->members[i];
        require(member->offset <= size && member->compressed_size <= size - member->offset);
        require(zip_directory_find(directory, member->name, member->name_length) == member);
    }
    if (directory->n_members > 0)
        qsort(order, directory->n_members, sizeof *order, compare_offsets);
    for (size_t i = 1; i < directory->n_members; i++)
        require(order[i - 1]->offset + order[i - 1]->compressed_size <= order[i]->header);
}

/* libzip inflates what the index inflates. It tolerates bytes after the end of deflated data, which the index does not,
 * so it may read what the index refuses. The index does not look at the data of empty members, libzip does. */
static void compare_readers(const struct zip_directory *directory, const struct zip_member *member,
                            const unsigned char *bytes)
{
    struct error error = {""};
    char *other = zip_member_read(directory, member, MAX_INFLATED, &error);
    if (other == NULL)
        require_one_line(&error);
    require(bytes == NULL || member->size == 0 || (other != NULL && memcmp(other, bytes, (size_t)member->size) == 0));
    free(other);
}

static void add_up(void *context, uint64_t n_bytes)
{
    *(uint64_t *)context += n_bytes;
}

/* A member that is checked is read to its end, and one that is too large is not read. */
static void check_stored(const struct zip_directory *directory)
{
    struct error error = {""};
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        uint64_t n_checked = 0;
        if (member->size > 0)
            require(zip_member_read(directory, member, (size_t)member->size - 1, &error) == NULL);
        if (member->method != ZIP_STORED)
            continue;
        if (zip_member_check(directory, member, add_up, &n_checked, &error))
            require(n_checked == member->size);
        else
            require_one_line(&error);
    }
}

static void drop_cached(void)
{
    chunk_give_up(chunk_reserve(CHUNK_CACHE_BYTES));
}

/* Inflated bytes are the same again, from the middle of a member on. */
static void inflate_again(struct source *inflated, const struct zip_member *member, const unsigned char *bytes)
{
    struct error error;
    size_t from = (size_t)member->size / 2, length = (size_t)member->size - from;
    unsigned char *again = malloc(length + 1);
    source_want(inflated, member->inflated + from, length, true);
    require(source_wait(inflated, member->inflated + from, length, &error) &&
            source_read(inflated, member->inflated + from, length, again, &error) &&
            memcmp(again, bytes + from, length) == 0);
    free(again);
}

static void inflate_members(const struct zip_directory *directory, bool drops)
{
    struct error error;
    struct source *inflated = inflated_source_new(directory);
    for (size_t i = 0; inflated != NULL && i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        if (member->method != ZIP_DEFLATED || member->size > MAX_INFLATED)
            continue;
        unsigned char *bytes = malloc((size_t)member->size + 1);
        bool read = source_read(inflated, member->inflated, (size_t)member->size, bytes, &error);
        if (!read)
            require_one_line(&error);
        compare_readers(directory, member, read ? bytes : NULL);
        if (drops)
            drop_cached();
        if (read && member->size > 0)
            inflate_again(inflated, member, bytes);
        free(bytes);
    }
    source_close(inflated);
}

/* A file on a server, which sends what is asked for until it fails. */
struct server {
    struct source *file;
    size_t n_left; /* reads before the first that fails */
};

static bool read_served(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct server *server = context;
    if (server->n_left == 0)
        return error_set(error, "input.zip: cut off");
    server->n_left--;
    return source_read(server->file, offset, length, out, error);
}

static bool wait_for_server(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    const struct server *server = context;
    require(offset <= source_size(server->file) && length <= source_size(server->file) - offset);
    return server->n_left > 0 || error_set(error, "input.zip: cut off");
}

static void release_nothing(void *server)
{
    (void)server;
}

static struct source *served_source(struct server *server)
{
    static const struct source_ops ops = {.read = read_served, .release = release_nothing, .wait = wait_for_server};
    return source_new(server->file, "input.zip", source_size(server->file), &ops, server);
}

static void try_member(const struct zip_directory *directory, const struct zip_member *member, struct source *inflated)
{
    struct error error = {""};
    unsigned char byte;
    char *bytes = zip_member_read(directory, member, MAX_INFLATED, &error);
    if (bytes == NULL)
        require_one_line(&error);
    free(bytes);
    if (!zip_member_check(directory, member, NULL, NULL, &error))
        require_one_line(&error);
    if (inflated != NULL && member->method == ZIP_DEFLATED && member->size > 0 &&
        !(source_wait(inflated, member->inflated, 1, &error) &&
          source_read(inflated, member->inflated, 1, &byte, &error)))
        require_one_line(&error);
}

/* Whichever read fails, what follows from it is refused. */
static void fail_reads(struct source *file)
{
    enum { MOST_READS = 40, MOST_MEMBERS = 4 };
    bool has_failed = true;
    for (size_t n = 0; has_failed && n < MOST_READS; n++) {
        struct error error = {""};
        struct zip_directory directory;
        struct server server = {file, n};
        struct source *source = served_source(&server);
        struct arena *arena = arena_new();
        if (zip_directory_read(&directory, source, arena, &error)) {
            struct source *inflated = inflated_source_new(&directory);
            for (size_t i = 0; i < directory.n_members && i < MOST_MEMBERS; i++)
                try_member(&directory, &directory.members[i], inflated);
            source_close(inflated);
        } else {
            require_one_line(&error);
        }
        has_failed = server.n_left == 0;
        source_close(source);
        arena_free(arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { WAYS = 8, DROPS = 0, REMOTE = 1, FAILS = 2 }; /* one input of so many: some ways are slow */
    struct error error = {""};
    struct zip_directory directory;
    struct arena *arena = arena_new();
    struct source *file = source_of_bytes(data, size, "input.zip");
    struct server server = {file, SIZE_MAX};
    struct source *source = size % WAYS == REMOTE ? served_source(&server) : file;
    if (size % WAYS == FAILS)
        fail_reads(file);
    if (zip_directory_read(&directory, source, arena, &error)) {
        check_members(&directory, size, arena);
        inflate_members(&directory, size % WAYS == DROPS);
        check_stored(&directory);
    } else {
        require_one_line(&error);
    }
    if (source != file)
        source_close(source);
    source_close(file);
    arena_free(arena);
    return 0;
}

#ifdef LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Returns the place of the next signature "PKxy" from `at` on; `size` if there is none. */
static size_t find_signature(const uint8_t *data, size_t size, size_t at, char x, char y)
{
    const char signature[] = {'P', 'K', x, y};
    while (at < size && (size - at < sizeof signature || memcmp(data + at, signature, sizeof signature) != 0))
        at++;
    return at;
}

static void put(uint8_t *data, size_t size, size_t at, size_t number, size_t width)
{
    uint32_t value = (uint32_t)number; /* this is for little-endian machines */
    if (at + width <= size)
        memcpy(data + at, &value, width);
}

/* Entries of the directory name the local headers in their order, and the end names the directory. */
static void place_headers(uint8_t *data, size_t size)
{
    enum { LOCAL_OFFSET = 42, N_ENTRIES = 8, DIRECTORY_SIZE = 12, DIRECTORY_OFFSET = 16 };
    size_t first = find_signature(data, size, 0, 1, 2), end = find_signature(data, size, first, 5, 6);
    size_t local = find_signature(data, size, 0, 3, 4), n_entries = 0;
    for (size_t entry = first; entry < end; entry = find_signature(data, end, entry + 4, 1, 2), n_entries++) {
        put(data, size, entry + LOCAL_OFFSET, local, 4);
        local = find_signature(data, first, local < first ? local + 4 : first, 3, 4);
    }
    put(data, size, end + N_ENTRIES, n_entries, 2);
    put(data, size, end + N_ENTRIES + 2, n_entries, 2);
    put(data, size, end + DIRECTORY_SIZE, end - first, 4);
    put(data, size, end + DIRECTORY_OFFSET, first, 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    enum { KEPT = 4 };
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % KEPT != 0)
        place_headers(data, size);
    return size;
}
#endif
