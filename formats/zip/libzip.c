#include "formats/zip/zip.h"

#include "base/sort.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { PIECE_BYTES = 256 * 1024, READ_CONSTANT = 1 << 20, COMPARISONS_PER_NAME = 64, LEAST_BUCKETS = 256 };

struct libzip {
    const struct zip_directory *directory;
    const char *name; /* of the file */
    zip_t *archive;
    const struct zip_headers *headers; /* NULL once the archive is open */
    size_t piece;                      /* the header that was last read from */
    uint64_t position, budget;         /* in the file; bytes that libzip may still read */
    zip_error_t failure;
    bool has_reason;
    struct error reason; /* why a read failed */
};

/* The source for libzip. */

static zip_int64_t fail(struct libzip *libzip, int kind)
{
    zip_error_set(&libzip->failure, kind, EIO);
    return -1;
}

static bool is_past_piece(const void *context, size_t index)
{
    const struct libzip *libzip = context;
    const struct zip_piece *piece = &libzip->headers->pieces[index];
    return piece->offset + piece->length <= libzip->position;
}

static bool piece_holds(const struct libzip *libzip, size_t index, size_t length)
{
    if (index >= libzip->headers->n_pieces)
        return false;
    const struct zip_piece *piece = &libzip->headers->pieces[index];
    return libzip->position >= piece->offset && libzip->position - piece->offset <= piece->length &&
           length <= piece->length - (libzip->position - piece->offset);
}

/* Copies from a header in memory; reads are mostly in order. */
static bool copy_known(struct libzip *libzip, void *out, size_t length)
{
    if (libzip->headers == NULL)
        return false;
    if (!piece_holds(libzip, libzip->piece, length) && !piece_holds(libzip, ++libzip->piece, length))
        libzip->piece = search_first(libzip->headers->n_pieces, is_past_piece, libzip);
    if (!piece_holds(libzip, libzip->piece, length))
        return false;
    const struct zip_piece *piece = &libzip->headers->pieces[libzip->piece];
    memcpy(out, piece->bytes + (libzip->position - piece->offset), length);
    return true;
}

static zip_int64_t read_bytes(struct libzip *libzip, void *out, zip_uint64_t length)
{
    uint64_t left = source_size(libzip->directory->source) - libzip->position;
    if (length > left)
        length = left;
    if (length > libzip->budget) {
        libzip->has_reason = true;
        error_set(&libzip->reason,
                  "%s: zip: libzip reads its headers again and again: end records in a comment or in a name",
                  libzip->name);
        return fail(libzip, ZIP_ER_READ);
    }
    if (!copy_known(libzip, out, (size_t)length) &&
        !source_read(libzip->directory->source, libzip->position, (size_t)length, out, &libzip->reason)) {
        libzip->has_reason = true;
        return fail(libzip, ZIP_ER_READ);
    }
    libzip->position += length;
    libzip->budget -= length;
    return (zip_int64_t)length;
}

static zip_int64_t seek(struct libzip *libzip, void *data, zip_uint64_t length)
{
    zip_int64_t position = zip_source_seek_compute_offset(libzip->position, source_size(libzip->directory->source),
                                                          data, length, &libzip->failure);
    if (position < 0)
        return -1;
    libzip->position = (uint64_t)position;
    return 0;
}

static zip_int64_t describe(const struct libzip *libzip, zip_stat_t *stat)
{
    zip_stat_init(stat);
    stat->size = source_size(libzip->directory->source);
    stat->valid = ZIP_STAT_SIZE;
    return sizeof *stat;
}

static zip_int64_t serve(void *context, void *data, zip_uint64_t length, zip_source_cmd_t command)
{
    struct libzip *libzip = context;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
                                              ZIP_SOURCE_SUPPORTS, -1);
    case ZIP_SOURCE_OPEN:
        libzip->position = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_bytes(libzip, data, length);
    case ZIP_SOURCE_SEEK:
        return seek(libzip, data, length);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)libzip->position;
    case ZIP_SOURCE_STAT:
        return describe(libzip, data);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&libzip->failure, data, length);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return fail(libzip, ZIP_ER_OPNOTSUPP);
    }
}

