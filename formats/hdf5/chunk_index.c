#include "formats/hdf5/dataset.h"

#include "base/checked.h"
#include "formats/hdf5/file.h"

#include <stdlib.h>
#include <string.h>

enum { ADDRESS = 8, MASK = 4, CHECKSUM = 4, NUMBER = 8 };

/* Chunks take 40 bytes of memory each, and may have a single byte in the file. */
enum { MAX_CHUNKS = 4 * 1024 * 1024 };

static const char damaged_index[] = "damaged: the index of a dataset's chunks";

/* Numbers of the grid for the largest shape, in which arrays count chunks. */
struct whole {
    uint64_t grid[HDF5_MAX_RANK];
    unsigned order[HDF5_MAX_RANK]; /* the dimensions; one without limit comes first */
    uint64_t n_chunks;             /* UINT64_MAX: no limit */
};

struct reader {
    struct hdf5 *file;
    const struct hdf5_dataset *dataset;
    struct hdf5_chunks *chunks;
    uint64_t grid[HDF5_MAX_RANK];
    struct whole whole;
};

void hdf5_chunk_grid(const struct hdf5_dataset *dataset, const uint64_t *shape, uint64_t *grid)
{
    for (unsigned i = 0; i < dataset->rank; i++)
        grid[i] = rounded_up(shape[i], dataset->chunk[i]);
}

static bool damaged(const struct reader *reader, uint64_t address, struct error *error)
{
    return hdf5_refuse(reader->file, address, damaged_index, error);
}

/* Chunks. */

/* Adds the chunk at a place in the grid, which may be outside the shape. */
static bool add_chunk(struct reader *reader, const uint64_t *place, struct hdf5_chunk chunk, struct error *error)
{
    struct hdf5_chunks *chunks = reader->chunks;
    const struct hdf5_dataset *dataset = reader->dataset;
    for (unsigned i = 0; i < dataset->rank; i++) {
        if (place[i] >= reader->grid[i])
            return true;
        chunk.number = chunk.number * reader->grid[i] + place[i];
    }
    bool is_plain = hdf5_filters_skip(&dataset->filters, chunk.mask);
    if (!hdf5_holds(reader->file, chunk.address, chunk.size) || (is_plain && chunk.size != dataset->chunk_bytes))
        return hdf5_refuse(reader->file, chunk.address, "damaged: a chunk outside the file, or of another size", error);
    if (chunks->n_chunks == MAX_CHUNKS)
        return hdf5_refuse(reader->file, dataset->address, "a dataset of more than 4194304 chunks", error);
    chunks->chunks = memory_grow(chunks->chunks, chunks->n_chunks, sizeof *chunks->chunks);
    chunks->chunks[chunks->n_chunks++] = chunk;
    return true;
}

/* The width of a chunk's size in an entry: what an entry has beside address and mask; 0: entries have an address alone.
 * Returns false if the entry fits neither. */
static bool size_width(const struct reader *reader, uint64_t entry, unsigned *ret_width)
{
    bool is_filtered = reader->dataset->filters.n_filters > 0;
    *ret_width = is_filtered && entry > ADDRESS + MASK ? (unsigned)(entry - ADDRESS - MASK) : 0;
    return is_filtered ? *ret_width > 0 && *ret_width <= 8 : entry == ADDRESS;
}

static struct hdf5_chunk chunk_of_entry(const struct reader *reader, const unsigned char *entry, unsigned width)
{
    return (struct hdf5_chunk){
        .address = read_le(entry, ADDRESS),
        .size = width > 0 ? read_le(entry + ADDRESS, width) : reader->dataset->chunk_bytes,
        .mask = width > 0 ? (uint32_t)read_le(entry + ADDRESS + width, MASK) : 0,
    };
}

/* Arrays number the chunks of the largest shape. */

