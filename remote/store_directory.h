/* The directory of the store (store.h): found, made and checked at the first call, once for a process, from the options
 * and variables as they are then. Safe from any thread. */
#pragma once

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
