/* Reading archives back: every file's SHA-256 is compared with the one that its original had when it was packed. */
#pragma once

#include "sources/archive/archive.h"

struct archive_sums {
    uint64_t n_files, n_bytes; /* that were read */
    uint64_t n_damaged;        /* files, each of which was reported */
};

/* Checks the files of a member whose paths are `path` or below it. Fails if they cannot be listed. */
bool archive_check(struct archive *archive, size_t member, const char *path, struct archive_sums *sums,
                   struct error *error);

/* Fails unless a file's bytes have the SHA-256 of the original. `index` is its number in the list. */
struct progress;
bool archive_check_file(struct archive *archive, size_t member, size_t index, struct progress *progress,
                        struct error *error);

/* Checks the files that a text names, ARCHIVE or ARCHIVE/NAME..., and prints the result. Returns the exit status: 0,
 * or 1 if a file is damaged, or 2 if the archive cannot be read. */
int archive_verify(const char *text);

/* Reports whether a source is an archive, or in one. A URL is opened for that. */
bool archive_holds(const char *source);