static void find_whole(struct reader *reader)
{
    const struct hdf5_dataset *dataset = reader->dataset;
    struct whole *whole = &reader->whole;
    unsigned unlimited = 0, n = 0;
    hdf5_chunk_grid(dataset, dataset->most, whole->grid);
    for (unsigned i = 0; i < dataset->rank; i++)
        if (dataset->most[i] == UINT64_MAX)
            unlimited = i;
    whole->order[n++] = unlimited;
    for (unsigned i = 0; i < dataset->rank; i++)
        if (i != unlimited)
            whole->order[n++] = i;
    whole->n_chunks = dataset->most[unlimited] == UINT64_MAX ? UINT64_MAX : 1;
    for (unsigned i = 0; i < dataset->rank && whole->n_chunks != UINT64_MAX; i++)
        if (!checked_multiply(whole->n_chunks, whole->grid[i], &whole->n_chunks))
            whole->n_chunks = UINT64_MAX;
}

static bool add_numbered(struct reader *reader, uint64_t number, struct hdf5_chunk chunk, struct error *error)
{
    uint64_t place[HDF5_MAX_RANK];
    const struct whole *whole = &reader->whole;
    if (chunk.address == HDF5_UNDEFINED)
        return true;
    for (unsigned i = reader->dataset->rank; i-- > 1;) {
        unsigned dimension = whole->order[i];
        if (whole->grid[dimension] == 0)
            return true;
        place[dimension] = number % whole->grid[dimension];
        number /= whole->grid[dimension];
    }
    place[whole->order[0]] = number;
    return add_chunk(reader, place, chunk, error);
}

static bool add_entries(struct reader *reader, uint64_t first, uint64_t n, const unsigned char *entries, uint64_t entry,
                        struct error *error)
{
    unsigned width;
    if (!size_width(reader, entry, &width))
        return hdf5_refuse(reader->file, reader->dataset->address, damaged_index, error);
    for (uint64_t i = 0; i < n; i++)
        if (!add_numbered(reader, first + i, chunk_of_entry(reader, entries + i * entry, width), error))
            return false;
    return true;
}

static bool read_implicit(struct reader *reader, struct error *error)
{
    uint64_t n_bytes, size = reader->dataset->chunk_bytes, n = reader->whole.n_chunks;
    if (!checked_multiply(n, size, &n_bytes) || !hdf5_holds(reader->file, reader->dataset->address, n_bytes))
        return damaged(reader, reader->dataset->address, error);
    for (uint64_t i = 0; i < n; i++)
        if (!add_numbered(reader, i, (struct hdf5_chunk){.address = reader->dataset->address + i * size, .size = size},
                          error))
            return false;
    return true;
}

/* Pages of an array: each has a checksum of its own; those never written are not to be read. */
struct pages {
    uint64_t address, first, n;   /* of the first page; of the first element; elements */
    uint64_t page, entry;         /* elements of a page, bytes of an element */
    const unsigned char *written; /* a bit for each page, the highest first; NULL: all are */
    uint64_t first_bit;
};

static bool read_pages(struct reader *reader, const struct pages *pages, struct error *error)
{
    uint64_t address = pages->address;
    for (uint64_t done = 0, i = pages->first_bit; done < pages->n; done += pages->page, i++) {
        uint64_t n = pages->n - done < pages->page ? pages->n - done : pages->page;
        uint64_t length = n * pages->entry + CHECKSUM;
        bool is_written = pages->written == NULL || (pages->written[i / 8] >> (7 - i % 8) & 1) != 0;
        unsigned char *bytes = is_written ? hdf5_checked_block(reader->file, address, "", length, error) : NULL;
        bool good =
            !is_written || (bytes != NULL && add_entries(reader, pages->first + done, n, bytes, pages->entry, error));
        free(bytes);
        if (!good || !checked_add(address, length, &address))
            return false;
    }
    return true;
}

/* Fixed arrays. */

