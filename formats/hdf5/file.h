/* An HDF5 file: its superblock, and reads of its structures at addresses.
 *
 * Addresses count from the superblock, which a user block may precede. Structures may refer to one another in loops;
 * the bytes that a reader may read are therefore limited by the size of the file, and a loop ends with an error.
 *
 * wfs reads HDF5 itself: libhdf5 follows links and external storage to other files, and Debian's version cannot read
 * what current versions write. Source: HDF5 File Format Specification, versions 3.0 and 4.0. */
#pragma once

#include "base/error.h"
#include "formats/window.h"

/* The address of something that is not in the file. */
#define HDF5_UNDEFINED UINT64_MAX

/* Not safe for several threads at once. */
struct hdf5 {
    const struct source *source;
    uint64_t base;       /* the superblock, in the source; addresses count from here */
    uint64_t root;       /* the address of the root group's object header */
    uint64_t budget;     /* bytes of structures that may still be read */
    struct error unread; /* the first failure to read bytes that are in the file; empty: none */
    struct window window;
};

/* Reports whether the bytes begin with a superblock's signature. */
bool hdf5_is_superblock(const unsigned char *bytes, size_t length);

/* Reads the superblock. The file is on the heap: free() releases it. NULL on failure. */
struct hdf5 *hdf5_open(const struct source *source, struct error *error);

/* Returns the file again, to be read by another thread, with a new budget. */
struct hdf5 *hdf5_reopen(const struct hdf5 *file);

/* Gives the reader the budget of a whole file again. */
void hdf5_renew_budget(struct hdf5 *file);

/* Reads `length` bytes at an address; fails outside the file, and when the budget is used up. */
bool hdf5_read(struct hdf5 *file, uint64_t address, size_t length, void *out, struct error *error);

/* Reports whether the file has `length` bytes at the address. Never fails because of the budget. */
bool hdf5_holds(const struct hdf5 *file, uint64_t address, uint64_t length);

/* Returns `length` bytes at an address, which the caller frees; NULL on failure. */
unsigned char *hdf5_block(struct hdf5 *file, uint64_t address, uint64_t length, struct error *error);

/* Like hdf5_block(), for a structure that begins with a signature of four letters. */
unsigned char *hdf5_signed_block(struct hdf5 *file, uint64_t address, const char *signature, uint64_t length,
                                 struct error *error);

/* Like hdf5_signed_block(), for a structure that ends with a checksum of all before. */
unsigned char *hdf5_checked_block(struct hdf5 *file, uint64_t address, const char *signature, uint64_t length,
                                  struct error *error);

/* Checks that the last four of `length` bytes, read from the address, are the checksum of those before. */
bool hdf5_check_sum(const struct hdf5 *file, uint64_t address, const unsigned char *bytes, size_t length,
                    struct error *error);

/* Sets the error "FILE: address N: <reason>"; returns false. */
bool hdf5_refuse(const struct hdf5 *file, uint64_t address, const char *reason, struct error *error);

/* Returns Bob Jenkins' lookup3 of the bytes, hashlittle() with the start value 0: HDF5's checksum. */
uint32_t hdf5_lookup3(const unsigned char *bytes, size_t length);

/* The heaps of HDF5 that hold names and links: local heaps, fractal heaps, and global heaps for attributes' texts. */

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

/* B-trees of version 2, which index the links of large groups and the chunks of some datasets. */

struct hdf5_tree2 {
    unsigned type;
    size_t record_size;
};

/* Takes a record of `tree->record_size` bytes; returns false, with an error, to stop. */
typedef bool hdf5_take_record(void *context, const struct hdf5_tree2 *tree, const unsigned char *record,
                              struct error *error);

/* Calls take() for each record of the tree at an address, in no particular order. */
bool hdf5_tree2_read(struct hdf5 *file, uint64_t address, hdf5_take_record *take, void *context, struct error *error);
