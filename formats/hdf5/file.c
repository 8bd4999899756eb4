#include "formats/hdf5/file.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

enum { FIRST_USER_BLOCK = 512, SUPERBLOCK_2 = 48, SUPERBLOCK_0 = 104, FILE_CHECKSUM = 4 };

/* Sound files are read once; a hash table of links, say, is read with gaps and in pieces. */
enum { BUDGET_RATIO = 4, BUDGET_CONSTANT = 1024 * 1024 };

bool hdf5_refuse(const struct hdf5 *file, uint64_t address, const char *reason, struct error *error)
{
    return error_set(error, "%s: address %" PRIu64 ": %s", source_name(file->source), address, reason);
}

/* Reading. */

void hdf5_renew_budget(struct hdf5 *file)
{
    if (!checked_multiply(source_size(file->source), BUDGET_RATIO, &file->budget) ||
        !checked_add(file->budget, BUDGET_CONSTANT, &file->budget))
        file->budget = UINT64_MAX;
}

bool hdf5_holds(const struct hdf5 *file, uint64_t address, uint64_t length)
{
    uint64_t left = source_size(file->source) - file->base;
    return address <= left && length <= left - address;
}

static bool check_read(struct hdf5 *file, uint64_t address, uint64_t length, struct error *error)
{
    if (!hdf5_holds(file, address, length))
        return hdf5_refuse(file, address, "damaged: the address of a structure, or its end, is outside the file",
                           error);
    if (length > file->budget)
        return hdf5_refuse(file, address, "damaged: its structures refer to one another again and again", error);
    file->budget -= length;
    return true;
}

/* Some structures may be missing without harm; those that cannot be read must not look like that. */
static bool read_bytes(struct hdf5 *file, uint64_t address, size_t length, void *out, struct error *error)
{
    if (window_read(&file->window, file->base + address, length, out, error))
        return true;
    if (file->unread.message[0] == '\0')
        file->unread = *error;
    return false;
}

bool hdf5_read(struct hdf5 *file, uint64_t address, size_t length, void *out, struct error *error)
{
    return check_read(file, address, length, error) && read_bytes(file, address, length, out, error);
}

unsigned char *hdf5_block(struct hdf5 *file, uint64_t address, uint64_t length, struct error *error)
{
    if (!check_read(file, address, length, error))
        return NULL;
    unsigned char *block = memory_alloc((size_t)length + 1);
    if (read_bytes(file, address, (size_t)length, block, error))
        return block;
    free(block);
    return NULL;
}

unsigned char *hdf5_signed_block(struct hdf5 *file, uint64_t address, const char *wanted, uint64_t length,
                                 struct error *error)
{
    unsigned char *block = hdf5_block(file, address, length, error);
    if (block == NULL || (length >= strlen(wanted) && memcmp(block, wanted, strlen(wanted)) == 0))
        return block;
    error_set(error, "%s: address %" PRIu64 ": damaged: no %s there", source_name(file->source), address, wanted);
    free(block);
    return NULL;
}

bool hdf5_check_sum(const struct hdf5 *file, uint64_t address, const unsigned char *bytes, size_t length,
                    struct error *error)
{
    return (length >= FILE_CHECKSUM &&
            read_le(bytes + length - FILE_CHECKSUM, FILE_CHECKSUM) == hdf5_lookup3(bytes, length - FILE_CHECKSUM)) ||
           hdf5_refuse(file, address, "damaged: the checksum is wrong", error);
}

unsigned char *hdf5_checked_block(struct hdf5 *file, uint64_t address, const char *wanted, uint64_t length,
                                  struct error *error)
{
    unsigned char *block = hdf5_signed_block(file, address, wanted, length, error);
    if (block == NULL || hdf5_check_sum(file, address, block, (size_t)length, error))
        return block;
    free(block);
    return NULL;
}

/* The checksum. */

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static void mix(uint32_t *a, uint32_t *b, uint32_t *c)
{
    static const unsigned char bits[6] = {4, 6, 8, 16, 19, 4};
    uint32_t *first = a, *second = b, *third = c;
    for (int i = 0; i < 6; i++) {
        *first -= *third;
        *first ^= rotate(*third, bits[i]);
        *third += *second;
        uint32_t *next = second;
        second = third;
        third = first;
        first = next;
    }
}

