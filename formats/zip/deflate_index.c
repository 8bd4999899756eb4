#include "formats/zip/deflate_index.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/lock.h"
#include "base/sort.h"
#include "sources/chunk_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { INPUT_BYTES = 64 * 1024, RAW_DEFLATE = -15 };

/* An inflater in the middle of a member. */
struct inflater {
    z_stream stream;
    uint64_t at, end; /* in the file: the next compressed byte to read, and the end */
    bool unread;      /* reading the file failed, which does not prove damage */
    unsigned char input[INPUT_BYTES];
};

/* The state before a chunk. */
struct point {
    z_stream stream;
    uint64_t at; /* in the file: the first compressed byte that the stream has not taken */
};

struct member {
    char *label;                      /* for errors: "zip: member 'x'" */
    uint64_t start, size;             /* in the inflated source */
    uint64_t offset, compressed_size; /* in the file */
    uint32_t crc;
    size_t first_chunk;
    size_t n_points;      /* one for each chunk, once it is `indexed` */
    _Atomic bool indexed; /* inflated to its end and checked; before that, no byte is served */
    char *damage;         /* why it cannot be indexed, or NULL */
};

struct archive {
    const struct source *source;
    struct member *members;
    size_t n_members;
    struct chunk **chunks; /* of all members; the places of chunk_cache.h */
    struct point *points;  /* before each chunk; set once the member is indexed */
    size_t n_chunks;
    struct lock lock; /* held while making an index */
};

static bool member_failed(const struct archive *archive, const struct member *member, struct error *error,
                          const char *reason)
{
    return error_set(error, "%s: %s: %s", source_name(archive->source), member->label, reason);
}

static bool fill_input(const struct archive *archive, struct inflater *inflater, struct error *error)
{
    uint64_t left = inflater->end - inflater->at;
    size_t n = left < INPUT_BYTES ? (size_t)left : INPUT_BYTES;
    if (!source_read(archive->source, inflater->at, n, inflater->input, error)) {
        inflater->unread = true;
        return false;
    }
    inflater->stream.next_in = inflater->input;
    inflater->stream.avail_in = (uInt)n;
    inflater->at += n;
    return true;
}

/* Inflates at most `length` bytes; *ret_length is less only at the end of the stream. */
static bool inflate_some(const struct archive *archive, const struct member *member, struct inflater *inflater,
                         unsigned char *out, size_t length, size_t *ret_length, struct error *error)
{
    z_stream *stream = &inflater->stream;
    stream->next_out = out;
    stream->avail_out = (uInt)length;
    int status = Z_OK;
    while (status != Z_STREAM_END && stream->avail_out > 0) {
        if (stream->avail_in == 0 && !fill_input(archive, inflater, error))
            return false;
        status = inflate(stream, Z_NO_FLUSH);
        if (status == Z_BUF_ERROR && stream->avail_in == 0 && inflater->at == inflater->end)
            return member_failed(archive, member, error, "its data are truncated");
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
            return member_failed(archive, member, error, stream->msg != NULL ? stream->msg : "its data are damaged");
    }
    *ret_length = length - stream->avail_out;
    return true;
}

static uint64_t chunk_length(const struct member *member, size_t number)
{
    uint64_t left = member->size - (uint64_t)number * INFLATE_CHUNK;
    return left < INFLATE_CHUNK ? left : INFLATE_CHUNK;
}

/* Inflates the next chunk, number `number` of the member, into the cache. */
static bool inflate_chunk(const struct archive *archive, const struct member *member, struct inflater *inflater,
                          size_t number, uLong *crc, struct error *error)
{
    size_t n = 0;
    struct chunk *chunk = chunk_reserve((size_t)chunk_length(member, number));
    bool good = inflate_some(archive, member, inflater, chunk->bytes, chunk->length, &n, error);
    if (good && n < chunk->length)
        good = error_set(error, "%s: %s inflates to less than its %" PRIu64 " bytes", source_name(archive->source),
                         member->label, member->size);
    if (!good) {
        chunk_give_up(chunk);
        return false;
    }
    if (crc != NULL)
        *crc = crc32(*crc, chunk->bytes, (uInt)chunk->length);
    chunk_publish(chunk, &archive->chunks[member->first_chunk + number]);
    return true;
}

