#include "formats/hdf5/object.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { CONTINUATION = 16, SHARED_FLAG = 2, CHECKSUM = 4, LEAST_BLOCK = 8, MAX_BLOCKS = 65536 };

/* Flags of a header of version 2. */
enum { LENGTH_WIDTH = 3, ORDERED = 4, HAS_PHASES = 16, HAS_TIMES = 32 };

/* A run of messages. */
struct block {
    uint64_t address, length;
};

struct reader {
    struct hdf5 *file;
    struct arena *arena;
    struct hdf5_object *object;
    unsigned version;
    size_t header;        /* bytes before the body of a message */
    uint64_t n_left;      /* messages that version 1 has declared */
    struct block *blocks; /* continuations, in the arena */
    size_t n_blocks;
};

static bool take_continuation(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    if (message->length < 16 || reader->n_blocks == MAX_BLOCKS)
        return hdf5_refuse(reader->file, message->address, "damaged: a continuation of an object header", error);
    struct block block = {read_le(message->body, 8), read_le(message->body + 8, 8)};
    if (block.length < LEAST_BLOCK)
        return hdf5_refuse(reader->file, message->address, "damaged: an empty continuation of an object header", error);
    reader->blocks = arena_grow(reader->arena, reader->blocks, reader->n_blocks, sizeof *reader->blocks);
    reader->blocks[reader->n_blocks++] = block;
    return true;
}

static bool take_message(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    struct hdf5_object *object = reader->object;
    if (message->type == CONTINUATION)
        return take_continuation(reader, message, error);
    if (message->type == 0)
        return true;
    object->messages = arena_grow(reader->arena, object->messages, object->n_messages, sizeof *object->messages);
    object->messages[object->n_messages++] = *message;
    return true;
}

static struct hdf5_message message_at(const struct reader *reader, const unsigned char *at)
{
    if (reader->version == 1)
        return (struct hdf5_message){.type = (uint16_t)read_le(at, 2),
                                     .length = (size_t)read_le(at + 2, 2),
                                     .is_shared = (at[4] & SHARED_FLAG) != 0};
    return (struct hdf5_message){
        .type = at[0], .length = (size_t)read_le(at + 1, 2), .is_shared = (at[3] & SHARED_FLAG) != 0};
}

/* Reads the messages in a run of bytes; fewer bytes than a message's header at the end are a gap. */
static bool take_messages(struct reader *reader, const unsigned char *bytes, uint64_t length, uint64_t address,
                          struct error *error)
{
    uint64_t at = 0;
    while (length - at >= reader->header && reader->n_left > 0) {
        struct hdf5_message message = message_at(reader, bytes + at);
        at += reader->header;
        message.body = bytes + at;
        message.address = address + at;
        if (message.length > length - at)
            return hdf5_refuse(reader->file, message.address, "damaged: a message is longer than its header", error);
        if (!take_message(reader, &message, error))
            return false;
        at += message.length;
        reader->n_left--;
    }
    return true;
}

/* Moves a block from the heap to the arena. */
static const unsigned char *keep(struct reader *reader, unsigned char *block, uint64_t length)
{
    if (block != NULL)
        arena_adopt(reader->arena, block, (size_t)length);
    return block;
}

static bool read_continuations(struct reader *reader, struct error *error)
{
    for (size_t i = 0; i < reader->n_blocks; i++) {
        const struct block block = reader->blocks[i];
        bool is_old = reader->version == 1;
        unsigned char *read = is_old ? hdf5_block(reader->file, block.address, block.length, error)
                                     : hdf5_checked_block(reader->file, block.address, "OCHK", block.length, error);
        const unsigned char *bytes = keep(reader, read, block.length);
        uint64_t skip = is_old ? 0 : CHECKSUM, around = is_old ? 0 : 2 * CHECKSUM;
        if (bytes == NULL || !take_messages(reader, bytes + skip, block.length - around, block.address + skip, error))
            return false;
    }
    return true;
}

static bool read_version_1(struct reader *reader, const unsigned char *start, struct error *error)
{
    enum { PREFIX = 16, MESSAGE = 8 };
    uint64_t length = read_le(start + 8, 4), address = reader->object->address + PREFIX;
    reader->version = 1;
    reader->header = MESSAGE;
    reader->n_left = read_le(start + 2, 2);
    const unsigned char *bytes = keep(reader, hdf5_block(reader->file, address, length, error), length);
    return bytes != NULL && take_messages(reader, bytes, length, address, error);
}

static bool read_version_2(struct reader *reader, const unsigned char *start, struct error *error)
{
    enum { PREFIX = 6, TIMES = 16, PHASES = 4, MESSAGE = 4 };
    uint64_t address = reader->object->address, length;
    unsigned flags = start[5], width = 1U << (flags & LENGTH_WIDTH);
    uint64_t prefix = PREFIX + (flags & HAS_TIMES ? TIMES : 0) + (flags & HAS_PHASES ? PHASES : 0);
    unsigned char size[8];
    reader->version = 2;
    reader->header = MESSAGE + (flags & ORDERED ? 2 : 0);
    reader->n_left = UINT64_MAX;
    if (!hdf5_read(reader->file, address + prefix, width, size, error))
        return false;
    prefix += width;
    if (!checked_add(read_le(size, width), prefix + CHECKSUM, &length))
        return hdf5_refuse(reader->file, address, "damaged: the size of an object header", error);
    const unsigned char *bytes = keep(reader, hdf5_checked_block(reader->file, address, "OHDR", length, error), length);
    return bytes != NULL && take_messages(reader, bytes + prefix, length - prefix - CHECKSUM, address + prefix, error);
}

bool hdf5_object_read(struct hdf5 *file, uint64_t address, struct arena *arena, struct hdf5_object *object,
                      struct error *error)
{
    unsigned char start[16];
    struct reader reader = {.file = file, .arena = arena, .object = object};
    *object = (struct hdf5_object){.address = address};
    if (!hdf5_read(file, address, sizeof start, start, error))
        return false;
    if (memcmp(start, "OHDR", 4) == 0 && start[4] == 2)
        return read_version_2(&reader, start, error) && read_continuations(&reader, error);
    if (start[0] == 1 && start[1] == 0)
        return read_version_1(&reader, start, error) && read_continuations(&reader, error);
    return hdf5_refuse(file, address, "damaged: no object header there", error);
}

const struct hdf5_message *hdf5_message_find(const struct hdf5_object *object, enum hdf5_message_type type)
{
    for (size_t i = 0; i < object->n_messages; i++)
        if (object->messages[i].type == type)
            return &object->messages[i];
    return NULL;
}
