/* How large the store may grow, and what is removed from it: whole segments and sealed files (sealed.h), the one that
 * was opened longest ago first.
 *
 * A segment is removed by unlinking it: a process that has it open reads on, and the space is free once it is closed:
 * computed bytes at their object's next write, fetched ones with their object. Nothing locks the others out; two
 * processes that evict at once remove the same segments, and perhaps some more than they had to. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* A segment of the store, or a sealed file. */
struct stored_segment {
    const char *path;
    const char *name; /* what the object was called when the segment was made, a line for each name */
    bool is_computed; /* else fetched */
    uint64_t bytes;   /* on disk */
    int64_t used;     /* when it was last opened, in seconds */
};

struct stored_segments {
    struct stored_segment *items; /* the one used longest ago first */
    size_t count;
    uint64_t bytes; /* of all */
};

/* Lists the segments below the store's directory. */
struct stored_segments evict_list(const char *directory, struct arena *arena);

/* Removes segments until those that are left take at most `limit` bytes, or, for EVICT_DEFAULT, until 5 % of the disk
 * and at least 1 GiB are free. Returns how many bytes were removed. */
#define EVICT_DEFAULT UINT64_MAX
uint64_t evict(const char *directory, uint64_t limit);
