#include "formats/torch/inflate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* A part of one member's content in memory. */
struct chunk {
    struct chunk **place; /* the pointer of its archive that points here; cleared when it leaves the cache */
    struct chunk *newer, *older;
    unsigned pins; /* readers that copy from it now */
    size_t length;
    unsigned char bytes[];
};

/* One for the process: what is bounded is its memory. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t unpinned;
    struct chunk *newest, *oldest;
    size_t n_bytes; /* of all chunks, and of those that are being filled */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .unpinned = PTHREAD_COND_INITIALIZER};

struct member {
    uint64_t zip_index;
    uint64_t start, size; /* in the inflated source */
    size_t first_chunk;
    bool verified; /* inflated to its end, with the right CRC */
};

struct archive {
    const struct source *source;
    struct member *members;
    size_t n_members;
    struct chunk **chunks; /* of all members; NULL where not in the cache; guarded by cache.lock */
    size_t n_chunks;

    pthread_mutex_t lock; /* for what follows, and `verified` */
    zip_t *zip;
    int64_t position;   /* of libzip's reading of the archive */
    zip_file_t *stream; /* of the member inflated last, or NULL */
    const struct member *streamed;
    uint64_t stream_position;
    struct error read_error; /* of the last read that libzip asked for and did not get */
};

/* The cache. */

static void unlink_chunk(struct chunk *chunk)
{
    *(chunk->newer ? &chunk->newer->older : &cache.newest) = chunk->older;
    *(chunk->older ? &chunk->older->newer : &cache.oldest) = chunk->newer;
}

static void link_newest(struct chunk *chunk)
{
    chunk->newer = NULL;
    chunk->older = cache.newest;
    *(cache.newest ? &cache.newest->newer : &cache.oldest) = chunk;
    cache.newest = chunk;
}

static void drop_chunk(struct chunk *chunk)
{
    unlink_chunk(chunk);
    *chunk->place = NULL;
    cache.n_bytes -= sizeof *chunk + chunk->length;
    free(chunk);
}

static struct chunk *oldest_unpinned(void)
{
    struct chunk *chunk = cache.oldest;
    while (chunk != NULL && chunk->pins > 0)
        chunk = chunk->newer;
    return chunk;
}

/* A chunk for the caller to fill, once there is room for it. */
static struct chunk *reserve_chunk(size_t length)
{
    size_t n_bytes = sizeof(struct chunk) + length;
    pthread_mutex_lock(&cache.lock);
    while (cache.n_bytes + n_bytes > INFLATE_CACHE) {
        struct chunk *chunk = oldest_unpinned();
        if (chunk != NULL)
            drop_chunk(chunk);
        else
            pthread_cond_wait(&cache.unpinned, &cache.lock);
    }
    cache.n_bytes += n_bytes;
    pthread_mutex_unlock(&cache.lock);
    struct chunk *chunk = memory_alloc(n_bytes);
    *chunk = (struct chunk){.length = length};
    return chunk;
}

static void give_up_chunk(struct chunk *chunk)
{
    pthread_mutex_lock(&cache.lock);
    cache.n_bytes -= sizeof *chunk + chunk->length;
    pthread_cond_broadcast(&cache.unpinned);
    pthread_mutex_unlock(&cache.lock);
    free(chunk);
}

static void publish_chunk(struct chunk *chunk, struct chunk **place)
{
    pthread_mutex_lock(&cache.lock);
    if (*place != NULL)
        drop_chunk(*place);
    chunk->place = place;
    *place = chunk;
    link_newest(chunk);
    pthread_cond_broadcast(&cache.unpinned);
    pthread_mutex_unlock(&cache.lock);
}

static struct chunk *pin_chunk(struct chunk **place)
{
    pthread_mutex_lock(&cache.lock);
    struct chunk *chunk = *place;
    if (chunk != NULL) {
        chunk->pins++;
        unlink_chunk(chunk);
        link_newest(chunk);
    }
    pthread_mutex_unlock(&cache.lock);
    return chunk;
}

static void unpin_chunk(struct chunk *chunk)
{
    pthread_mutex_lock(&cache.lock);
    chunk->pins--;
    pthread_cond_broadcast(&cache.unpinned);
    pthread_mutex_unlock(&cache.lock);
}

/* Inflating, under the archive's lock. */

static uint64_t chunk_length(const struct member *member, uint64_t start)
{
    return member->size - start < INFLATE_CHUNK ? member->size - start : INFLATE_CHUNK;
}

static bool inflate_failed(struct archive *archive, const struct member *member, struct error *error)
{
    const char *reason = archive->read_error.message;
    if (reason[0] == '\0')
        reason = archive->stream != NULL ? zip_file_strerror(archive->stream) : zip_strerror(archive->zip);
    return error_set(error, "%s: zip: member '%s': %s", source_name(archive->source),
                     zip_get_name(archive->zip, member->zip_index, ZIP_FL_ENC_RAW), reason);
}