static bool read_fixed_block(struct reader *reader, uint64_t address, uint64_t n, uint64_t entry, unsigned page_bits,
                             struct error *error)
{
    enum { PREFIX = 14 };
    uint64_t page = UINT64_C(1) << page_bits, n_pages = rounded_up(n, page), bitmap = rounded_up(n_pages, 8);
    bool is_paged = n > page;
    uint64_t length = PREFIX + CHECKSUM + (is_paged ? bitmap : n * entry);
    unsigned char *block = hdf5_checked_block(reader->file, address, "FADB", length, error);
    if (block == NULL)
        return false;
    const struct pages pages = {address + length, 0, n, page, entry, block + PREFIX, 0};
    bool good = is_paged ? read_pages(reader, &pages, error) : add_entries(reader, 0, n, block + PREFIX, entry, error);
    free(block);
    return good;
}

static bool read_fixed_array(struct reader *reader, struct error *error)
{
    enum { HEADER = 28, ENTRY = 6, PAGE_BITS = 7, COUNT = 8, BLOCK = 16, MAX_PAGE_BITS = 32 };
    uint64_t address = reader->dataset->address, bytes;
    unsigned char *header = hdf5_checked_block(reader->file, address, "FAHD", HEADER, error);
    if (header == NULL)
        return false;
    unsigned entry = header[ENTRY], page_bits = header[PAGE_BITS];
    uint64_t n = read_le(header + COUNT, 8), block = read_le(header + BLOCK, ADDRESS);
    free(header);
    if (block == HDF5_UNDEFINED)
        return true;
    if (entry == 0 || page_bits > MAX_PAGE_BITS || n != reader->whole.n_chunks || !checked_multiply(n, entry, &bytes) ||
        !hdf5_holds(reader->file, 0, bytes))
        return damaged(reader, address, error);
    return read_fixed_block(reader, block, n, entry, page_bits, error);
}

/* Extensible arrays. */

struct extensible {
    unsigned entry, offset_width, page_bits;
    uint64_t n_direct, least, least_pointers; /* elements of the index block, of the smallest data block; pointers */
    unsigned n_super;                         /* super blocks at most, those in the index block included */
    uint64_t limit;                           /* elements up to the last one written */
};

static bool read_data_block(struct reader *reader, const struct extensible *array, uint64_t address, uint64_t first,
                            uint64_t n, const unsigned char *written, uint64_t first_bit, struct error *error)
{
    enum { PREFIX = 14 };
    uint64_t prefix = PREFIX + array->offset_width, page = UINT64_C(1) << array->page_bits;
    if (address == HDF5_UNDEFINED)
        return true;
    bool is_paged = n > page;
    uint64_t length = prefix + CHECKSUM + (is_paged ? 0 : n * array->entry);
    unsigned char *block = hdf5_checked_block(reader->file, address, "EADB", length, error);
    if (block == NULL)
        return false;
    const struct pages pages = {address + length, first, n, page, array->entry, written, first_bit};
    bool good = is_paged ? read_pages(reader, &pages, error)
                         : add_entries(reader, first, n, block + prefix, array->entry, error);
    free(block);
    return good;
}

/* Super block u has 2^(u/2) data blocks of 2^((u+1)/2) times the smallest one's elements. */
static uint64_t n_blocks(unsigned super)
{
    return UINT64_C(1) << super / 2;
}

static uint64_t block_elements(const struct extensible *array, unsigned super)
{
    return array->least << (super + 1) / 2;
}

static bool read_super_block(struct reader *reader, const struct extensible *array, uint64_t address, unsigned super,
                             uint64_t first, struct error *error)
{
    enum { PREFIX = 14 };
    if (address == HDF5_UNDEFINED)
        return true;
    uint64_t n = block_elements(array, super), page = UINT64_C(1) << array->page_bits;
    uint64_t n_pages = n > page ? n / page : 0, bitmap = n_blocks(super) * rounded_up(n_pages, 8);
    uint64_t prefix = PREFIX + array->offset_width;
    uint64_t length = prefix + bitmap + n_blocks(super) * ADDRESS + CHECKSUM;
    unsigned char *block = hdf5_checked_block(reader->file, address, "EASB", length, error);
    bool good = block != NULL;
    for (uint64_t i = 0; good && i < n_blocks(super) && first + i * n < array->limit; i++)
        good = read_data_block(reader, array, read_le(block + prefix + bitmap + i * ADDRESS, ADDRESS), first + i * n, n,
                               block + prefix, i * n_pages, error);
    free(block);
    return good;
}

