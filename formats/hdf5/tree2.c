#include "formats/hdf5/file.h"

#include "base/arena.h"
#include "base/checked.h"

#include <stdlib.h>

/* A tree of this depth with nodes of two records has more records than any file. */
enum { MAX_DEPTH = 32 };
enum { HEADER = 38, NODE_PREFIX = 6, CHECKSUM = 4, ADDRESS = 8 };

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
    enum { AROUND = NODE_PREFIX + CHECKSUM };
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
                                              NODE_PREFIX + records + pointers + CHECKSUM, error);
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
    unsigned char *header = hdf5_checked_block(reader->file, address, "BTHD", HEADER, error);
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