/* Checks the end of a member: no more output, no more input, the right CRC. */
static bool check_end(const struct archive *archive, const struct member *member, struct inflater *inflater, uLong crc,
                      struct error *error)
{
    unsigned char more;
    size_t n = 0;
    if (!inflate_some(archive, member, inflater, &more, 1, &n, error))
        return false;
    if (n > 0)
        return error_set(error, "%s: %s inflates to more than its %" PRIu64 " bytes", source_name(archive->source),
                         member->label, member->size);
    if (inflater->stream.avail_in > 0 || inflater->at < inflater->end)
        return member_failed(archive, member, error, "extra bytes follow its data");
    return member->crc == 0 || crc == member->crc || member_failed(archive, member, error, "CRC error");
}

static bool make_point(struct archive *archive, struct member *member, struct inflater *inflater, size_t number)
{
    struct point *point = &archive->points[member->first_chunk + number];
    point->at = inflater->at - inflater->stream.avail_in;
    if (inflateCopy(&point->stream, &inflater->stream) != Z_OK)
        return false;
    member->n_points++;
    return true;
}

static size_t count_chunks(const struct member *member)
{
    return (size_t)((member->size - 1) / INFLATE_CHUNK + 1);
}

static void drop_points(struct archive *archive, struct member *member)
{
    for (size_t i = 0; i < member->n_points; i++)
        inflateEnd(&archive->points[member->first_chunk + i].stream);
    member->n_points = 0;
}

/* Inflates the whole member, and keeps the states before its chunks. */
static bool inflate_member(struct archive *archive, struct member *member, struct inflater *inflater,
                           struct error *error)
{
    uLong crc = crc32(0, NULL, 0);
    for (size_t i = 0; i < count_chunks(member); i++) {
        if (!make_point(archive, member, inflater, i))
            return member_failed(archive, member, error, "not enough memory for its index");
        if (!inflate_chunk(archive, member, inflater, i, &crc, error))
            return false;
    }
    return check_end(archive, member, inflater, crc, error);
}

/* Like index_member(), with the lock held. */
static bool make_index(struct archive *archive, struct member *member, struct error *error)
{
    if (member->damage != NULL)
        return error_set(error, "%s", member->damage);
    struct inflater *inflater = memory_alloc(sizeof *inflater);
    inflater->stream = (z_stream){0};
    inflater->at = member->offset;
    inflater->end = member->offset + member->compressed_size;
    inflater->unread = false;
    bool good = inflateInit2(&inflater->stream, RAW_DEFLATE) == Z_OK;
    if (!good) {
        member_failed(archive, member, error, "not enough memory to inflate it");
    } else {
        good = inflate_member(archive, member, inflater, error);
        inflateEnd(&inflater->stream);
        if (!good && !inflater->unread)
            member->damage = memory_strdup(error->message);
    }
    if (!good) {
        drop_points(archive, member);
        chunk_drop_all(archive->chunks + member->first_chunk, count_chunks(member));
    }
    free(inflater);
    return good;
}

static bool index_member(struct archive *archive, struct member *member, struct error *error)
{
    attempt_lock(&archive->lock);
    bool indexed = member->indexed || make_index(archive, member, error);
    member->indexed = indexed;
    attempt_unlock(&archive->lock);
    return indexed;
}

/* Brings chunk `number` of the member into the cache. */
static bool load_chunk(const struct archive *archive, const struct member *member, size_t number, struct error *error)
{
    struct point *point = &archive->points[member->first_chunk + number];
    struct inflater *inflater = memory_alloc(sizeof *inflater);
    inflater->at = point->at;
    inflater->end = member->offset + member->compressed_size;
    bool good = inflateCopy(&inflater->stream, &point->stream) == Z_OK;
    if (good) {
        inflater->stream.avail_in = 0;
        good = inflate_chunk(archive, member, inflater, number, NULL, error);
        inflateEnd(&inflater->stream);
    } else {
        member_failed(archive, member, error, "not enough memory to inflate it");
    }
    free(inflater);
    return good;
}

/* The source. */

struct wanted_byte {
    const struct archive *archive;
    uint64_t offset; /* in the inflated source */
};

static bool member_ends_before(const void *context, size_t index)
{
    const struct wanted_byte *wanted = context;
    return wanted->archive->members[index + 1].start <= wanted->offset;
}

