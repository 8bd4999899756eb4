/* The list of an archived source: every file, folder and link as it was, and of which tensors each file is made.
 *
 * Paths are relative, "" for the source itself, with '/' between names of any bytes but '/' and NUL. They ascend as
 * bytes, and each lies in a folder of the list: no path leads out of the source, and none lies below a link. */
#pragma once

#include "base/arena.h"
#include "sources/archive/lines.h"

enum files_kind { FILES_FOLDER, FILES_FILE, FILES_LINK };

enum {
    FILES_LONGEST_PATH = 4095,
    FILES_LONGEST_NAME = 255,
};

#define FILES_ZEROS UINT32_MAX /* files_segment.pack: zeros */

/* The largest file, so that positions have 63 bits. */
#define FILES_LARGEST (UINT64_C(1) << 62)

/* Bytes of a file, from `start` to the next segment's or the file's end: those of a tensor from `offset` on. */
struct files_segment {
    uint64_t start, offset;
    uint32_t pack; /* among the packs of the manifest */
    uint32_t tensor;
};

struct files_entry {
    const char *path;
    const char *target; /* of a link, else NULL */
    uint64_t size;      /* of a file */
    int64_t seconds;    /* since 1970: when it was last written to */
    uint32_t nanoseconds;
    uint16_t mode; /* 07777 at most */
    uint8_t kind;  /* enum files_kind */
    struct digest digest;
    uint32_t same; /* the first entry of the same inode (a hard link); its own index: none is before */
    size_t first_segment, n_segments;
};

struct files {
    struct arena *arena; /* the paths */
    struct files_entry *entries;
    size_t n_entries;
    struct files_segment *segments;
    size_t n_segments;
    uint64_t n_bytes; /* of all files */
};

/* Reads a list, which must have the digest. `n_packs` is the number of the manifest's packs. NULL on failure. */
struct files *files_read(const struct source *blob, const struct digest *digest, uint32_t n_packs, struct error *error);
void files_free(struct files *files); /* NULL is allowed */

struct files *files_new(void);

/* Adds a copy of an entry, without segments, after those that are there. */
void files_add(struct files *files, const struct files_entry *entry);

/* Adds a segment to an entry: all of one entry before those of another. */
void files_add_segment(struct files *files, size_t index, const struct files_segment *segment);

/* Appends the frame of a list whose entries are in order. */
void files_append_frame(const struct files *files, struct buffer *out);

/* Returns the index of an entry, or of the first after it if there is none of that path. */
size_t files_find(const struct files *files, const char *path, size_t length, bool *ret_found);

/* Returns the segment that holds a byte of a file; `*ret_end` is where it ends in the file. */
const struct files_segment *files_segment_at(const struct files *files, const struct files_entry *entry,
                                             uint64_t offset, uint64_t *ret_end);
