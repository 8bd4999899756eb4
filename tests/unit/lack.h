/* An allocation that fails, in a test program: one of malloc() and realloc(), by its number. */
#pragma once

#include "tests/unit/sanitized.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int lack_left = -1; /* allocations before the one that fails */

#if defined(__GLIBC__) && !IS_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_realloc(void *memory, size_t size);

static inline bool lack_is_now(void)
{
    return lack_left >= 0 && lack_left-- == 0;
}

void *malloc(size_t size) /* which compilers make of some calls of realloc */
{
    return lack_is_now() ? NULL : __libc_malloc(size);
}

void *realloc(void *memory, size_t size)
{
    return lack_is_now() ? NULL : __libc_realloc(memory, size);
}

static inline bool lack_is_possible(void)
{
    return true;
}
#else
static inline bool lack_is_possible(void)
{
    return false;
}
#endif

/* Makes the allocation after `count` others fail; -1: none. */
static inline void lack_of(int count)
{
    lack_left = count;
}

/* Finds a function of a library that the program replaces: *ret_function is a pointer to it. */
static inline void lack_find(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(ret_function, &found, sizeof found);
}
