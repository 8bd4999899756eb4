#include "formats/zip/deflate_index.h"

#include "base/arena.h"
#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 10,
    TRAILER = 8,
    DEFLATE = 8,
    FLAGS_AT = 3,
    HAS_CRC = 2,
    HAS_EXTRA = 4,
    HAS_NAME = 8,
    HAS_COMMENT = 16,
    MAX_HEADER = 256 * 1024, /* an extra field and two texts */
};

bool gzip_begins(const unsigned char *head, size_t length)
{
    return length >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

static size_t skip_text(const unsigned char *bytes, size_t at, size_t length)
{
    const unsigned char *end = at < length ? memchr(bytes + at, '\0', length - at) : NULL;
    return end != NULL ? (size_t)(end - bytes) + 1 : length + 1;
}

/* Returns the length of the header at the beginning of the bytes; more than `length` if it is longer, 0 if damaged. */
static size_t header_length(const unsigned char *bytes, size_t length)
{
    if (length < HEAD || !gzip_begins(bytes, length) || bytes[2] != DEFLATE)
        return 0;
    size_t at = HEAD;
    unsigned flags = bytes[FLAGS_AT];
    if (flags & HAS_EXTRA)
        at = at + 2 <= length ? at + 2 + (size_t)read_le(bytes + at, 2) : length + 1;
    if (flags & HAS_NAME)
        at = skip_text(bytes, at, length);
    if (flags & HAS_COMMENT)
        at = skip_text(bytes, at, length);
    return at + (flags & HAS_CRC ? 2 : 0);
}

/* Returns the size of the contents: congruent to `stored` modulo 2^32, and at least about the compressed one. */
static uint64_t inflated_size(uint64_t stored, uint64_t compressed)
{
    enum { BLOCK = 16 * 1024, BLOCK_OVERHEAD = 5 };
    const uint64_t modulus = UINT64_C(1) << 32;
    uint64_t overhead = (compressed / BLOCK + 1) * BLOCK_OVERHEAD;
    uint64_t least = compressed > overhead ? compressed - overhead : 0;
    return stored + (least > stored ? rounded_up(least - stored, modulus) * modulus : 0);
}

/* Sets where the data lie, their CRC and their size. */
static bool read_frame(const struct source *file, unsigned char *bytes, struct zip_member *member, struct error *error)
{
    unsigned char trailer[TRAILER];
    uint64_t file_size = source_size(file);
    size_t length = file_size < MAX_HEADER ? (size_t)file_size : MAX_HEADER;
    if (!source_read(file, 0, length, bytes, error))
        return false;
    size_t header = header_length(bytes, length);
    if (header == 0 || header > length || file_size - header < TRAILER)
        return error_set(error, "%s: gzip: the header is damaged or truncated", source_name(file));
    if (!source_read(file, file_size - TRAILER, TRAILER, trailer, error))
        return false;
    member->offset = header;
    member->compressed_size = file_size - header - TRAILER;
    member->crc = (uint32_t)read_le(trailer, 4);
    member->size = inflated_size(read_le(trailer + 4, 4), member->compressed_size);
    return member->size <= zip_inflated_constant + ZIP_INFLATED_RATIO * member->compressed_size ||
           error_set(error, "%s: gzip: it would inflate to more than %d times its size", source_name(file),
                     ZIP_INFLATED_RATIO);
}

struct source *gzip_source_new(const struct source *file, struct error *error)
{
    struct zip_member member = {.name = NULL, .method = ZIP_DEFLATED};
    const struct zip_directory directory = {.source = file, .members = &member, .n_members = 1};
    unsigned char *bytes = memory_alloc(MAX_HEADER);
    bool good = read_frame(file, bytes, &member, error);
    if (good && member.size == 0)
        good = error_set(error, "%s: gzip: it holds nothing", source_name(file));
    free(bytes);
    return good ? inflated_source_new(&directory) : NULL;
}