static void finish(uint32_t *a, uint32_t *b, uint32_t *c)
{
    static const unsigned char bits[7] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t *changed = c, *by = b, *other = a;
    for (int i = 0; i < 7; i++) {
        *changed ^= *by;
        *changed -= rotate(*by, bits[i]);
        uint32_t *next = other;
        other = by;
        by = changed;
        changed = next;
    }
}

uint32_t hdf5_lookup3(const unsigned char *bytes, size_t length)
{
    static const uint32_t start = 0xdeadbeef;
    enum { BLOCK = 12, WORD = 4 };
    uint32_t state[3];
    unsigned char last[BLOCK] = {0};
    for (int i = 0; i < 3; i++)
        state[i] = start + (uint32_t)length;
    if (length == 0)
        return state[2];
    for (; length > BLOCK; bytes += BLOCK, length -= BLOCK) {
        for (int i = 0; i < 3; i++)
            state[i] += (uint32_t)read_le(bytes + WORD * i, WORD);
        mix(&state[0], &state[1], &state[2]);
    }
    memcpy(last, bytes, length);
    for (int i = 0; i < 3; i++)
        state[i] += (uint32_t)read_le(last + WORD * i, WORD);
    finish(&state[0], &state[1], &state[2]);
    return state[2];
}

/* The superblock. */

