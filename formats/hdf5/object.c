#include "formats/hdf5/object.h"

#include "base/checked.h"
#include "formats/hdf5/file.h"
#include "formats/tensor_set.h"

#include <stdlib.h>
#include <string.h>

enum { CONTINUATION = 16, SHARED_FLAG = 2, CHECKSUM = 4, LEAST_BLOCK = 8, MAX_BLOCKS = 65536 };

/* Flags of a header of version 2. */
enum { LENGTH_WIDTH = 3, ORDERED = 4, HAS_PHASES = 16, HAS_TIMES = 32 };

/* A run of messages. */
struct block {
    uint64_t address, length;
};

struct object_reader {
    struct hdf5 *file;
    struct arena *arena;
    struct hdf5_object *object;
    unsigned version;
    size_t header;        /* bytes before the body of a message */
    uint64_t n_left;      /* messages that version 1 has declared */
    struct block *blocks; /* continuations, in the arena */
    size_t n_blocks;
};

static bool take_continuation(struct object_reader *reader, const struct hdf5_message *message, struct error *error)
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

static bool take_message(struct object_reader *reader, const struct hdf5_message *message, struct error *error)
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

static struct hdf5_message message_at(const struct object_reader *reader, const unsigned char *at)
{
    if (reader->version == 1)
        return (struct hdf5_message){.type = (uint16_t)read_le(at, 2),
                                     .length = (size_t)read_le(at + 2, 2),
                                     .is_shared = (at[4] & SHARED_FLAG) != 0};
    return (struct hdf5_message){
        .type = at[0], .length = (size_t)read_le(at + 1, 2), .is_shared = (at[3] & SHARED_FLAG) != 0};
}