/* Names with equal hashes, which libzip compares one by one: its djb2 (zip_hash.c), computed after converting names
 * that are not UTF-8, has collisions that are easy to find. */

static bool is_converted(const struct zip_member *member)
{
    for (size_t i = 0; i < member->name_length; i++)
        if ((unsigned char)member->name[i] < ' ')
            return true;
    return text_valid_prefix(member->name, member->name_length) != member->name_length;
}

static uint32_t hash_name(const struct zip_member *member)
{
    enum { START = 5381, MULTIPLIER = 33 };
    uint32_t hash = START;
    for (size_t i = 0; i < member->name_length; i++)
        hash = hash * MULTIPLIER + (unsigned char)member->name[i];
    return is_converted(member) ? START : hash;
}

static bool check_hashes(const struct zip_directory *directory, struct error *error)
{
    size_t n_buckets = LEAST_BUCKETS;
    while (n_buckets < directory->n_members)
        n_buckets *= 2;
    uint32_t *counts = memory_alloc(n_buckets * sizeof *counts);
    memset(counts, 0, n_buckets * sizeof *counts);
    uint64_t n_comparisons = 0;
    for (size_t i = 0; i < directory->n_members; i++)
        n_comparisons += counts[hash_name(&directory->members[i]) & (n_buckets - 1)]++;
    free(counts);
    uint64_t limit = (uint64_t)COMPARISONS_PER_NAME * (directory->n_members + LEAST_BUCKETS);
    return n_comparisons <= limit ||
           error_set(error,
                     "%s: zip: the names of its %zu members collide in libzip's table of names: finding them takes "
                     "%" PRIu64 " comparisons, and the limit is %" PRIu64,
                     source_name(directory->source), directory->n_members, n_comparisons, limit);
}

/* Opening. */

static zip_t *open_archive(struct libzip *libzip, int flags, zip_error_t *failure)
{
    zip_source_t *source = zip_source_function_create(serve, libzip, failure);
    libzip->budget = READ_CONSTANT + 2 * libzip->headers->n_bytes;
    zip_t *archive = source != NULL ? zip_open_from_source(source, ZIP_RDONLY | flags, failure) : NULL;
    if (archive == NULL && source != NULL)
        zip_source_free(source);
    return archive;
}

static bool disagree(const struct zip_directory *directory, const struct zip_member *member, const char *what,
                     uint64_t ours, uint64_t theirs, struct error *error)
{
    return error_set(error, "%s: zip: member '%s': its %s is %" PRIu64 " for wfs and %" PRIu64 " for libzip",
                     source_name(directory->source), member->name, what, ours, theirs);
}

static bool compare_member(const struct libzip *libzip, size_t index, struct error *error)
{
    const struct zip_directory *directory = libzip->directory;
    const struct zip_member *member = &directory->members[index];
    zip_stat_t stat;
    if (zip_stat_index(libzip->archive, index, ZIP_FL_ENC_RAW, &stat) != 0)
        return error_set(error, "%s: zip: member '%s': libzip: %s", libzip->name, member->name,
                         zip_strerror(libzip->archive));
    if (strcmp(stat.name, member->name) != 0)
        return error_set(error, "%s: zip: member '%s' is called '%s' by libzip", libzip->name, member->name, stat.name);
    if (stat.comp_method != member->method)
        return disagree(directory, member, "compression method", member->method, stat.comp_method, error);
    if (stat.size != member->size)
        return disagree(directory, member, "size", member->size, stat.size, error);
    if (stat.comp_size != member->compressed_size)
        return disagree(directory, member, "compressed size", member->compressed_size, stat.comp_size, error);
    return stat.crc == member->crc || disagree(directory, member, "CRC", member->crc, stat.crc, error);
}

static bool compare(const struct libzip *libzip, struct error *error)
{
    zip_int64_t n = zip_get_num_entries(libzip->archive, 0);
    if (n < 0 || (uint64_t)n != libzip->directory->n_members)
        return error_set(error, "%s: zip: it has %zu members for wfs and %" PRId64 " for libzip", libzip->name,
                         libzip->directory->n_members, (int64_t)n);
    for (size_t i = 0; i < libzip->directory->n_members; i++)
        if (!compare_member(libzip, i, error))
            return false;
    return true;
}

