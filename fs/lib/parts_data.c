#include "fs/lib/parts.h"

#include "base/system.h"
#include "fs/lib/output.h"
#include "remote/crc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(struct error *error, int reason, const char *path)
{
    error_set_errno(error, reason, "%s", path);
    return error_set_code(error, reason);
}

static const char *path_of(struct arena *arena, const char *path, const char *below)
{
    return *below != '\0' ? arena_printf(arena, "%s/%s", path, below) : path;
}

/* A piece of a file that is in the range. */
struct piece {
    const struct parts_file *file;
    const char *path;
    uint64_t offset, length;
};

typedef bool piece_function(void *context, const struct piece *piece, struct error *error);

/* Calls take() for the pieces of a range, and for empty files. */
static bool for_each_piece(const struct parts_copy *copy, const char *path, struct parts_range range,
                           piece_function *take, void *context, struct error *error)
{
    uint64_t position = 0;
    bool done = true;
    for (size_t i = 0; i < copy->n_files && done; i++) {
        uint64_t size = copy->files[i].file->size, end = position + size;
        uint64_t from = range.from > position ? range.from : position, to = range.to < end ? range.to : end;
        struct arena *arena = arena_new();
        const struct piece piece = {&copy->files[i], path_of(arena, path, copy->files[i].path), from - position,
                                    to > from ? to - from : 0};
        if (to > from || size == 0)
            done = take(context, &piece, error);
        position = end;
        arena_free(arena);
    }
    return done;
}

/* The checksum of a part. */