/* Reads the messages in a run of bytes; fewer bytes than a message's header at the end are a gap. */
static bool take_messages(struct object_reader *reader, const unsigned char *bytes, uint64_t length, uint64_t address,
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
static const unsigned char *keep(struct object_reader *reader, unsigned char *block, uint64_t length)
{
    if (block != NULL)
        arena_adopt(reader->arena, block, (size_t)length);
    return block;
}

static bool read_continuations(struct object_reader *reader, struct error *error)
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

static bool read_version_1(struct object_reader *reader, const unsigned char *start, struct error *error)
{
    enum { OBJECT_PREFIX = 16, MESSAGE = 8 };
    uint64_t length = read_le(start + 8, 4), address = reader->object->address + OBJECT_PREFIX;
    reader->version = 1;
    reader->header = MESSAGE;
    reader->n_left = read_le(start + 2, 2);
    const unsigned char *bytes = keep(reader, hdf5_block(reader->file, address, length, error), length);
    return bytes != NULL && take_messages(reader, bytes, length, address, error);
}

static bool read_version_2(struct object_reader *reader, const unsigned char *start, struct error *error)
{
    enum { OBJECT_PREFIX = 6, TIMES = 16, PHASES = 4, MESSAGE = 4 };
    uint64_t address = reader->object->address, length;
    unsigned flags = start[5], width = 1U << (flags & LENGTH_WIDTH);
    uint64_t prefix = OBJECT_PREFIX + (flags & HAS_TIMES ? TIMES : 0U) + (flags & HAS_PHASES ? PHASES : 0U);
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
    struct object_reader reader = {.file = file, .arena = arena, .object = object};
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

/* Groups. */

struct group_reader {
    struct hdf5 *file;
    struct arena *arena;
    struct hdf5_links *links;
    uint64_t group; /* its address, for messages */
};

static bool add_link(struct group_reader *reader, const char *name, size_t length, struct hdf5_link link,
                     struct error *error)
{
    if (length == 0 || length > TENSOR_MAX_NAME || memchr(name, '\0', length) != NULL ||
        memchr(name, '/', length) != NULL)
        return hdf5_refuse(reader->file, reader->group, "damaged: the name of a link", error);
    struct hdf5_links *links = reader->links;
    links->links = arena_grow(reader->arena, links->links, links->n_links, sizeof *links->links);
    link.name = arena_strndup(reader->arena, name, length);
    links->links[links->n_links++] = link;
    return true;
}

/* Symbol tables. */

/* A node of the B-tree to be read. */
struct node {
    uint64_t address;
    int level; /* -1: any, for the root */
};

struct table {
    struct group_reader *reader;
    struct hdf5_local_heap heap;
    struct node *stack; /* on the heap */
    size_t n_nodes;
};

static bool take_symbols(struct table *table, uint64_t address, struct error *error)
{
    enum { HEADER = 8, COUNT = 6, ENTRY = 40, OBJECT = 8, CACHE = 16, SOFT_LINK = 2 };
    struct hdf5 *file = table->reader->file;
    unsigned char *header = hdf5_signed_block(file, address, "SNOD", HEADER, error);
    if (header == NULL)
        return false;
    uint64_t n = read_le(header + COUNT, 2);
    free(header);
    unsigned char *entries = hdf5_block(file, address + HEADER, n * ENTRY, error);
    bool good = entries != NULL;
    for (uint64_t i = 0; good && i < n; i++) {
        const unsigned char *entry = entries + i * ENTRY;
        uint64_t name = read_le(entry, 8);
        if (name > table->heap.length) {
            good = hdf5_refuse(file, address, "damaged: the name of a link is outside its heap", error);
            break;
        }
        const char *text = table->heap.texts + name;
        const struct hdf5_link link = {.is_hard = read_le(entry + CACHE, 4) != SOFT_LINK,
                                       .address = read_le(entry + OBJECT, 8)};
        good = add_link(table->reader, text, strlen(text), link, error);
    }
    free(entries);
    return good;
}

static void push(struct table *table, struct node node)
{
    table->stack = memory_grow(table->stack, table->n_nodes, sizeof *table->stack);
    table->stack[table->n_nodes++] = node;
}

static bool take_node(struct table *table, struct node node, struct error *error)
{
    enum { HEADER = 24, LEVEL = 5, COUNT = 6, KEY = 8, CHILD = 8 };
    struct hdf5 *file = table->reader->file;
    unsigned char *header = hdf5_signed_block(file, node.address, "TREE", HEADER, error);
    if (header == NULL)
        return false;
    uint64_t n = read_le(header + COUNT, 2);
    int level = header[LEVEL];
    bool good = (header[4] == 0 && (node.level < 0 || node.level == level)) ||
                hdf5_refuse(file, node.address, "damaged: a node of another B-tree, or of another level", error);
    free(header);
    unsigned char *entries = good ? hdf5_block(file, node.address + HEADER, n * (KEY + CHILD), error) : NULL;
    good = entries != NULL;
    for (uint64_t i = n; good && i-- > 0;) {
        uint64_t child = read_le(entries + i * (KEY + CHILD) + KEY, CHILD);
        if (level > 0)
            push(table, (struct node){child, level - 1});
        else
            good = take_symbols(table, child, error);
    }
    free(entries);
    return good;
}

static bool read_symbol_table(struct group_reader *reader, const struct hdf5_message *message, struct error *error)
{
    struct table table = {.reader = reader};
    if (message->length < 16)
        return hdf5_refuse(reader->file, message->address, "damaged: a symbol table", error);
    if (!hdf5_local_heap_read(reader->file, read_le(message->body + 8, 8), &table.heap, error))
        return false;
    bool good = true;
    push(&table, (struct node){read_le(message->body, 8), -1});
    while (good && table.n_nodes > 0)
        good = take_node(&table, table.stack[--table.n_nodes], error);
    free(table.stack);
    free(table.heap.texts);
    return good;
}

/* Link messages. */

/* Flags of a link. */
enum { NAME_WIDTH = 3, HAS_ORDER = 4, HAS_TYPE = 8, HAS_CHARSET = 16, HARD = 0, SOFT = 1 };

static bool take_link(struct group_reader *reader, const unsigned char *body, uint64_t length, struct error *error)
{
    enum { GROUP_PREFIX = 2, ORDER = 8, ADDRESS = 8 };
    unsigned flags = length >= GROUP_PREFIX ? body[1] : 0, width = 1U << (flags & NAME_WIDTH);
    uint64_t at =
        GROUP_PREFIX + (flags & HAS_TYPE ? 1U : 0) + (flags & HAS_ORDER ? ORDER : 0U) + (flags & HAS_CHARSET ? 1U : 0);
    if (length < at + width || body[0] != 1)
        return hdf5_refuse(reader->file, reader->group, "damaged: a link", error);
    bool is_hard = !(flags & HAS_TYPE) || body[GROUP_PREFIX] == HARD;
    uint64_t name_length = read_le(body + at, width);
    at += width;
    if (name_length > length - at || (is_hard && length - at - name_length < ADDRESS))
        return hdf5_refuse(reader->file, reader->group, "damaged: a link is longer than its message", error);
    struct hdf5_link link = {.is_hard = is_hard, .is_external = !is_hard && body[GROUP_PREFIX] != SOFT};
    link.address = is_hard ? read_le(body + at + name_length, ADDRESS) : HDF5_UNDEFINED;
    return add_link(reader, (const char *)body + at, (size_t)name_length, link, error);
}

/* Heaps of links. */

struct dense {
    struct group_reader *reader;
    struct hdf5_fractal_heap heap;
};

/* Takes a record of the index by name: a hash, and the id of the link. */
static bool take_record(void *context, const struct hdf5_tree2 *tree, const unsigned char *record, struct error *error)
{
    enum { BY_NAME = 5, HASH = 4 };
    const struct dense *dense = context;
    struct hdf5 *file = dense->reader->file;
    uint64_t address, length;
    if (tree->type != BY_NAME || tree->record_size < HASH + dense->heap.id_length)
        return hdf5_refuse(file, dense->reader->group, "damaged: the index of a group's links", error);
    if (!hdf5_fractal_heap_find(file, &dense->heap, record + HASH, &address, &length, error))
        return false;
    unsigned char *link = hdf5_block(file, address, length, error);
    bool good = link != NULL && take_link(dense->reader, link, length, error);
    free(link);
    return good;
}

static bool read_dense(struct group_reader *reader, const struct hdf5_message *message, struct error *error)
{
    enum { GROUP_PREFIX = 2, HAS_ORDERS = 1, ADDRESS = 8 };
    uint64_t at = GROUP_PREFIX + (message->length >= GROUP_PREFIX && message->body[1] & HAS_ORDERS ? ADDRESS : 0);
    struct dense dense = {.reader = reader};
    if (message->length < at + 2 * ADDRESS)
        return hdf5_refuse(reader->file, message->address, "damaged: the links of a group", error);
    uint64_t heap = read_le(message->body + at, ADDRESS);
    return heap == HDF5_UNDEFINED ||
           (hdf5_fractal_heap_read(reader->file, heap, &dense.heap, error) &&
            hdf5_tree2_read(reader->file, read_le(message->body + at + ADDRESS, ADDRESS), take_record, &dense, error));
}

/* Groups. */

bool hdf5_is_group(const struct hdf5_object *object)
{
    return hdf5_message_find(object, HDF5_SYMBOL_TABLE) != NULL || hdf5_message_find(object, HDF5_LINK_INFO) != NULL ||
           hdf5_message_find(object, HDF5_LINK) != NULL;
}

static bool read_message(struct group_reader *reader, const struct hdf5_message *message, struct error *error)
{
    bool is_link = message->type == HDF5_LINK || message->type == HDF5_LINK_INFO || message->type == HDF5_SYMBOL_TABLE;
    if (is_link && message->is_shared)
        return hdf5_refuse(reader->file, message->address, "shared links of groups, which wfs does not read", error);
    switch (message->type) {
    case HDF5_SYMBOL_TABLE:
        return read_symbol_table(reader, message, error);
    case HDF5_LINK_INFO:
        return read_dense(reader, message, error);
    case HDF5_LINK:
        return take_link(reader, message->body, message->length, error);
    default:
        return true;
    }
}

static int compare_links(const void *a, const void *b)
{
    return strcmp(((const struct hdf5_link *)a)->name, ((const struct hdf5_link *)b)->name);
}

bool hdf5_links_read(struct hdf5 *file, const struct hdf5_object *group, struct arena *arena, struct hdf5_links *links,
                     struct error *error)
{
    struct group_reader reader = {.file = file, .arena = arena, .links = links, .group = group->address};
    *links = (struct hdf5_links){0};
    for (size_t i = 0; i < group->n_messages; i++)
        if (!read_message(&reader, &group->messages[i], error))
            return false;
    if (links->n_links > 0)
        qsort(links->links, links->n_links, sizeof *links->links, compare_links);
    for (size_t i = 1; i < links->n_links; i++)
        if (compare_links(&links->links[i - 1], &links->links[i]) == 0)
            return error_set(error, "a group has two links of the name '%.200s'", links->links[i].name);
    return true;
}