static bool rewind_stream(struct archive *archive, const struct member *member, struct error *error)
{
    if (archive->stream != NULL)
        zip_fclose(archive->stream);
    archive->stream_position = 0;
    archive->streamed = member;
    archive->stream = zip_fopen_index(archive->zip, member->zip_index, 0);
    return archive->stream != NULL || inflate_failed(archive, member, error);
}

/* Reads exactly `length` bytes of the stream. */
static bool read_stream(struct archive *archive, unsigned char *out, size_t length, struct error *error)
{
    while (length > 0) {
        zip_int64_t n = zip_fread(archive->stream, out, length);
        if (n < 0)
            return inflate_failed(archive, archive->streamed, error);
        if (n == 0)
            return error_set(error, "%s: zip: member '%s' inflates to less than its %" PRIu64 " bytes",
                             source_name(archive->source),
                             zip_get_name(archive->zip, archive->streamed->zip_index, ZIP_FL_ENC_RAW), archive->streamed->size);
        out += n;
        length -= (size_t)n;
        archive->stream_position += (uint64_t)n;
    }
    return true;
}

/* The end of a stream: nothing more in it, and the CRC is right. libzip looks when it is asked for more. */
static bool check_end(struct archive *archive, struct member *member, struct error *error)
{
    unsigned char more;
    zip_int64_t n = zip_fread(archive->stream, &more, 1);
    if (n < 0)
        return inflate_failed(archive, member, error);
    if (n > 0)
        return error_set(error, "%s: zip: member '%s' inflates to more than its %" PRIu64 " bytes", source_name(archive->source),
                         zip_get_name(archive->zip, member->zip_index, ZIP_FL_ENC_RAW), member->size);
    member->verified = true;
    return true;
}

/* Inflates the chunks of the member from where its stream stands to the one that holds byte `last`. */
static bool inflate_chunks(struct archive *archive, struct member *member, uint64_t last, struct error *error)
{
    while (archive->stream_position <= last) {
        uint64_t start = archive->stream_position;
        struct chunk *chunk = reserve_chunk((size_t)chunk_length(member, start));
        if (!read_stream(archive, chunk->bytes, chunk->length, error)) {
            give_up_chunk(chunk);
            archive->streamed = NULL;
            return false;
        }
        publish_chunk(chunk, &archive->chunks[member->first_chunk + start / INFLATE_CHUNK]);
    }
    return member->verified || archive->stream_position < member->size || check_end(archive, member, error);
}

/* Brings the chunk that holds byte `within` of the member into the cache. */
static bool inflate(struct archive *archive, struct member *member, uint64_t within, struct error *error)
{
    uint64_t start = within / INFLATE_CHUNK * INFLATE_CHUNK;
    pthread_mutex_lock(&archive->lock);
    archive->read_error.message[0] = '\0';
    bool good = true;
    if (!member->verified)
        good = rewind_stream(archive, member, error) && inflate_chunks(archive, member, member->size - 1, error);
    struct chunk *present = good ? pin_chunk(&archive->chunks[member->first_chunk + start / INFLATE_CHUNK]) : NULL;
    if (present != NULL)
        unpin_chunk(present);
    else if (good)
        good = ((archive->streamed == member && archive->stream_position <= start) || rewind_stream(archive, member, error)) &&
               inflate_chunks(archive, member, start, error);
    pthread_mutex_unlock(&archive->lock);
    return good;
}

/* The source. */

/* The member that holds byte `offset` of the inflated source. */
static struct member *member_at(const struct archive *archive, uint64_t offset)
{
    size_t low = 0, high = archive->n_members;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (archive->members[middle].start <= offset)
            low = middle;
        else
            high = middle;
    }
    return &archive->members[low];
}

static bool archive_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct archive *archive = context;
    unsigned char *to = out;
    while (length > 0) {
        struct member *member = member_at(archive, offset);
        uint64_t within = offset - member->start;
        struct chunk *chunk;
        while ((chunk = pin_chunk(&archive->chunks[member->first_chunk + within / INFLATE_CHUNK])) == NULL)
            if (!inflate(archive, member, within, error))
                return false;
        size_t from = (size_t)(within % INFLATE_CHUNK), n = chunk->length - from < length ? chunk->length - from : length;
        memcpy(to, chunk->bytes + from, n);
        unpin_chunk(chunk);
        to += n;
        offset += n;
        length -= n;
    }
    return true;
}

static void archive_release(void *context)
{
    struct archive *archive = context;
    pthread_mutex_lock(&cache.lock);
    for (size_t i = 0; archive->chunks != NULL && i < archive->n_chunks; i++)
        if (archive->chunks[i] != NULL)
            drop_chunk(archive->chunks[i]);
    pthread_mutex_unlock(&cache.lock);
    if (archive->stream != NULL)
        zip_fclose(archive->stream);
    if (archive->zip != NULL)
        zip_discard(archive->zip);
    pthread_mutex_destroy(&archive->lock);
    free(archive->chunks);
    free(archive->members);
    free(archive);
}

