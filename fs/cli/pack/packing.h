/* Putting sources into an archive, for `wfs pack` (cmd_pack.c).
 *
 * A source is scanned first: what is no file, folder or link is refused before anything is written. Each file is read
 * once, or twice where a tensor is too large to be held; equal bytes are stored once in the archive. Each chunk is
 * decoded again as soon as it is coded, and compared with what was read. */
#pragma once

#include "fs/lib/blobs.h"
#include "fs/lib/extents.h"

#include <sys/stat.h>

/* An entry of a source, as it was when it was scanned. */
struct scanned {
    const char *path;   /* below the source, "" for the source itself */
    const char *target; /* of a link */
    struct stat status;
    struct digest digest; /* of a file, once it is packed */
};

struct scan {
    struct arena *arena;
    const char *source;      /* its path, as given */
    const char *name;        /* in the archive */
    struct scanned *entries; /* sorted by path, as bytes */
    size_t n_entries;
};

/* Scans a source. Refuses what cannot be kept, and a source that holds the directory `archive`. */
bool scan_source(struct scan *scan, const char *source, const char *name, const struct stat *archive,
                 struct error *error);
void scan_free(struct scan *scan);

/* Opens an entry of the source, without following links; -1 with errno. */
int scan_open(const struct scan *scan, const struct scanned *entry, int flags);

/* Reports whether two states are of the same unchanged file: by device, inode, size, and times. */
bool scan_is_same(const struct stat *a, const struct stat *b);
bool scan_has_same_contents(const struct stat *a, const struct stat *b); /* the inode may have changed otherwise */

/* What a run has done. */
struct packing_sums {
    uint64_t n_files, n_bytes; /* of the sources */
    uint64_t n_equal_bytes;    /* that the archive had already */
    uint64_t n_written;        /* bytes of blobs */
};

/* Adds the sources to the archive, each to what is there of its name, and replaces the index. Fills in the digests of
 * the scans' files. With `keeps_folders`, folders that the archive has keep their times there: removing files
 * changes those of the source. Prints a line for each file, but not with -q. */
bool packing_run(struct blobs *blobs, const char *archive, struct scan *scans, size_t n_scans, bool keeps_folders,
                 struct packing_sums *ret_sums, struct error *error);