/* Returns the member that holds byte `offset` of the inflated source. */
static struct member *member_at(const struct archive *archive, uint64_t offset)
{
    const struct wanted_byte wanted = {archive, offset};
    return &archive->members[search_first(archive->n_members - 1, member_ends_before, &wanted)];
}

static bool archive_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct archive *archive = context;
    unsigned char *to = out;
    while (length > 0) {
        struct member *member = member_at(archive, offset);
        uint64_t within = offset - member->start;
        size_t number = (size_t)(within / INFLATE_CHUNK);
        struct chunk *chunk;
        if (!member->indexed && !index_member(archive, member, error))
            return false;
        while ((chunk = chunk_pin(&archive->chunks[member->first_chunk + number])) == NULL)
            if (!load_chunk(archive, member, number, error))
                return false;
        size_t from = (size_t)(within % INFLATE_CHUNK),
               n = chunk->length - from < length ? chunk->length - from : length;
        memcpy(to, chunk->bytes + from, n);
        chunk_unpin(chunk);
        to += n;
        offset += n;
        length -= n;
    }
    return true;
}

static void archive_release(void *context)
{
    struct archive *archive = context;
    chunk_drop_all(archive->chunks, archive->n_chunks);
    for (size_t i = 0; i < archive->n_members; i++) {
        drop_points(archive, &archive->members[i]);
        free(archive->members[i].label);
        free(archive->members[i].damage);
    }
    lock_destroy(&archive->lock);
    free(archive->points);
    free(archive->chunks);
    free(archive->members);
    free(archive);
}

/* Wanting or waiting for a byte covers its whole member: the first read indexes all of its compressed bytes. */

static void archive_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    const struct archive *archive = context;
    for (uint64_t end = offset + length; offset < end;) {
        const struct member *member = member_at(archive, offset);
        source_want(archive->source, member->offset, member->compressed_size, urgent);
        offset = member->start + member->size;
    }
}

static bool archive_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    const struct archive *archive = context;
    for (uint64_t end = offset + length; offset < end;) {
        const struct member *member = member_at(archive, offset);
        if (!source_wait(archive->source, member->offset, member->compressed_size, error))
            return false;
        offset = member->start + member->size;
    }
    return true;
}

static const struct source_ops archive_ops = {.read = archive_read, .release = archive_release, .want = archive_want};
static const struct source_ops remote_archive_ops = {
    .read = archive_read, .release = archive_release, .want = archive_want, .wait = archive_wait};

/* Returns the label of a member; one without a name is a whole file of gzip. */
static char *label_of(const struct zip_member *member)
{
    struct buffer label = {0};
    if (member->name != NULL)
        buffer_printf(&label, "zip: member '%s'", member->name);
    else
        buffer_append_text(&label, "gzip");
    buffer_append(&label, "", 1);
    return (char *)label.bytes;
}

/* Returns the size of the source. */
static uint64_t add_members(struct archive *archive, const struct zip_directory *directory)
{
    uint64_t size = 0;
    archive->members = memory_alloc(directory->n_members * sizeof *archive->members);
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        if (member->method != ZIP_DEFLATED || member->size == 0)
            continue;
        struct member *added = &archive->members[archive->n_members++];
        *added = (struct member){
            .label = label_of(member),
            .start = member->inflated,
            .size = member->size,
            .offset = member->offset,
            .compressed_size = member->compressed_size,
            .crc = member->crc,
            .first_chunk = archive->n_chunks,
        };
        archive->n_chunks += count_chunks(added);
        size = member->inflated + member->size;
    }
    archive->chunks = memory_alloc(archive->n_chunks * sizeof *archive->chunks + 1);
    archive->points = memory_alloc(archive->n_chunks * sizeof *archive->points + 1);
    memset(archive->chunks, 0, archive->n_chunks * sizeof *archive->chunks);
    return size;
}

struct source *inflated_source_new(const struct zip_directory *directory)
{
    struct archive *archive = memory_alloc(sizeof *archive);
    *archive = (struct archive){.source = directory->source};
    lock_init(&archive->lock);
    uint64_t size = add_members(archive, directory);
    char name[256];
    snprintf(name, sizeof name, "%s (inflated)", source_name(directory->source));
    const struct source_ops *ops = source_is_remote(directory->source) ? &remote_archive_ops : &archive_ops;
    return source_new(directory->source, name, size, ops, archive);
}

/* Files of gzip. */

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