static const struct source_ops archive_ops = {archive_read, archive_release};

/* libzip reads the archive through its source, from the descriptor that was checked. */

static zip_int64_t serve_read(struct archive *archive, void *data, zip_uint64_t length)
{
    uint64_t left = source_size(archive->source) - (uint64_t)archive->position;
    size_t n = (size_t)(length < left ? length : left);
    if (!source_read(archive->source, (uint64_t)archive->position, n, data, &archive->read_error))
        return -1;
    archive->position += (int64_t)n;
    return (zip_int64_t)n;
}

static zip_int64_t serve_libzip(void *context, void *data, zip_uint64_t length, zip_source_cmd_t command)
{
    struct archive *archive = context;
    zip_uint64_t size = source_size(archive->source);
    zip_error_t error;
    zip_error_init(&error);
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_SEEKABLE;
    case ZIP_SOURCE_OPEN:
        archive->position = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return serve_read(archive, data, length);
    case ZIP_SOURCE_SEEK: {
        zip_int64_t position = zip_source_seek_compute_offset((zip_uint64_t)archive->position, size, data, length, &error);
        if (position >= 0)
            archive->position = position;
        return position < 0 ? -1 : 0;
    }
    case ZIP_SOURCE_TELL:
        return archive->position;
    case ZIP_SOURCE_STAT:
        zip_stat_init(data);
        ((zip_stat_t *)data)->valid = ZIP_STAT_SIZE;
        ((zip_stat_t *)data)->size = size;
        return sizeof(zip_stat_t);
    case ZIP_SOURCE_ERROR:
        zip_error_set(&error, ZIP_ER_READ, 0);
        return zip_error_to_data(&error, data, length);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return -1;
    }
}

static bool open_libzip(struct archive *archive, struct error *error)
{
    zip_error_t failure;
    zip_error_init(&failure);
    zip_source_t *from = zip_source_function_create(serve_libzip, archive, &failure);
    archive->zip = from != NULL ? zip_open_from_source(from, ZIP_RDONLY, &failure) : NULL;
    if (archive->zip != NULL)
        return true;
    error_set(error, "%s: zip: libzip: %s", source_name(archive->source), zip_error_strerror(&failure));
    if (from != NULL)
        zip_source_free(from);
    zip_error_fini(&failure);
    return false;
}

static bool agrees_with_libzip(const struct archive *archive, const struct zip_directory *directory, struct error *error)
{
    const zip_uint64_t wanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
    if (zip_get_num_entries(archive->zip, 0) != (zip_int64_t)directory->n_members)
        return error_set(error, "%s: zip: libzip finds %" PRId64 " members, the directory has %zu", source_name(archive->source),
                         (int64_t)zip_get_num_entries(archive->zip, 0), directory->n_members);
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        zip_stat_t stat;
        zip_stat_init(&stat);
        if (zip_stat_index(archive->zip, i, ZIP_FL_ENC_RAW, &stat) != 0 || (stat.valid & wanted) != wanted ||
            strcmp(stat.name, member->name) != 0 || stat.comp_method != member->method || stat.size != member->size ||
            stat.comp_size != member->compressed_size || stat.crc != member->crc)
            return error_set(error, "%s: zip: member '%s': libzip reads its directory entry otherwise",
                             source_name(archive->source), member->name);
    }
    return true;
}

static uint64_t add_members(struct archive *archive, const struct zip_directory *directory)
{
    uint64_t size = 0;
    archive->members = memory_alloc(directory->n_members * sizeof *archive->members);
    for (size_t i = 0; i < directory->n_members; i++) {
        const struct zip_member *member = &directory->members[i];
        if (member->method != ZIP_DEFLATED || member->size == 0)
            continue;
        archive->members[archive->n_members++] =
            (struct member){.zip_index = i, .start = member->inflated, .size = member->size, .first_chunk = archive->n_chunks};
        archive->n_chunks += (size_t)((member->size - 1) / INFLATE_CHUNK + 1);
        size = member->inflated + member->size;
    }
    archive->chunks = calloc(archive->n_chunks + 1, sizeof(struct chunk *));
    return size;
}

struct source *inflated_source_new(const struct zip_directory *directory, struct error *error)
{
    struct archive *archive = memory_alloc(sizeof *archive);
    *archive = (struct archive){.source = directory->source};
    pthread_mutex_init(&archive->lock, NULL);
    uint64_t size = add_members(archive, directory);
    if (archive->chunks == NULL) {
        error_set(error, "%s: zip: no memory to inflate %" PRIu64 " bytes", source_name(directory->source), size);
        archive_release(archive);
        return NULL;
    }
    if (!open_libzip(archive, error) || !agrees_with_libzip(archive, directory, error)) {
        archive_release(archive);
        return NULL;
    }
    char name[256];
    snprintf(name, sizeof name, "%s (inflated)", source_name(directory->source));
    return source_new(directory->source, name, size, &archive_ops, archive);
}
