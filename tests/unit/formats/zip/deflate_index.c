/* Deflated members of several chunks: any range is read through the index, whatever is in the cache. */
#include "formats/zip/deflate_index.h"

#include "sources/chunk_cache.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/write_zip.h"

enum { SIZE = 3 * INFLATE_CHUNK + 12345 };

/* Numbers that shrink a little, from the generator of POSIX. */
static unsigned char *make_content(void)
{
    unsigned char *content = malloc(SIZE);
    uint32_t state = 1;
    for (size_t i = 0; i < SIZE; i++) {
        state = state * 1103515245 + 12345;
        content[i] = state >> 16 & 0x1f;
    }
    return content;
}

/* Leaves nothing in the cache: room for one chunk is all of it. */
static void empty_cache(void)
{
    chunk_give_up(chunk_reserve(CHUNK_CACHE_BYTES - sizeof(struct chunk)));
}

static bool reads(struct source *inflated, const unsigned char *content, uint64_t offset, size_t length,
                  struct error *error)
{
    unsigned char *bytes = malloc(length + 1);
    bool good = source_read(inflated, offset, length, bytes, error) && memcmp(bytes, content + offset, length) == 0;
    free(bytes);
    return good;
}

static void check_ranges(struct source *inflated, const unsigned char *content)
{
    static const struct {
        uint64_t offset;
        size_t length;
    } ranges[] = {
        {0, 1},
        {SIZE - 1, 1},
        {INFLATE_CHUNK - 1, 2},
        {INFLATE_CHUNK, INFLATE_CHUNK},
        {2 * (uint64_t)INFLATE_CHUNK + 7, 100000},
        {3, 2 * INFLATE_CHUNK},
        {0, SIZE},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        struct error error = {""};
        char name[64];
        empty_cache();
        snprintf(name, sizeof name, "[%zu, +%zu)", (size_t)ranges[i].offset, ranges[i].length);
        if (!CHECK_NAMED(reads(inflated, content, ranges[i].offset, ranges[i].length, &error), name))
            fprintf(stderr, "  %s\n", error.message);
    }
}

/* What the directory says of a member, and what is there. */
static void check_damaged(struct source *source, const struct zip_member *member, const unsigned char *content)
{
    static const struct {
        int more_size, more_compressed;
        uint32_t crc;
        const char *error;
    } damaged[] = {
        {1, 0, 0, "x.pt: zip: member 'a/x' inflates to less than its 12595258 bytes"},
        {-1, 0, 0, "x.pt: zip: member 'a/x' inflates to more than its 12595256 bytes"},
        {0, 4, 0, "x.pt: zip: member 'a/x': extra bytes follow its data"},
        {0, -1, 0, "x.pt: zip: member 'a/x': its data are truncated"},
        {0, 0, 1, "x.pt: zip: member 'a/x': CRC error"},
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct zip_member wrong = *member;
        const struct zip_directory directory = {.source = source, .members = &wrong, .n_members = 1};
        struct error error = {""};
        wrong.size += (uint64_t)(int64_t)damaged[i].more_size;
        wrong.compressed_size += (uint64_t)(int64_t)damaged[i].more_compressed;
        wrong.crc ^= damaged[i].crc;
        empty_cache();
        struct source *inflated = inflated_source_new(&directory);
        for (int again = 0; again < 2; again++) { /* the second reader learns it too */
            CHECK(!reads(inflated, content, SIZE - 10, 1, &error));
            CHECK_TEXT(error.message, damaged[i].error);
        }
        source_close(inflated);
    }
}

int main(void)
{
    files_begin();
    struct error error = {""};
    unsigned char *content = make_content(), *data;
    size_t n_data;
    struct buffer file = {0};
    data = deflate_raw(content, SIZE, 1, &n_data);
    buffer_append(&file, data, n_data);
    buffer_append_text(&file, "more");
    files_write("x.pt", file.bytes, file.length);
    buffer_free(&file);
    struct source *source = location_open_file("x.pt", &error);
    struct zip_member member = {
        .name = "a/x",
        .method = ZIP_DEFLATED,
        .crc = (uint32_t)crc32(0, content, SIZE),
        .compressed_size = n_data,
        .size = SIZE,
    };
    const struct zip_directory directory = {.source = source, .members = &member, .n_members = 1};
    struct source *inflated = inflated_source_new(&directory);
    check_ranges(inflated, content);
    source_close(inflated);
    check_damaged(source, &member, content);
    source_close(source);
    free(content);
    free(data);
    files_remove();
    return check_done();
}