static void end_checksum(struct sha256_ctx *hash, char checksum[SHA256_HEX + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    base16_encode_update(checksum, sizeof digest, digest);
    checksum[SHA256_HEX] = '\0';
}

static void add_checked(struct sha256_ctx *hash, const void *bytes, size_t length)
{
    uint32_t crc = crc_of(bytes, length);
    const uint8_t crc_bytes[] = {(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16), (uint8_t)(crc >> 24)};
    sha256_update(hash, sizeof crc_bytes, crc_bytes);
}

/* Writing. */

struct writing {
    const struct parts_copy *copy;
    struct sha256_ctx hash;
    const char *path;
    int fd;
    uint64_t offset;
};

/* Object stores that are mounted as file systems refuse writes in the middle of a file. */
static bool fail_to_write(const struct writing *writing, int reason, struct error *error)
{
    if (reason != EOPNOTSUPP && reason != EINVAL && reason != ESPIPE && reason != ENOSYS)
        return fail(error, reason, writing->path);
    error_set(error,
              "%s: this file system cannot write a part of a file (%s); on an object store, upload the parts as "
              "examples/s3 does",
              writing->path, strerror(reason));
    return error_set_code(error, EOPNOTSUPP);
}

static bool write_bytes(void *context, const void *bytes, size_t length, struct error *error)
{
    struct writing *writing = context;
    const unsigned char *from = bytes;
    add_checked(&writing->hash, bytes, length);
    for (size_t left = length; left > 0;) {
        ssize_t n = pwrite(writing->fd, from, left, (off_t)writing->offset);
        if (n < 0 && errno != EINTR)
            return fail_to_write(writing, errno, error);
        if (n <= 0)
            continue;
        from += n;
        left -= (size_t)n;
        writing->offset += (uint64_t)n;
    }
    if (writing->copy->progress != NULL)
        writing->copy->progress(writing->copy->context, length);
    return true;
}

/* Computes and writes a piece. Reserving its space first lets a full disk fail before anything is computed. */
static bool fill_piece(struct writing *writing, const struct piece *piece, struct error *error)
{
    if (piece->length == 0)
        return true;
    if (!system_reserve_range(writing->fd, piece->offset, piece->length) && (errno == ENOSPC || errno == EDQUOT))
        return fail(error, errno, piece->path);
    return take_range(piece->file->file, piece->offset, piece->length, write_bytes, writing, error);
}

static bool write_piece(void *context, const struct piece *piece, struct error *error)
{
    struct writing *writing = context;
    writing->path = piece->path;
    writing->offset = piece->offset;
    writing->fd = open(piece->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (writing->fd < 0)
        return fail_to_write(writing, errno, error);
    bool filled = fill_piece(writing, piece, error);
    int reason = durable_close(writing->fd);
    return filled && reason != 0 ? fail(error, reason, piece->path) : filled;
}

static bool make_directories(const struct parts_copy *copy, const char *path, struct error *error)
{
    struct arena *arena = arena_new();
    bool made = true;
    if (copy->is_directory && mkdir(path, 0777) != 0 && errno != EEXIST)
        made = fail(error, errno, path);
    for (size_t i = 0; i < copy->n_directories && made; i++) {
        const char *directory = path_of(arena, path, copy->directories[i]);
        if (mkdir(directory, 0777) != 0 && errno != EEXIST)
            made = fail(error, errno, directory);
    }
    arena_free(arena);
    return made;
}

/* Makes the names of files durable. */
static bool sync_directories(const struct parts_copy *copy, const char *path, struct error *error)
{
    struct arena *arena = arena_new();
    int reason = copy->is_directory ? durable_directory(path) : 0;
    for (size_t i = 0; i < copy->n_directories && reason == 0; i++)
        reason = durable_directory(path_of(arena, path, copy->directories[i]));
    arena_free(arena);
    return reason == 0 || fail(error, reason, path);
}

bool parts_data_write(const struct parts_copy *copy, const char *path, struct parts_range range,
                      char checksum[SHA256_HEX + 1], struct error *error)
{
    struct writing writing = {.copy = copy};
    sha256_init(&writing.hash);
    if (!make_directories(copy, path, error) || !for_each_piece(copy, path, range, write_piece, &writing, error) ||
        !sync_directories(copy, path, error))
        return false;
    end_checksum(&writing.hash, checksum);
    return true;
}

/* Comparing. */

enum { FACTS = 128 };

struct comparing {
    const struct parts_copy *copy;
    const char *path;
    int fd;
    uint64_t offset;
};

static bool differ(struct error *error, const char *path, const char *facts)
{
    error_set(error, "%s: exists, and is not this copy: %s; remove it or name another DEST", path, facts);
    return error_set_code(error, EEXIST);
}

/* Reads exactly `length` bytes; returns 0, an errno, or ENODATA at the end of the file. */
static int read_all(int fd, unsigned char *out, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = pread(fd, out + done, length - done, (off_t)(offset + done));
        if (n == 0)
            return ENODATA;
        if (n < 0 && errno != EINTR)
            return errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static bool compare_bytes(void *context, const void *bytes, size_t length, struct error *error)
{
    struct comparing *comparing = context;
    char facts[FACTS];
    unsigned char *there = memory_alloc(length);
    int reason = read_all(comparing->fd, there, length, comparing->offset);
    bool is_equal = reason == 0 && memcmp(there, bytes, length) == 0;
    free(there);
    if (reason != 0 && reason != ENODATA)
        return fail(error, reason, comparing->path);
    if (!is_equal) {
        snprintf(facts, sizeof facts, "the %zu bytes from offset %" PRIu64 " on differ", length, comparing->offset);
        return differ(error, comparing->path, facts);
    }
    comparing->offset += length;
    if (comparing->copy->progress != NULL)
        comparing->copy->progress(comparing->copy->context, length);
    return true;
}

static bool check_size(const struct parts_copy *copy, const struct parts_file *file, struct arena *arena,
                       const char *path, struct error *error)
{
    struct stat status;
    char facts[FACTS];
    int reason = stat(path, &status) == 0 ? 0 : errno;
    if (reason == ENOENT && copy->is_directory)
        return differ(error, copy->destination, arena_printf(arena, "it has no file %s", file->path));
    if (reason != 0)
        return fail(error, reason, path);
    if (!S_ISREG(status.st_mode))
        return differ(error, path, "it is not a regular file");
    snprintf(facts, sizeof facts, "it has %" PRIu64 " bytes, and the copy %" PRIu64, (uint64_t)status.st_size,
             file->file->size);
    return (uint64_t)status.st_size == file->file->size || differ(error, path, facts);
}

static bool compare_piece(void *context, const struct piece *piece, struct error *error)
{
    struct comparing *comparing = context;
    comparing->path = piece->path;
    comparing->offset = piece->offset;
    comparing->fd = open(piece->path, O_RDONLY | O_CLOEXEC);
    if (comparing->fd < 0)
        return fail(error, errno, piece->path);
    bool is_equal = piece->length == 0 ||
                    take_range(piece->file->file, piece->offset, piece->length, compare_bytes, comparing, error);
    close(comparing->fd);
    return is_equal;
}

static bool check_sizes(const struct parts_copy *copy, const char *path, struct error *error)
{
    bool good = true;
    for (size_t i = 0; i < copy->n_files && good; i++) {
        struct arena *arena = arena_new();
        good = check_size(copy, &copy->files[i], arena, path_of(arena, path, copy->files[i].path), error);
        arena_free(arena);
    }
    return good;
}

bool parts_data_compare(const struct parts_copy *copy, const char *path, struct parts_range range, struct error *error)
{
    struct comparing comparing = {.copy = copy};
    return check_sizes(copy, path, error) && for_each_piece(copy, path, range, compare_piece, &comparing, error);
}

/* Checking. */

static bool check_piece(void *context, const struct piece *piece, struct error *error)
{
    unsigned char *bytes = memory_alloc(PARTS_CHECKED_PIECE);
    int fd = open(piece->path, O_RDONLY | O_CLOEXEC), reason = fd < 0 ? errno : 0;
    for (uint64_t done = 0; done < piece->length && reason == 0; done += PARTS_CHECKED_PIECE) {
        uint64_t left = piece->length - done;
        size_t length = left < PARTS_CHECKED_PIECE ? (size_t)left : PARTS_CHECKED_PIECE;
        reason = read_all(fd, bytes, length, piece->offset + done);
        if (reason == 0)
            add_checked(context, bytes, length);
    }
    if (fd >= 0)
        close(fd);
    free(bytes);
    return reason == 0 || fail(error, reason, piece->path);
}

bool parts_data_check(const struct parts_copy *copy, const char *path, struct parts_range range,
                      char checksum[SHA256_HEX + 1], struct error *error)
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    if (!for_each_piece(copy, path, range, check_piece, &hash, error))
        return false;
    end_checksum(&hash, checksum);
    return true;
}

/* Opens each file, so that a network file system asks its server for the size. */
static bool has_its_size(const struct parts_file *file, const char *path, struct error *error)
{
    struct stat status = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC), reason = fd < 0 || fstat(fd, &status) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (reason != 0)
        return fail(error, reason, path);
    if ((uint64_t)status.st_size == file->file->size)
        return true;
    error_set(error, "%s: has %llu bytes, and its parts %llu; remove the directory to begin again", path,
              (unsigned long long)status.st_size, (unsigned long long)file->file->size);
    return error_set_code(error, EINVAL);
}

bool parts_data_is_whole(const struct parts_copy *copy, const char *path, struct error *error)
{
    bool good = true;
    for (size_t i = 0; i < copy->n_files && good; i++) {
        struct arena *arena = arena_new();
        good = has_its_size(&copy->files[i], path_of(arena, path, copy->files[i].path), error);
        arena_free(arena);
    }
    return good;
}

void parts_data_remove(const struct parts_copy *copy, const char *path)
{
    struct arena *arena = arena_new();
    for (size_t i = 0; i < copy->n_files; i++)
        unlink(path_of(arena, path, copy->files[i].path));
    for (size_t i = copy->n_directories; i-- > 0;)
        rmdir(path_of(arena, path, copy->directories[i]));
    if (copy->is_directory)
        rmdir(path);
    arena_free(arena);
}