static unsigned log2_of(uint64_t power)
{
    return (unsigned)__builtin_ctzll(power);
}

static bool read_index_block(struct reader *reader, const struct extensible *array, uint64_t address,
                             struct error *error)
{
    enum { PREFIX = 14 };
    unsigned n_near = 2 * log2_of(array->least_pointers); /* super blocks whose data blocks are listed here */
    uint64_t n_pointers = 2 * (array->least_pointers - 1) + (array->n_super > n_near ? array->n_super - n_near : 0);
    uint64_t length = PREFIX + array->n_direct * array->entry + n_pointers * ADDRESS + CHECKSUM;
    unsigned char *block = hdf5_checked_block(reader->file, address, "EAIB", length, error);
    if (block == NULL)
        return false;
    const unsigned char *pointers = block + PREFIX + array->n_direct * array->entry;
    uint64_t first = array->n_direct;
    bool good = add_entries(reader, 0, array->n_direct, block + PREFIX, array->entry, error);
    for (unsigned super = 0; good && super < array->n_super && first < array->limit; super++) {
        uint64_t n = block_elements(array, super);
        for (uint64_t i = 0; good && super < n_near && i < n_blocks(super); i++, pointers += ADDRESS)
            good = read_data_block(reader, array, read_le(pointers, ADDRESS), first + i * n, n, NULL, 0, error);
        if (good && super >= n_near) {
            good = read_super_block(reader, array, read_le(pointers, ADDRESS), super, first, error);
            pointers += ADDRESS;
        }
        first += n_blocks(super) * n;
    }
    free(block);
    return good;
}

