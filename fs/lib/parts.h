/* Copies made in parts: N workers, on machines that share a file system and know nothing of each other, each make one
 * part of a copy; the bytes are those of one `wfs cp`.
 *
 * While a copy is unfinished, DEST.wfs-parts beside it holds
 *
 *     plan           what is copied and where it is cut (parts_plan.h)
 *     header         the beginning of a GGUF, which takes long to make (parts_contents.c)
 *     data           the file, sparse, or a directory of the files: each worker writes its own range
 *     000007.done    the marker of part 7: its range is on disk
 *
 * Rules, each for a reason found on NFS, sshfs and local disks:
 *
 * - Parts are cut at multiples of CUT_UNIT of a file (cuts.c). Two NFS clients that write to one page overwrite each
 *   other's bytes, which no checksum of a worker sees.
 * - A worker writes, fsyncs and closes, and checks all three, before it makes its marker: NFS reports a full disk only
 *   then. `data` is never truncated, and never read for holes: NFS and sshfs do not report them.
 * - No locks, no leases, no clocks and no process numbers of other machines. Two workers may make the same part at
 * once: they write the same bytes.
 * - The worker that sees all markers gives the copy its name. It lists the directory after making its own marker, since
 *   that makes an NFS client drop its cached list. On weaker file systems perhaps no worker sees all markers: any part
 *   made again, or parts_join(), ends the copy.
 * - link() names a file and rename() a directory: neither replaces another copy, and a second worker's failure is told
 *   from that of a foreign file by the inode. renameat2(RENAME_NOREPLACE) does not exist on NFS. So a reader never sees
 *   a file that is not whole, and a worker that is killed leaves nothing that the next would mistake.
 * - Once the copy has its name and the directory is gone, a part made again compares its range with the copy: equal
 * bytes are a success, and others a failure.
 *
 * Calls return false with an error whose code tells whether another try may succeed (parts_is_refusal()). */
#pragma once

#include "fs/lib/copy.h"
#include "fs/lib/parts_plan.h"
#include "fs/lib/paths.h"
#include "fs/options/options.h"
#include "fs/tree/content_options.h"
#include "fs/tree/vfile.h"

/* A file of the copy. */
struct parts_file {
    const char *path; /* below the copy; "" if that is a file itself */
    const struct vfile *file;
};

struct parts_copy {
    const char *destination; /* without a slash at its end */
    bool is_directory;
    const struct parts_file *files; /* in the same order for all workers */
    size_t n_files;
    const char *const *directories; /* their paths below the copy, each after the one it is in */
    size_t n_directories;
    struct source *const *sources; /* of the files and of options: whatever changes the bytes */
    size_t n_sources;
    struct parts_plan plan; /* of this worker, without hash and source */
    copy_progress *progress;
    void *context;
};

#define PARTS_SUFFIX ".wfs-parts"

/* Fills in the plan's layout, stamp, size and ends for `n_parts` parts; the ends are in the arena. */
void parts_lay_out(struct parts_copy *copy, size_t n_parts, struct arena *arena);

/* Returns the bytes of part `number`, from 1 on. */
uint64_t parts_length(const struct parts_copy *copy, size_t number);

/* Makes part `number`, from 1 on, unless it is done, and ends the copy if it is the last. */
bool parts_make(struct parts_copy *copy, size_t number, struct error *error);

/* Ends a copy whose parts are all done; names those that are missing. If `verify` is set, first compares the checksums
 * of the markers with what is on disk. */
bool parts_join(struct parts_copy *copy, bool verify, struct error *error);

/* Reports whether an error is final: another source, other options, no right to write. False for I/O errors, full disks
 * and servers that do not answer. */
bool parts_is_refusal(const struct error *error);

/* The files of a copy that is made in parts (parts.h).
 *
 * DEST is the name of the copy, or a directory to put it in. The copy of a directory may have been named by another
 * worker in the meantime: a DEST that has a file of the copy, or a directory of parts beside it, is the copy itself. */

/* Finds the files of one file or directory, and what they are made from, and divides them into parts. The copy lives as
 * long as the arena. */
bool parts_contents_find(struct tree *tree, const struct found *found, const char *destination,
                         const struct options *options, size_t n_parts, struct arena *arena,
                         struct parts_copy *ret_copy, struct error *error);

/* Finds the header that another worker kept for the only file of a copy, before the model is opened, for the worker of
 * part `number`; NULL: none. The result lives as long as the arena. */
const struct kept_header *parts_contents_header(const char *path, const char *destination, size_t number,
                                                size_t n_parts, struct arena *arena);

/* The header of a copy in parts (parts.h): GGUF's keys with a vocabulary take longer to make than all else that a
 * worker must know, so the first worker keeps them beside the plan, in DEST.wfs-parts/header. The others open the model
 * without its tokenizer and lay the file out with that header. */

enum { PARTS_MOST_HEADER = 1 << 28 /* bytes */ };

/* Writes the header of a file, if it has one, and sets what the plan tells of it. Without it, the other workers make it
 * themselves: no failure is an error. */
void parts_header_keep(const struct vfile *file, const char *path, struct parts_plan *plan);

/* Finds the header that was kept for part `number` of a copy to `destination`, whose plan agrees with `own` in path,
 * wfs and number of parts. Compares its bytes with their SHA-256 if the part has some of them. Returns NULL if there is
 * none. The result lives as long as the arena. */
const struct kept_header *parts_header_find(const char *destination, const struct parts_plan *own, size_t number,
                                            struct arena *arena);

/* The bytes of a copy in parts (parts.h): writing the range of a part, comparing it with a copy that has its name,
 * checking what is on disk. `path` is the file, or the directory of the files. */

/* Bytes of all files, one after the other. */
struct parts_range {
    uint64_t from, to;
};

/* Computes the range and writes it at its place, makes it durable, and sets the checksum (struct parts_marker). Makes
 * missing directories and empty files, too. */
bool parts_data_write(const struct parts_copy *copy, const char *path, struct parts_range range,
                      char checksum[SHA256_HEX + 1], struct error *error);

/* Computes the range and compares it, and the sizes of all files, with what is there. The error's code is EEXIST if
 * they differ. */
bool parts_data_compare(const struct parts_copy *copy, const char *path, struct parts_range range, struct error *error);

/* Reads the range from disk and sets its checksum. */
bool parts_data_check(const struct parts_copy *copy, const char *path, struct parts_range range,
                      char checksum[SHA256_HEX + 1], struct error *error);

/* Checks that all files have their sizes, now that all parts are done. */
bool parts_data_is_whole(const struct parts_copy *copy, const char *path, struct error *error);

/* Removes the files and directories of the copy, as far as they are there. */
void parts_data_remove(const struct parts_copy *copy, const char *path);