bool hdf5_is_superblock(const unsigned char *bytes, size_t length)
{
    return length >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

/* Returns the offset of the superblock in a file; HDF5_UNDEFINED on failure. */
static uint64_t find_superblock(const struct source *source, struct error *error)
{
    unsigned char found[sizeof signature];
    for (uint64_t offset = 0; offset <= source_size(source) && source_size(source) - offset >= sizeof found;
         offset = offset == 0 ? FIRST_USER_BLOCK : 2 * offset) {
        if (!source_read(source, offset, sizeof found, found, error))
            return HDF5_UNDEFINED;
        if (hdf5_is_superblock(found, sizeof found))
            return offset;
        if (offset > UINT64_MAX / 2)
            break;
    }
    error_set(error, "%s: not an HDF5 file: the signature is missing", source_name(source));
    return HDF5_UNDEFINED;
}

static bool check_sizes(const struct hdf5 *file, const unsigned char sizes[2], struct error *error)
{
    return (sizes[0] == 8 && sizes[1] == 8) ||
           error_set(error, "%s: an HDF5 file with addresses of %u bytes and lengths of %u; wfs reads those with 8",
                     source_name(file->source), sizes[0], sizes[1]);
}

/* The superblock's end counts from the beginning of the file. */
static bool check_end(const struct hdf5 *file, uint64_t end, struct error *error)
{
    return end <= source_size(file->source) ||
           error_set(error, "%s: truncated: the superblock gives %" PRIu64 " bytes, but the file has %" PRIu64,
                     source_name(file->source), end, source_size(file->source));
}

/* Versions 0 and 1 have the root group's entry in a symbol table; version 1 also a number of 4 bytes more. */
static bool read_superblock_0(struct hdf5 *file, unsigned version, struct error *error)
{
    enum { SIZES = 13, NUMBERS = 24, END = 16, FILE_ROOT = 40 };
    unsigned char block[SUPERBLOCK_0];
    const unsigned char *numbers = block + NUMBERS + (version == 1 ? 4 : 0);
    if (!hdf5_read(file, 0, sizeof block, block, error) || !check_sizes(file, block + SIZES, error))
        return false;
    file->root = read_le(numbers + FILE_ROOT, 8);
    return check_end(file, read_le(numbers + END, 8), error);
}

static bool read_superblock_2(struct hdf5 *file, struct error *error)
{
    enum { SIZES = 9, END = 28, FILE_ROOT = 36 };
    unsigned char block[SUPERBLOCK_2];
    if (!hdf5_read(file, 0, sizeof block, block, error) || !check_sizes(file, block + SIZES, error) ||
        !hdf5_check_sum(file, 0, block, sizeof block, error))
        return false;
    file->root = read_le(block + FILE_ROOT, 8);
    return check_end(file, read_le(block + END, 8), error);
}

static bool read_superblock(struct hdf5 *file, struct error *error)
{
    unsigned char version;
    if (!hdf5_read(file, sizeof signature, 1, &version, error))
        return false;
    if (version > 3)
        return error_set(error, "%s: an HDF5 file with a superblock of version %u; wfs reads versions 0 to 3",
                         source_name(file->source), version);
    return version < 2 ? read_superblock_0(file, version, error) : read_superblock_2(file, error);
}

struct hdf5 *hdf5_open(const struct source *source, struct error *error)
{
    uint64_t base = find_superblock(source, error);
    if (base == HDF5_UNDEFINED)
        return NULL;
    struct hdf5 *file = memory_alloc(sizeof *file);
    *file = (struct hdf5){.source = source, .base = base, .window = {.source = source}};
    hdf5_renew_budget(file);
    if (read_superblock(file, error))
        return file;
    free(file);
    return NULL;
}

struct hdf5 *hdf5_reopen(const struct hdf5 *file)
{
    struct hdf5 *again = memory_alloc(sizeof *again);
    *again = (struct hdf5){
        .source = file->source, .base = file->base, .root = file->root, .window = {.source = file->source}};
    hdf5_renew_budget(again);
    return again;
}

/* Local heaps. */

bool hdf5_local_heap_read(struct hdf5 *file, uint64_t address, struct hdf5_local_heap *heap, struct error *error)
{
    enum { HEAP_HEADER = 32, LENGTH = 8, DATA = 24 };
    unsigned char *header = hdf5_signed_block(file, address, "HEAP", HEAP_HEADER, error);
    if (header == NULL)
        return false;
    heap->length = read_le(header + LENGTH, 8);
    heap->texts = (char *)hdf5_block(file, read_le(header + DATA, 8), heap->length, error);
    free(header);
    if (heap->texts == NULL)
        return false;
    heap->texts[heap->length] = '\0';
    return true;
}

/* Fractal heaps. */

bool hdf5_fractal_heap_read(struct hdf5 *file, uint64_t address, struct hdf5_fractal_heap *heap, struct error *error)
{
    enum {
        HEAP_HEADER = 146,
        ID = 5,
        FILTERS = 7,
        MOST_MANAGED = 10,
        WIDTH = 110,
        START = 112,
        DIRECT = 120,
        BITS = 128
    };
    enum { HEAP_ROOT = 132, ROWS = 140, MOST_BITS = 64 };
    unsigned char *header = hdf5_signed_block(file, address, "FRHP", HEAP_HEADER, error);
    if (header == NULL)
        return false;
    uint64_t bits = read_le(header + BITS, 2), most_managed = read_le(header + MOST_MANAGED, 4);
    *heap = (struct hdf5_fractal_heap){
        .address = address,
        .id_length = (unsigned)read_le(header + ID, 2),
        .table_width = (unsigned)read_le(header + WIDTH, 2),
        .start_size = read_le(header + START, 8),
        .most_direct = read_le(header + DIRECT, 8),
        .offset_width = (unsigned)(bits + 7) / 8,
        .root = read_le(header + HEAP_ROOT, 8),
        .n_rows = (unsigned)read_le(header + ROWS, 2),
    };
    uint64_t most = heap->most_direct < most_managed ? heap->most_direct : most_managed;
    heap->length_width = most > 0 ? (unsigned)(63 - __builtin_clzll(most)) / 8 + 1 : 1;
    bool is_filtered = read_le(header + FILTERS, 2) != 0;
    bool is_sound = hdf5_check_sum(file, address, header, HEAP_HEADER, error);
    free(header);
    if (!is_sound)
        return false;
    if (is_filtered)
        return hdf5_refuse(file, address, "links in a compressed heap, which wfs does not read", error);
    return (bits <= MOST_BITS && heap->table_width > 0 && heap->start_size > 0 && heap->n_rows <= MOST_BITS) ||
           hdf5_refuse(file, address, "damaged: the header of a heap", error);
}

/* A row of blocks that have the same size. */
struct row {
    unsigned number;
    uint64_t block_size, start; /* the heap's offset of its first block, in the parent */
};

/* Finds the row with an offset: rows 0 and 1 have blocks of the start size, each later one blocks twice as large. */
static bool find_row(const struct hdf5_fractal_heap *heap, uint64_t offset, struct row *row)
{
    uint64_t size;
    *row = (struct row){.block_size = heap->start_size};
    while (checked_multiply(row->block_size, heap->table_width, &size) && offset - row->start >= size) {
        row->start += size;
        if (row->number++ > 0 && !checked_multiply(row->block_size, 2, &row->block_size))
            return false;
    }
    return checked_multiply(row->block_size, heap->table_width, &size);
}

/* Finds the direct block with an offset, which becomes the offset in the block. */
static bool find_block(struct hdf5 *file, const struct hdf5_fractal_heap *heap, uint64_t *offset, uint64_t *ret_block,
                       uint64_t *ret_size, struct error *error)
{
    enum { INDIRECT_PREFIX = 13, MAX_LEVELS = 64 };
    uint64_t block = heap->root;
    unsigned n_rows = heap->n_rows;
    *ret_size = n_rows == 0 ? heap->start_size : 0;
    for (int level = 0; *ret_size == 0; level++) {
        struct row row;
        unsigned char entry[8];
        if (level == MAX_LEVELS || !find_row(heap, *offset, &row) || row.number >= n_rows)
            return hdf5_refuse(file, heap->address, "damaged: an object outside its heap", error);
        uint64_t column = (*offset - row.start) / row.block_size;
        uint64_t place =
            INDIRECT_PREFIX + heap->offset_width + (row.number * heap->table_width + column) * sizeof entry;
        if (!checked_add(block, place, &place) || !hdf5_read(file, place, sizeof entry, entry, error))
            return hdf5_refuse(file, heap->address, "damaged: a block of a heap outside the file", error);
        block = read_le(entry, sizeof entry);
        *offset -= row.start + column * row.block_size;
        n_rows = row.number;
        if (row.block_size <= heap->most_direct)
            *ret_size = row.block_size;
        else /* as many rows as its size has room for */
            for (n_rows = 1; heap->start_size * heap->table_width << (n_rows - 1) < row.block_size && n_rows < 64;)
                n_rows++;
    }
    *ret_block = block;
    return true;
}

bool hdf5_fractal_heap_find(struct hdf5 *file, const struct hdf5_fractal_heap *heap, const unsigned char *id,
                            uint64_t *ret_address, uint64_t *ret_length, struct error *error)
{
    enum { TYPE_SHIFT = 4, TYPE_MASK = 3 };
    unsigned least = 1 + heap->offset_width + heap->length_width;
    uint64_t block = 0, size = 0;
    if ((id[0] >> TYPE_SHIFT & TYPE_MASK) != 0)
        return hdf5_refuse(file, heap->address, "a link too large for its heap, which wfs does not read", error);
    if (heap->id_length < least)
        return hdf5_refuse(file, heap->address, "damaged: the ids of a heap", error);
    uint64_t offset = read_le(id + 1, heap->offset_width),
             length = read_le(id + 1 + heap->offset_width, heap->length_width);
    if (!find_block(file, heap, &offset, &block, &size, error))
        return false;
    if (offset > size || length > size - offset || !checked_add(block, offset, ret_address))
        return hdf5_refuse(file, heap->address, "damaged: an object outside its block of a heap", error);
    *ret_length = length;
    return true;
}

/* Global heaps. */

char *hdf5_global_heap_text(struct hdf5 *file, uint64_t address, uint64_t index, size_t limit, size_t *ret_length,
                            struct error *error)
{
    enum { HEAP_HEADER = 16, OBJECT = 16, INDEX = 0, SIZE = 8, ALIGNMENT = 8 };
    unsigned char object[OBJECT];
    uint64_t at, size, padded;
    unsigned char *header = hdf5_signed_block(file, address, "GCOL", HEAP_HEADER, error);
    if (header == NULL)
        return NULL;
    free(header);
    for (at = address + HEAP_HEADER;; at += OBJECT + padded) {
        if (!hdf5_read(file, at, sizeof object, object, error))
            return NULL;
        size = read_le(object + SIZE, 8);
        uint64_t found = read_le(object + INDEX, 2);
        bool is_sound = found != 0 && checked_align(size, ALIGNMENT, &padded) && hdf5_holds(file, at, padded);
        if (is_sound && found == index)
            break;
        if (!is_sound) {
            hdf5_refuse(file, at, "damaged: a global heap", error);
            return NULL;
        }
    }
    if (size > limit) {
        hdf5_refuse(file, at, "a text that is too long", error);
        return NULL;
    }
    char *text = (char *)hdf5_block(file, at + OBJECT, size, error);
    if (text != NULL)
        text[size] = '\0';
    *ret_length = (size_t)size;
    return text;
}

/* Trees of version 2. */

/* A tree of this depth with nodes of two records has more records than any file. */
enum { MAX_DEPTH = 32 };
enum { TREE2_HEADER = 38, NODE_PREFIX = 6, TREE2_CHECKSUM = 4, ADDRESS = 8 };

/* A node to be read. */
struct node {
    uint64_t address, n_records;
    unsigned depth; /* above the leaves */
};

struct reader {
    struct hdf5 *file;
    struct hdf5_tree2 tree;
    unsigned depth;
    unsigned count_width;                /* of the number of a child's records */
    unsigned total_width[MAX_DEPTH + 1]; /* of the number of records below a child, by the depth of the parent */
    struct node *stack;                  /* on the heap */
    size_t n_nodes;
};

/* Returns the bytes that numbers up to `most` need. */
static unsigned width_of(uint64_t most)
{
    unsigned width = 1;
    while (width < sizeof most && most >> (8 * width) != 0)
        width++;
    return width;
}

static unsigned pointer_size(const struct reader *reader, unsigned depth)
{
    return ADDRESS + reader->count_width + reader->total_width[depth];
}

/* Finds the widths of the numbers in child pointers. */
static bool find_widths(struct reader *reader, uint64_t node_size)
{
    enum { AROUND = NODE_PREFIX + TREE2_CHECKSUM };
    uint64_t record = reader->tree.record_size, most, below;
    if (record == 0 || node_size < AROUND + record)
        return false;
    below = (node_size - AROUND) / record;
    reader->count_width = width_of(below);
    for (unsigned depth = 1; depth <= reader->depth; depth++) {
        reader->total_width[depth] = depth > 1 ? width_of(below) : 0;
        uint64_t pointer = pointer_size(reader, depth);
        if (node_size < AROUND + pointer)
            return false;
        most = (node_size - AROUND - pointer) / (record + pointer);
        if (!checked_multiply(most + 1, below, &below) || !checked_add(below, most, &below))
            below = UINT64_MAX;
    }
    return true;
}

static void push(struct reader *reader, struct node node)
{
    reader->stack = memory_grow(reader->stack, reader->n_nodes, sizeof *reader->stack);
    reader->stack[reader->n_nodes++] = node;
}

static void push_children(struct reader *reader, const struct node *node, const unsigned char *pointers)
{
    for (uint64_t i = 0; i <= node->n_records; i++, pointers += pointer_size(reader, node->depth))
        push(reader, (struct node){read_le(pointers, ADDRESS), read_le(pointers + ADDRESS, reader->count_width),
                                   node->depth - 1});
}

static bool read_node(struct reader *reader, struct node node, hdf5_take_record *take, void *context,
                      struct error *error)
{
    uint64_t records = node.n_records * reader->tree.record_size; /* of 16 bits, or of a few bytes more */
    uint64_t pointers = node.depth > 0 ? (node.n_records + 1) * pointer_size(reader, node.depth) : 0;
    unsigned char *bytes = hdf5_checked_block(reader->file, node.address, node.depth > 0 ? "BTIN" : "BTLF",
                                              NODE_PREFIX + records + pointers + TREE2_CHECKSUM, error);
    if (bytes == NULL)
        return false;
    bool good = bytes[5] == reader->tree.type ||
                hdf5_refuse(reader->file, node.address, "damaged: a node of another B-tree", error);
    for (uint64_t i = 0; good && i < node.n_records; i++)
        good = take(context, &reader->tree, bytes + NODE_PREFIX + i * reader->tree.record_size, error);
    if (good && node.depth > 0)
        push_children(reader, &node, bytes + NODE_PREFIX + records);
    free(bytes);
    return good;
}

static bool read_header(struct reader *reader, uint64_t address, struct node *root, struct error *error)
{
    unsigned char *header = hdf5_checked_block(reader->file, address, "BTHD", TREE2_HEADER, error);
    if (header == NULL)
        return false;
    reader->tree = (struct hdf5_tree2){.type = header[5], .record_size = (size_t)read_le(header + 10, 2)};
    reader->depth = (unsigned)read_le(header + 12, 2);
    *root = (struct node){read_le(header + 16, 8), read_le(header + 24, 2), reader->depth};
    uint64_t node_size = read_le(header + 6, 4);
    free(header);
    return (reader->depth <= MAX_DEPTH && find_widths(reader, node_size)) ||
           hdf5_refuse(reader->file, address, "damaged: the header of a B-tree", error);
}

bool hdf5_tree2_read(struct hdf5 *file, uint64_t address, hdf5_take_record *take, void *context, struct error *error)
{
    struct reader reader = {.file = file};
    struct node root;
    if (!read_header(&reader, address, &root, error))
        return false;
    if (root.address == HDF5_UNDEFINED)
        return true;
    push(&reader, root);
    bool good = true;
    while (good && reader.n_nodes > 0)
        good = read_node(&reader, reader.stack[--reader.n_nodes], take, context, error);
    free(reader.stack);
    return good;
}
