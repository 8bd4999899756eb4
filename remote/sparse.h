/* Arrays of zeroed elements of which most are never used: a server states the size of a file before it sends a byte.
 *
 * Elements take memory in runs, when the first element of a run is used. Safe from any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SPARSE_RUN = 4096 /* elements */ };

struct sparse {
    uint64_t count;
    size_t element_size;
    void *runs; /* an array of atomic pointers */
};

/* Makes an array. Running out of memory ends the attempt or the process, here and in sparse_at(). */
struct sparse sparse_new(uint64_t count, size_t element_size);
void sparse_free(struct sparse *sparse);

/* Returns the place of an element, which stays until sparse_free(). */
void *sparse_at(const struct sparse *sparse, uint64_t index);

/* Like sparse_at(), but takes no memory: NULL if no element of the run was used, so that this one is zero. */
void *sparse_find(const struct sparse *sparse, uint64_t index);

/* Returns the first index from `index` on whose run was used, or `count`. */
uint64_t sparse_next(const struct sparse *sparse, uint64_t index);
