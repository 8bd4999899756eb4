#include "fs/cli/pack/packing_read.h"

#include "sources/source.h"

enum {
    STEP = 2 << 20,   /* bytes that are read at once */
    PIECE = 64 << 10, /* of these that are hashed for both while the processor has them in its cache */
};

struct reading reading_of(struct source *source, const struct packed_extent *extents, size_t n_extents,
                          unsigned char *room, size_t n_room)
{
    struct reading reading = {
        .source = source, .extents = extents, .n_extents = n_extents, .room = room, .n_room = n_room};
    sha256_init(&reading.file_hash);
    return reading;
}

static bool is_held(const struct reading *reading, const struct packed_extent *extent)
{
    return extent->length <= reading->n_room;
}

/* Begins an extent. */
static void begin(struct reading *reading, unsigned char *bytes)
{
    reading->bytes = bytes;
    reading->n_read = 0;
    reading->failed = false;
    sha256_init(&reading->hash);
}

/* Finds room for the next extent before or after the bytes of the last one, which are in use: as low as there is, since
 * memory that is used for the first time is slow. */
static void begin_beside(struct reading *reading, unsigned char *used)
{
    const struct packed_extent *extent = &reading->extents[reading->next], *before = extent - 1;
    reading->bytes = NULL;
    if (reading->next == reading->n_extents || !is_held(reading, before) || !is_held(reading, extent))
        return;
    const uint64_t begins = (uint64_t)(used - reading->room), ends = begins + before->length;
    if (extent->length <= begins)
        begin(reading, reading->room);
    else if (extent->length <= reading->n_room - ends)
        begin(reading, used + before->length);
}

static void hash_both(struct reading *reading, const unsigned char *bytes, size_t length)
{
    for (size_t n; length > 0; bytes += n, length -= n) {
        n = length < PIECE ? length : PIECE;
        sha256_update(&reading->hash, n, bytes);
        sha256_update(&reading->file_hash, n, bytes);
    }
}

static void read_step(struct reading *reading)
{
    const struct packed_extent *extent = &reading->extents[reading->next];
    const uint64_t left = extent->length - reading->n_read, most = reading->n_room < STEP ? reading->n_room : STEP;
    const size_t n = (size_t)(left < most ? left : most);
    unsigned char *to = is_held(reading, extent) ? reading->bytes + reading->n_read : reading->bytes;
    reading->failed = !source_read(reading->source, extent->offset + reading->n_read, n, to, &reading->error);
    if (reading->failed)
        return;
    hash_both(reading, to, n);
    reading->n_read += n;
}

static bool is_left(const struct reading *reading)
{
    return !reading->failed && reading->n_read < reading->extents[reading->next].length;
}

bool reading_next(struct reading *reading, struct digest *ret_digest, const unsigned char **ret_bytes,
                  struct error *error)
{
    if (reading->bytes == NULL)
        begin(reading, reading->room);
    while (is_left(reading))
        read_step(reading);
    if (reading->failed) {
        *error = reading->error;
        return false;
    }
    sha256_digest(&reading->hash, sizeof ret_digest->bytes, ret_digest->bytes);
    unsigned char *bytes = reading->bytes;
    *ret_bytes = is_held(reading, &reading->extents[reading->next++]) ? bytes : NULL;
    begin_beside(reading, bytes);
    return true;
}

void reading_ahead(void *context)
{
    struct reading *reading = context;
    if (reading->bytes != NULL && is_left(reading))
        read_step(reading);
}