static bool is_power_of_2(uint64_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static bool read_extensible_array(struct reader *reader, struct error *error)
{
    enum { HEADER = 72, ENTRY = 6, MAX_BITS = 7, N_DIRECT = 8, LEAST = 9, LEAST_POINTERS = 10, PAGE_BITS = 11 };
    enum { LIMIT = 44, BLOCK = 60, MOST_BITS = 48 };
    uint64_t address = reader->dataset->address;
    unsigned char *header = hdf5_checked_block(reader->file, address, "EAHD", HEADER, error);
    if (header == NULL)
        return false;
    unsigned bits = header[MAX_BITS];
    struct extensible array = {
        .entry = header[ENTRY],
        .offset_width = (bits + 7) / 8,
        .page_bits = header[PAGE_BITS],
        .n_direct = header[N_DIRECT],
        .least = header[LEAST],
        .least_pointers = header[LEAST_POINTERS],
        .limit = read_le(header + LIMIT, NUMBER),
    };
    uint64_t block = read_le(header + BLOCK, ADDRESS);
    free(header);
    if (block == HDF5_UNDEFINED)
        return true;
    if (array.entry == 0 || bits > MOST_BITS || !is_power_of_2(array.least) || !is_power_of_2(array.least_pointers) ||
        array.page_bits > MOST_BITS || bits < log2_of(array.least))
        return damaged(reader, address, error);
    array.n_super = 1 + bits - log2_of(array.least);
    return read_index_block(reader, &array, block, error);
}

/* B-trees. */

enum { COORDINATES = HDF5_MAX_RANK + 1 /* of a key: the last one is of bytes in an element */ };

/* A node of a B-tree of version 1; level -1: any, for the root. The keys around it in its parent bound its own. */
struct node {
    uint64_t address;
    int level;
    uint64_t low[COORDINATES], high[COORDINATES];
};

struct stack {
    struct node *nodes; /* on the heap */
    size_t n_nodes;
};

static void push(struct stack *stack, struct node node)
{
    stack->nodes = memory_grow(stack->nodes, stack->n_nodes, sizeof *stack->nodes);
    stack->nodes[stack->n_nodes++] = node;
}

/* Takes an entry of a leaf: the chunk's size, its mask, and its first element. */
static bool take_key(struct reader *reader, const unsigned char *key, uint64_t address, struct error *error)
{
    enum { PREFIX = 8 };
    const struct hdf5_dataset *dataset = reader->dataset;
    uint64_t place[HDF5_MAX_RANK];
    for (unsigned i = 0; i < dataset->rank; i++) {
        uint64_t first = read_le(key + PREFIX + (size_t)i * NUMBER, NUMBER);
        if (first % dataset->chunk[i] != 0)
            return damaged(reader, address, error);
        place[i] = first / dataset->chunk[i];
    }
    return add_chunk(
        reader, place,
        (struct hdf5_chunk){.address = address, .size = read_le(key, 4), .mask = (uint32_t)read_le(key + 4, MASK)},
        error);
}

static void read_coordinates(const struct reader *reader, const unsigned char *key, uint64_t *coordinates)
{
    enum { PREFIX = 8 };
    for (unsigned i = 0; i <= reader->dataset->rank; i++)
        coordinates[i] = read_le(key + PREFIX + (size_t)i * NUMBER, NUMBER);
}

static int compare_keys(const struct reader *reader, const uint64_t *a, const uint64_t *b)
{
    for (unsigned i = 0; i <= reader->dataset->rank; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Checks a node's n + 1 keys, by whose order libhdf5 looks for chunks: it does not find one out of order, or one that
 * begins within an element, and reads the fill value. */
static bool check_order(const struct reader *reader, const struct node *node, const unsigned char *entries, uint64_t n,
                        uint64_t entry_bytes)
{
    uint64_t before[COORDINATES], key[COORDINATES];
    read_coordinates(reader, entries, before);
    if (compare_keys(reader, before, node->low) < 0)
        return false;
    for (uint64_t i = 1; i <= n; i++) {
        read_coordinates(reader, entries + i * entry_bytes, key);
        if (before[reader->dataset->rank] != 0 || compare_keys(reader, before, key) >= 0)
            return false;
        memcpy(before, key, sizeof key);
    }
    return compare_keys(reader, before, node->high) <= 0;
}

static bool take_node(struct reader *reader, struct stack *stack, struct node node, struct error *error)
{
    enum { HEADER = 24, TYPE = 4, OF_CHUNKS = 1, LEVEL = 5, COUNT = 6 };
    uint64_t key = 8 + (uint64_t)(reader->dataset->rank + 1) * NUMBER;
    unsigned char *header = hdf5_signed_block(reader->file, node.address, "TREE", HEADER, error);
    if (header == NULL)
        return false;
    int level = header[LEVEL];
    uint64_t n = read_le(header + COUNT, 2);
    bool good =
        (header[TYPE] == OF_CHUNKS && (node.level < 0 || node.level == level)) || damaged(reader, node.address, error);
    free(header);
    unsigned char *entries =
        good ? hdf5_block(reader->file, node.address + HEADER, n * (key + ADDRESS) + key, error) : NULL;
    good = entries != NULL &&
           (check_order(reader, &node, entries, n, key + ADDRESS) || damaged(reader, node.address, error));
    for (uint64_t i = 0; good && i < n; i++) {
        const unsigned char *entry = entries + i * (key + ADDRESS);
        uint64_t child = read_le(entry + key, ADDRESS);
        if (level > 0) {
            struct node below = {.address = child, .level = level - 1};
            read_coordinates(reader, entry, below.low);
            read_coordinates(reader, entry + key + ADDRESS, below.high);
            push(stack, below);
        } else
            good = take_key(reader, entry, child, error);
    }
    free(entries);
    return good;
}

static bool read_tree_1(struct reader *reader, struct error *error)
{
    struct stack stack = {0};
    bool good = true;
    struct node root = {.address = reader->dataset->address, .level = -1};
    memset(root.high, 0xff, sizeof root.high);
    push(&stack, root);
    while (good && stack.n_nodes > 0)
        good = take_node(reader, &stack, stack.nodes[--stack.n_nodes], error);
    free(stack.nodes);
    return good;
}

/* Takes a record of a B-tree of version 2: an entry, whose place follows in chunks. */
static bool take_record(void *context, const struct hdf5_tree2 *tree, const unsigned char *record, struct error *error)
{
    enum { PLAIN = 10, FILTERED = 11 };
    struct reader *reader = context;
    uint64_t place[HDF5_MAX_RANK], places = (uint64_t)reader->dataset->rank * NUMBER;
    unsigned width;
    if ((tree->type != PLAIN && tree->type != FILTERED) || tree->record_size < places + ADDRESS ||
        !size_width(reader, tree->record_size - places, &width))
        return damaged(reader, reader->dataset->address, error);
    for (unsigned i = 0; i < reader->dataset->rank; i++)
        place[i] = read_le(record + tree->record_size - places + (size_t)i * NUMBER, NUMBER);
    return add_chunk(reader, place, chunk_of_entry(reader, record, width), error);
}

/* All kinds. */

static bool read_single(struct reader *reader, struct error *error)
{
    static const uint64_t first[HDF5_MAX_RANK];
    const struct hdf5_dataset *dataset = reader->dataset;
    return add_chunk(
        reader, first,
        (struct hdf5_chunk){.address = dataset->address, .size = dataset->single_size, .mask = dataset->single_mask},
        error);
}

static bool read_index(struct reader *reader, struct error *error)
{
    switch (reader->dataset->index) {
    case HDF5_TREE_1:
        return read_tree_1(reader, error);
    case HDF5_SINGLE:
        return read_single(reader, error);
    case HDF5_IMPLICIT:
        return read_implicit(reader, error);
    case HDF5_FIXED_ARRAY:
        return read_fixed_array(reader, error);
    case HDF5_EXTENSIBLE_ARRAY:
        return read_extensible_array(reader, error);
    case HDF5_TREE_2:
        return hdf5_tree2_read(reader->file, reader->dataset->address, take_record, reader, error);
    }
    return false;
}

static int compare_chunks(const void *a, const void *b)
{
    uint64_t first = ((const struct hdf5_chunk *)a)->number, second = ((const struct hdf5_chunk *)b)->number;
    return (first > second) - (first < second);
}

static bool sort_chunks(const struct reader *reader, struct error *error)
{
    struct hdf5_chunks *chunks = reader->chunks;
    if (chunks->n_chunks > 0)
        qsort(chunks->chunks, chunks->n_chunks, sizeof *chunks->chunks, compare_chunks);
    for (size_t i = 1; i < chunks->n_chunks; i++)
        if (chunks->chunks[i - 1].number == chunks->chunks[i].number)
            return hdf5_refuse(reader->file, chunks->chunks[i].address, "damaged: two chunks at one place", error);
    return true;
}

bool hdf5_chunks_read(struct hdf5 *file, const struct hdf5_dataset *dataset, struct hdf5_chunks *chunks,
                      struct error *error)
{
    struct reader reader = {.file = file, .dataset = dataset, .chunks = chunks};
    *chunks = (struct hdf5_chunks){0};
    hdf5_chunk_grid(dataset, dataset->shape, reader.grid);
    find_whole(&reader);
    if (dataset->address == HDF5_UNDEFINED)
        return true;
    if (read_index(&reader, error) && sort_chunks(&reader, error))
        return true;
    free(chunks->chunks);
    chunks->chunks = NULL;
    return false;
}
