/* The heaps of HDF5 that hold names and links: local heaps, fractal heaps, and global heaps for attributes' texts. */
#pragma once

#include "formats/hdf5/file.h"

/* The texts of a symbol table. */
struct hdf5_local_heap {
    char *texts; /* on the heap, NUL-terminated */
    uint64_t length;
};

bool hdf5_local_heap_read(struct hdf5 *file, uint64_t address, struct hdf5_local_heap *heap, struct error *error);

/* A fractal heap: objects in blocks that double. */
struct hdf5_fractal_heap {
    uint64_t address, start_size, most_direct, root;
    unsigned id_length, table_width, offset_width, length_width, n_rows; /* rows of the root; 0: it is a direct block */
};

bool hdf5_fractal_heap_read(struct hdf5 *file, uint64_t address, struct hdf5_fractal_heap *heap, struct error *error);

/* Finds the object of an id, which has id_length bytes. Fails for objects outside the heap's blocks. */
bool hdf5_fractal_heap_find(struct hdf5 *file, const struct hdf5_fractal_heap *heap, const unsigned char *id,
                            uint64_t *ret_address, uint64_t *ret_length, struct error *error);

/* Returns object `index` of the global heap at an address, NUL-terminated, which the caller frees; NULL on failure.
 * Fails above `limit` bytes. */
char *hdf5_global_heap_text(struct hdf5 *file, uint64_t address, uint64_t index, size_t limit, size_t *ret_length,
                            struct error *error);