/* Explains why libzip refuses the archive. libzip does not name the member: comparing the directories does, if libzip
 * reads the archive without ZIP_CHECKCONS. */
static void explain(struct libzip *libzip, zip_error_t *failure, struct error *error)
{
    error_set(error, "%s: zip: libzip refuses it, although its headers agree with one another: %s; rewrite the archive",
              libzip->name, zip_error_strerror(failure));
    if (!libzip->has_reason)
        libzip->archive = open_archive(libzip, 0, failure);
    if (libzip->archive != NULL)
        compare(libzip, error);
    else if (libzip->has_reason)
        error_set(error, "%s", libzip->reason.message);
}

struct libzip *libzip_open(const struct zip_directory *directory, const struct zip_headers *headers,
                           struct error *error)
{
    if (!check_hashes(directory, error))
        return NULL;
    zip_error_t failure;
    struct libzip *libzip = memory_alloc(sizeof *libzip);
    *libzip = (struct libzip){.directory = directory, .name = source_name(directory->source), .headers = headers};
    zip_error_init(&libzip->failure);
    zip_error_init(&failure);
    libzip->archive = open_archive(libzip, ZIP_CHECKCONS, &failure);
    bool sound = libzip->archive != NULL;
    if (!sound)
        explain(libzip, &failure, error);
    bool good = sound && compare(libzip, error);
    zip_error_fini(&failure);
    libzip->headers = NULL;
    libzip->budget = UINT64_MAX;
    if (good)
        return libzip;
    libzip_close(libzip);
    return NULL;
}

void libzip_close(void *opened)
{
    struct libzip *libzip = opened;
    if (libzip->archive != NULL)
        zip_discard(libzip->archive);
    zip_error_fini(&libzip->failure);
    free(libzip);
}

/* Reading. */

/* Reports whether a read failed only because a CRC that nobody computed differs: after the last byte. */
static bool lacks_crc(zip_file_t *file, const struct zip_member *member)
{
    return !zip_member_has_crc(member) && zip_error_code_zip(zip_file_get_error(file)) == ZIP_ER_CRC;
}

static bool read_pieces(zip_file_t *file, const struct zip_member *member, char *out, zip_progress *progress,
                        void *context)
{
    uint64_t length = member->size;
    char *piece = memory_alloc(PIECE_BYTES);
    uint64_t done = 0;
    zip_int64_t n;
    do {
        uint64_t left = length - done;
        bool kept = out != NULL && left > 0;
        n = zip_fread(file, kept ? out + done : piece, kept && left < PIECE_BYTES ? left : PIECE_BYTES);
        if (n > 0 && (uint64_t)n > left)
            n = -1;
        done += n > 0 ? (uint64_t)n : 0;
        if (n > 0 && progress != NULL)
            progress(context, (uint64_t)n);
    } while (n > 0); /* the read after the last byte checks the CRC */
    free(piece);
    return done == length && (n == 0 || lacks_crc(file, member));
}

bool libzip_read(struct libzip *libzip, size_t index, char *out, zip_progress *progress, void *context,
                 struct error *error)
{
    const struct zip_member *member = &libzip->directory->members[index];
    libzip->has_reason = false;
    zip_file_t *file = zip_fopen_index(libzip->archive, index, 0);
    if (file == NULL)
        return error_set(error, "%s: %s: libzip: %s", libzip->name, member->name, zip_strerror(libzip->archive));
    bool good = read_pieces(file, member, out, progress, context);
    if (!good && libzip->has_reason)
        error_set(error, "%s", libzip->reason.message);
    else if (!good)
        error_set(error, "%s: %s: damaged: %s; download or write the file again", libzip->name, member->name,
                  zip_error_code_zip(zip_file_get_error(file)) != 0 ? zip_file_strerror(file)
                                                                    : "its size is not what the directory says");
    zip_fclose(file);
    return good;
}
