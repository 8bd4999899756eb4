/* Copies made in parts: N workers, on machines that share a file system and know nothing of each other, each make one
 * part of a copy; the bytes are those of one `wfs cp`.
 *
 * While a copy is unfinished, DEST.wfs-parts beside it holds
 *
 *     plan           what is copied and where it is cut (parts_plan.h)
 *     header         the beginning of a GGUF, which takes long to make (parts_header.h)
 *     data           the file, sparse, or a directory of the files: each worker writes its own range
 *     000007.done    the marker of part 7: its range is on disk
 *
 * Rules, each for a reason found on NFS, sshfs and local disks:
 *
 * - Parts are cut at multiples of CUT_UNIT of a file (cuts.h). Two NFS clients that write to one page overwrite each
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
