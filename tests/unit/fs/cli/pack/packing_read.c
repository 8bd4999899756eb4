/* Extents that are read ahead: their bytes, their hashes, and the file's; the bytes of the last one stay. */
#include "fs/cli/pack/packing_read.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

enum { EXTENTS = 60, ROOM = 100, LONGEST = 130, LAST_BYTE = EXTENTS * LONGEST };

static char bytes[LAST_BYTE];

static uint64_t end = sizeof bytes;

static bool read_bytes(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    (void)context;
    if (offset + length > end)
        return error_set(error, "cannot be read");
    memcpy(out, bytes + offset, length);
    return true;
}

static void release(void *context)
{
    (void)context;
}

static bool is_of(const struct digest *digest, const void *from, size_t length)
{
    const struct digest wanted = digest_of(from, length);
    return digest_same(digest, &wanted);
}

/* Reads all, with so many steps ahead of each turn. */
static void read_all(struct source *source, const struct packed_extent *extents, size_t n_ahead)
{
    static unsigned char room[ROOM];
    struct reading reading = reading_of(source, extents, EXTENTS, room, sizeof room);
    struct digest digest;
    struct error error;
    bool same = true;
    for (size_t i = 0; i < EXTENTS; i++) {
        const unsigned char *held;
        const struct packed_extent *extent = &extents[i];
        if (!reading_next(&reading, &digest, &held, &error)) {
            CHECK_NAMED(false, error.message);
            return;
        }
        for (size_t j = 0; j < n_ahead; j++)
            reading_ahead(&reading);
        same &= (held == NULL) == (extent->length > ROOM) && is_of(&digest, bytes + extent->offset, extent->length) &&
                (held == NULL || memcmp(held, bytes + extent->offset, extent->length) == 0);
    }
    sha256_digest(&reading.file_hash, sizeof digest.bytes, digest.bytes);
    const struct packed_extent *last = &extents[EXTENTS - 1];
    CHECK(same && is_of(&digest, bytes, last->offset + last->length));
}

int main(void)
{
    struct packed_extent extents[EXTENTS] = {0};
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < EXTENTS; i++) {
        extents[i].offset = at;
        extents[i].length = i % 7 == 6 ? LONGEST : 1 + i * 37 % 60;
        at += extents[i].length;
    }
    const struct source_ops ops = {.read = read_bytes, .release = release};
    const struct source_identity identity = {.size = at};
    struct source *source = source_new_file(&identity, "bytes", &ops, NULL);
    for (size_t n_ahead = 0; n_ahead < 3; n_ahead++)
        read_all(source, extents, n_ahead);

    struct digest digest;
    struct error error;
    const unsigned char *held;
    unsigned char room[ROOM];
    struct reading reading = reading_of(source, extents, EXTENTS, room, sizeof room);
    end = extents[1].offset;
    CHECK(reading_next(&reading, &digest, &held, &error));
    reading_ahead(&reading);
    CHECK_NAMED(!reading_next(&reading, &digest, &held, &error), "what fails ahead, fails in its turn");
    source_close(source);
    return check_done();
}
