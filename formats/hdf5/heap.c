#include "formats/hdf5/file.h"

#include "base/arena.h"
#include "base/checked.h"

#include <stdlib.h>

/* Local heaps. */

bool hdf5_local_heap_read(struct hdf5 *file, uint64_t address, struct hdf5_local_heap *heap, struct error *error)
{
    enum { HEADER = 32, LENGTH = 8, DATA = 24 };
    unsigned char *header = hdf5_signed_block(file, address, "HEAP", HEADER, error);
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
    enum { HEADER = 146, ID = 5, FILTERS = 7, MOST_MANAGED = 10, WIDTH = 110, START = 112, DIRECT = 120, BITS = 128 };
    enum { ROOT = 132, ROWS = 140, MOST_BITS = 64 };
    unsigned char *header = hdf5_signed_block(file, address, "FRHP", HEADER, error);
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
        .root = read_le(header + ROOT, 8),
        .n_rows = (unsigned)read_le(header + ROWS, 2),
    };
    uint64_t most = heap->most_direct < most_managed ? heap->most_direct : most_managed;
    heap->length_width = most > 0 ? (unsigned)(63 - __builtin_clzll(most)) / 8 + 1 : 1;
    bool is_filtered = read_le(header + FILTERS, 2) != 0;
    bool is_sound = hdf5_check_sum(file, address, header, HEADER, error);
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
    enum { HEADER = 16, OBJECT = 16, INDEX = 0, SIZE = 8, ALIGNMENT = 8 };
    unsigned char object[OBJECT];
    uint64_t at, size, padded;
    unsigned char *header = hdf5_signed_block(file, address, "GCOL", HEADER, error);
    if (header == NULL)
        return NULL;
    free(header);
    for (at = address + HEADER;; at += OBJECT + padded) {
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
