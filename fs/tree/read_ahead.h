/* Reading ahead in virtual files whose sources are remote.
 *
 * The window follows the virtual file, not its sources: the next reads may need other tensors and other files. Its unit
 * is bytes of sources, since a block of output may need many times its own size. Readers of a file are told apart by
 * their offsets, not by thread or handle: programs read a file with several threads, and share handles. The kernel
 * reads ahead in local sources. */
#pragma once

#include "fs/tree/vfile.h"

struct read_ahead;

struct read_ahead *read_ahead_new(void);
void read_ahead_free(struct read_ahead *ahead);

/* Notes a read of [offset, offset + length), inside the file that `key` stands for. A read that continues earlier ones
 * names the source bytes of the next reads (source_want(), not urgent): READ_AHEAD_FIRST bytes at first, then up to
 * twice as many with each read, until the recent readers of all files share READ_AHEAD_MOST. Never waits. Call it after
 * vfile_want() of the range itself. Safe from any thread. */
enum { READ_AHEAD_FIRST = 4 << 20, READ_AHEAD_MOST = 64 << 20 };
void read_ahead_follow(struct read_ahead *ahead, uint64_t key, const struct vfile *file, uint64_t offset,
                       size_t length);
