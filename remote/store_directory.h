/* The directory of the store (store.h): found, made and checked at the first call, once for a process, from the options
 * and variables as they are then. Safe from any thread. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* The directory of the store; NULL: there is none. */
const char *store_directory(void);

/* Reports whether the store may hold anything, in a directory that nobody else can write to. */
bool store_is_usable(void);

/* Returns how many bytes the store may hold, once it is known whether it is usable. */
uint64_t store_limit(void);

/* Opens the file of records (base/record_file.h) in the directory, with these flags, and makes both if they are
 * missing. Returns -1, without a note, if the store may hold nothing, or a file there is not this user's alone. */
#define STORE_RECORDS "sizes"
int store_open_records(int flags);

/* Make the directories that a path below the store needs, and that of the path itself. On failure errno is that of the
 * first one which is missing. */
bool store_make_parents(const char *path);
bool store_make_folder(const char *path);

/* Notes once, with the path and the reason, that nothing can be kept on disk. */
void store_tell(const char *path, const char *reason);

/* How large the store may grow, and what is removed from it: whole segments and sealed files (sealed.h), the one that
 * was opened longest ago first.
 *
 * A segment is removed by unlinking it: a process that has it open reads on, and the space is free once it is closed:
 * computed bytes at their object's next write, fetched ones with their object. Nothing locks the others out; two
 * processes that evict at once remove the same segments, and perhaps some more than they had to. */

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
