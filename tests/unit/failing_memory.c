#include "tests/unit/failing_memory.h"

#include <stddef.h>

/* How many allocations of this thread succeed before all fail; -1: all succeed. */
static _Thread_local long n_left = -1;
static _Thread_local bool has_failed;

static bool fails(void)
{
    if (n_left < 0)
        return false;
    has_failed |= n_left == 0;
    n_left -= n_left > 0;
    return has_failed;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t n_bytes)
{
    return fails() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, n_bytes);
}

void *__wrap_realloc(void *memory, size_t n_bytes)
{
    return fails() ? NULL : __real_realloc(memory, n_bytes);
}

void allow_allocations(long n)
{
    n_left = n;
    has_failed = false;
}

bool has_failed_allocation(void)
{
    return has_failed;
}
