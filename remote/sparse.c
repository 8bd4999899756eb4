#include "remote/sparse.h"

#include "base/arena.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef _Atomic(unsigned char *) run;

static uint64_t n_runs(const struct sparse *sparse)
{
    return sparse->count / SPARSE_RUN + (sparse->count % SPARSE_RUN != 0);
}

/* Pages of zeros from calloc() take no memory until they are written. */
static void *zeros(uint64_t count, size_t size)
{
    void *memory = count <= SIZE_MAX / size ? calloc(count > 0 ? (size_t)count : 1, size) : NULL;
    if (memory == NULL)
        memory_exhausted(count <= SIZE_MAX / size ? (size_t)count * size : SIZE_MAX);
    return memory;
}

struct sparse sparse_new(uint64_t count, size_t element_size)
{
    struct sparse sparse = {.count = count, .element_size = element_size};
    sparse.runs = zeros(n_runs(&sparse), sizeof(run));
    return sparse;
}

void sparse_free(struct sparse *sparse)
{
    run *runs = sparse->runs;
    for (uint64_t i = 0; i < n_runs(sparse); i++)
        free(atomic_load(&runs[i]));
    free(runs);
}

void *sparse_find(const struct sparse *sparse, uint64_t index)
{
    run *runs = sparse->runs;
    unsigned char *elements = atomic_load(&runs[index / SPARSE_RUN]);
    return elements != NULL ? elements + index % SPARSE_RUN * sparse->element_size : NULL;
}

void *sparse_at(const struct sparse *sparse, uint64_t index)
{
    run *runs = sparse->runs;
    uint64_t first = index / SPARSE_RUN * SPARSE_RUN, left = sparse->count - first;
    unsigned char *none = NULL;
    if (atomic_load(&runs[index / SPARSE_RUN]) == NULL) {
        void *elements = zeros(left < SPARSE_RUN ? left : SPARSE_RUN, sparse->element_size);
        if (!atomic_compare_exchange_strong(&runs[index / SPARSE_RUN], &none, elements))
            free(elements);
    }
    return sparse_find(sparse, index);
}

uint64_t sparse_next(const struct sparse *sparse, uint64_t index)
{
    while (index < sparse->count && sparse_find(sparse, index) == NULL)
        index = index / SPARSE_RUN * SPARSE_RUN + SPARSE_RUN;
    return index < sparse->count ? index : sparse->count;
}
